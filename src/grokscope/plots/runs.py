"""Pictures of single runs: curves, IPR histograms, scales of a norm, attention."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise, product
from operator import itemgetter
from textwrap import wrap
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from grokscope.engines import initial_state
from grokscope.extension import short_name
from grokscope.measure import COLUMNS, Row, neuron_spectra, phases_along
from grokscope.phases import Phase
from grokscope.plots.files import STYLE
from grokscope.plots.layout import columns_for, figure_of_blocks
from grokscope.plots.palette import ACCURACIES, BAR_EDGE, BLUE, INPUT_COLOR, OUTPUT_COLOR
from grokscope.plots.saying import say_instead
from grokscope.result import RunResult
from grokscope.spec import RunSpec

_IPR_BINS = 40
_MOST_OWN_COLUMNS = 4
_IPR_LIMITS = (0.2, 0.4, 0.5, 1.0)
_MOST_ABREAST = 3  # panels in a row, for which a page has room
_LEGEND_ABREAST = 3  # entries below each column
_STRIP = (0.953, 0.99)  # of the height of a panel
_ROOM_ABOVE = 0.92  # an accuracy above which there is no room for words below the strip


def draw_runs(
    results: RunResult | Sequence[RunResult],
    titles: Sequence[str] | None = None,
    *,
    attention_of: tuple[int, int] | None = None,
    other_seeds: Sequence[Sequence[RunResult]] = (),
) -> Figure:
    """One column for each run: its accuracies, the IPR histogram of its neurons, and what else it has to show.

    `draw_runs([first, second]).savefig("both.png")`. Without titles, a run has its settings above it. Of several seeds
    accuracies are drawn as a median and a band; all else is of the first.

    Where there is a norm, that is its scales against the IPR of the neurons they scale; of a Transformer, if a pair
    (m, n) is given, its attention. Columns that a user's measurements recorded have a panel each.
    """
    results = [results] if isinstance(results, RunResult) else results
    titles = [settings_line(result) for result in results] if titles is None else titles
    others = _by_run(results, other_seeds)
    panels: dict[str, Callable[[Axes, RunResult], None]] = {
        "accuracy": lambda axes, result: draw_accuracies(axes, result, others[result.run_id]),
        _neurons_of(results) + (" of one seed" if any(other_seeds) else ""): draw_ipr_histogram,
    }
    if any(result.neurons is not None and result.neurons.norm_scale is not None for result in results):
        panels["|γ| of the norm"] = draw_norm_scales
    if attention_of is not None:
        panels["attention to m"] = partial(draw_attention, pair=attention_of)
    own = dict.fromkeys(name for result in results for row in result.curve[:1] for name in row if name not in COLUMNS)
    for column in list(own)[:_MOST_OWN_COLUMNS]:
        panels[column] = partial(draw_own_column, column=column)
    return _draw_columns(results, titles, panels, others)


def draw_curves(
    results: Sequence[RunResult], titles: Sequence[str], *, other_seeds: Sequence[Sequence[RunResult]] = ()
) -> Figure:
    """The accuracies of several runs side by side (Figures 19 to 22), with those of other seeds within a band."""
    others = _by_run(results, other_seeds)
    panels = {"accuracy": lambda axes, result: draw_accuracies(axes, result, others[result.run_id])}
    return _draw_columns(results, titles, panels, others)


def draw_seeds(networks: Mapping[str, Sequence[RunResult]]) -> Figure:
    """The same for several networks, each with its title and the runs of its seeds."""
    runs = list(networks.values())
    return draw_curves([seeds[0] for seeds in runs], list(networks), other_seeds=[seeds[1:] for seeds in runs])


def _by_run(results: Sequence[RunResult], other_seeds: Sequence[Sequence[RunResult]]) -> dict[str, Sequence[RunResult]]:
    """The other seeds of each run, by its id."""
    return {result.run_id: others for result, others in zip(results, other_seeds or [()] * len(results), strict=True)}


def outcome_of_seeds(outcomes: Sequence[str]) -> str:
    """What most seeds show, and how many do if not all. Of equals, the first in the order of the phases.

    >>> outcome_of_seeds(["Confusion", "Coexistence", "Confusion"]), outcome_of_seeds(["Diverged"] * 3)
    ('Confusion in 2 of 3 seeds', 'Diverged')
    """
    order = [*(phase.label for phase in Phase), "Diverged"]
    most = max(order, key=outcomes.count)
    count = outcomes.count(most)
    return most if count == len(outcomes) else f"{most} in {count} of {len(outcomes)} seeds"


def draw_row(panels: Mapping[str, Callable[[Axes], None]]) -> Figure:
    """Different panels, each with its title and the function that draws it (Figures 5 and 15)."""
    with style.context(STYLE):
        figure, (places,) = figure_of_blocks([len(panels)], _MOST_ABREAST, panel=(3.7, 3.3), margin=(0.8, 0.2))
        for axes, (title, draw) in zip(places, panels.items(), strict=True):
            draw(axes)
            axes.set_title(title)
    return figure


def _draw_columns(
    results: Sequence[RunResult],
    titles: Sequence[str],
    panels: Mapping[str, Callable[[Axes, RunResult], None]],
    others: Mapping[str, Sequence[RunResult]],
) -> Figure:
    """One column for each run and one row for each panel, which has a label and the function that draws it.

    Runs for which a page has no room side by side stand in further blocks of these rows.
    """
    abreast = columns_for(len(results), _MOST_ABREAST)
    parts = [slice(start, start + abreast) for start in range(0, len(results), abreast)]
    with style.context(STYLE):
        figure = Figure(figsize=(1.2 + 3.9 * abreast, 3.25 * len(panels) * len(parts)))
        rows = figure.add_gridspec(len(panels) * len(parts), abreast)
        drawn: dict[str, list[Axes]] = {label: [] for label in panels}
        for row, (part, (label, draw)) in enumerate(product(parts, panels.items())):
            for column, result in enumerate(results[part]):
                axes = figure.add_subplot(rows[row, column], sharey=next(iter(drawn[label]), None))
                axes.tick_params(labelleft=False)
                draw(axes, result)
                drawn[label].append(axes)
            own = drawn[label][part]
            first = next((axes for axes in own if axes.axison), own[0])  # others have nothing to show
            first.set_ylabel(label)
            first.tick_params(labelleft=True)
        top = next(iter(drawn.values()))
        for axes, result, title in zip(top, results, titles, strict=True):
            outcome = outcome_of_seeds([each.outcome for each in (result, *others[result.run_id])])
            axes.set_title(f"{_wrapped(title)}\n{outcome}")
        if handles := shared_handles(top):  # a run that was never measured has none
            entries = columns_for(len(handles), _LEGEND_ABREAST * abreast)
            figure.legend(handles.values(), handles, loc="outside lower center", ncols=entries)
    return figure


def shared_handles(panels: Iterable[Axes]) -> dict[str, Artist]:
    """What the legends of several panels would have, each label once, and phases last."""
    found = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    phases = [phase.label for phase in Phase if phase.label in found]
    return {label: found[label] for label in [*(each for each in found if each not in phases), *phases]}


def _wrapped(title: str) -> str:
    """In lines that fit above a column, broken between settings."""
    kept_together = title.replace(" ", "\N{NO-BREAK SPACE}").replace(",\N{NO-BREAK SPACE}", ", ")
    return "\n".join(wrap(kept_together, 44))


def draw_accuracies(axes: Axes, result: RunResult, other_seeds: Sequence[RunResult] = ()) -> None:
    """Accuracies against the step, on a logarithmic axis: what happens early is over within tens of steps.

    Of several seeds the lines are medians, and bands go from the lowest to the highest. Above the curves a strip says
    in which phase a network with these accuracies would have ended at each step.
    """
    runs = (result, *other_seeds)
    seeds = [{row.step: row for row in each.curve} for each in runs]
    steps = [row.step for row in result.curve if all(row.step in rows for rows in seeds)]
    medians: dict[str, npt.NDArray[np.float64]] = {}
    for column, (label, color, line) in ACCURACIES.items():
        values = np.array([[getattr(rows[step], column) for step in steps] for rows in seeds])  # [seeds, steps]
        medians[column] = np.median(values, axis=0)
        if np.isnan(values).all():
            continue
        if len(seeds) > 1:
            axes.fill_between(steps, values.min(axis=0), values.max(axis=0), color=color, alpha=0.18, linewidth=0)
        # A single point is no line.
        marker = "o" if len(steps) == 1 else None
        axes.plot(steps, medians[column], linestyle=line, color=color, label=label, marker=marker)
    corruption = float(np.median([each.corruption for each in runs]))
    clean = 1 - corruption
    axes.axhline(clean, color="0.4", linewidth=0.8, linestyle=":")
    side, gap = ("top", -2) if clean > _ROOM_ABOVE else ("bottom", 2)  # above could be the strip
    axes.annotate("1 − ξ", (1, clean), xytext=(2, gap), textcoords="offset points", va=side, color="0.4", fontsize=8.5)
    drawn = [Row({column: values[place] for column, values in medians.items()}) for place in range(len(steps))]
    _draw_phases_along(axes, steps, phases_along(drawn, corruption))
    axes.set(xscale="log", xlabel="optimisation step", ylim=(-0.03, 1.1), yticks=np.linspace(0, 1, 6))


def _draw_phases_along(axes: Axes, steps: Sequence[int], phases: Sequence[Phase]) -> None:
    """A strip above accuracies in the colours of the phases, which change half way between measured steps."""
    edges = [*steps[:1], *(math.sqrt(low * high) for low, high in pairwise(steps)), *steps[-1:]]
    named = set()
    for phase, group in groupby(enumerate(phases), key=itemgetter(1)):
        places = [place for place, _ in group]
        span = axes.axvspan(edges[places[0]], edges[places[-1] + 1], *_STRIP, color=phase.color, linewidth=0)
        if phase not in named:
            span.set_label(phase.label)
            named.add(phase)


def draw_columns(axes: Axes, curve: Sequence[Row], columns: Mapping[str, tuple[str, str, str]], ylabel: str) -> None:
    """Some columns of a curve against the step, each with a label, a colour and a line."""
    steps = [row.step for row in curve]
    for column, (label, color, line) in columns.items():
        values = [getattr(row, column) for row in curve]
        # A single point is no line.
        axes.plot(steps, values, line, color=color, label=label, marker="o" if len(steps) == 1 else None)
    axes.set_ylabel(ylabel)


def draw_ipr_histogram(
    axes: Axes, result: RunResult, outline: Literal["output", "before"] = "output", *, limit: float | None = None
) -> None:
    """How many neurons have which IPR, from 0 to `limit`, or if it is not given, to where all are shown.

    An outline shows those at the output too, if the network is not the two-layer one, or the same before training.
    The dead have no IPR and are counted in words.
    """
    what, _ = names_of_neurons(result)
    axes.set(xlabel=f"IPR of a {what.removesuffix('s')}", xlim=(0, 1))
    if result.neurons is None:
        say_instead(axes, "no network to measure" if result.status == "diverged" else _why_no_ipr(result))
        return
    dead = result.neurons.dead
    values = {"input": result.neurons.neuron_ipr[~dead]}
    if outline == "before":
        untrained = neuron_spectra(result.spec.model, initial_state(result.spec).weights, result.spec.task)
        assert untrained is not None
        values["before"] = untrained.neuron_ipr
    elif result.outputs is not None:
        values["output"] = result.outputs.neuron_ipr[~result.outputs.dead]
    limit = limit or ipr_limit(values.values())
    bins = np.linspace(0, limit, _IPR_BINS + 1).tolist()
    axes.set_xlim(0, limit)
    axes.xaxis.set_major_locator(MaxNLocator(4))  # longer numbers of a close-up fit too
    note = "all dead" if dead.all() else f"mean {result.neurons.mean_ipr:.2g}"
    if dead.any() and not dead.all():
        note += f", {int(dead.sum())} dead"
    axes.hist(values["input"], bins, color=INPUT_COLOR, edgecolor=BAR_EDGE, label=f"input, {note}")
    for name, color in (("output", OUTPUT_COLOR), ("before", "0.25")):
        if name in values:
            axes.hist(values[name], bins, histtype="step", color=color, linewidth=1.4, label=name)
            axes.legend(loc="upper right")
    count_neurons(axes, room=len(values) > 1)
    if len(values) == 1:  # no legend
        axes.annotate(note, (0.97, 0.95), xycoords="axes fraction", ha="right", va="top")


def names_of_neurons(result: RunResult) -> tuple[str, str]:
    """What a network's neurons are called, briefly and in full, as far as that is known without weights or code."""
    if result.weights is not None and not result.spec.unresolved:
        own = result.spec.model.input_neurons(result.weights)
        if own is not None and own.what != "neurons":
            return own.what, f"{own.what} of the {own.layer}"
    return "neurons", "neurons"


def _neurons_of(results: Iterable[RunResult]) -> str:
    """What those of several networks are called, if it is the same."""
    names = {names_of_neurons(result)[1] for result in results}
    return names.pop() if len(names) == 1 else "neurons"


def count_neurons(axes: Axes, *, room: bool = False) -> None:
    """A logarithmic axis of counts, on which a low mode is seen beside a high one; with room above for a legend."""
    before = axes.get_ylim()[1] if axes.get_yscale() == "log" else 0.0  # by another panel that shares the axis
    axes.set_yscale("log")
    highest = max(each.dataLim.y1 for each in axes.get_shared_y_axes().get_siblings(axes))  # the axis may be shared
    wanted = max(10, highest if math.isfinite(highest) else 0) * (6 if room else 2)
    axes.set_ylim(0.7, max(wanted, before))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))


def _why_no_ipr(result: RunResult) -> str:
    """As far as that is known without a user's code."""
    if result.spec.unresolved:
        return "no IPR: the task has no waves, or the network no neurons to measure"
    return "the task has no waves" if result.spec.task.waves() is None else "the network has no neurons with waves"


def draw_own_column(axes: Axes, result: RunResult, column: str) -> None:
    """What a user's measurement recorded, against the step."""
    known = [(row.step, row[column]) for row in result.curve if column in row and np.isfinite(row[column])]
    if not known:
        say_instead(axes, f"{column} was not measured")
        return
    axes.plot(*zip(*known, strict=True), color=BLUE, marker="o" if len(known) == 1 else None)
    axes.set(xscale="log", xlabel="optimisation step")


def ipr_limit(values: Iterable[npt.NDArray[np.float64]]) -> float:
    """The nearest end of an axis that has room for all these IPRs.

    >>> ipr_limit([np.array([0.03, 0.05]), np.array([0.3])])
    0.4
    """
    largest = max((float(ipr.max()) for ipr in values if len(ipr)), default=1.0)
    return next((limit for limit in _IPR_LIMITS if largest <= limit), 1.0)


def shared_ipr_limit(results: Iterable[RunResult]) -> float:
    """The nearest end of an axis that has room for all neurons of several networks, at both of their ends."""
    ends = [spectra for result in results for spectra in (result.neurons, result.outputs) if spectra]
    return ipr_limit(spectra.neuron_ipr[~spectra.dead] for spectra in ends)


def draw_norm_scales(axes: Axes, result: RunResult, ends: Sequence[str] = ("input", "output")) -> None:
    """|γ_k| of a norm against the IPR of the neuron that it scales, at the input and, of a deep network, the output."""
    axes.set(xlabel="IPR of a neuron", xlim=(0, 1))
    known = {"input": (result.neurons, INPUT_COLOR), "output": (result.outputs, OUTPUT_COLOR)}
    for name in ends:
        spectra, color = known[name]
        if spectra is None or spectra.norm_scale is None:
            continue
        end = f"{name}: " if result.outputs is not None else ""
        label = f"{end}rank correlation {spectra.norm_correlation:.2f}"
        scales = np.abs(spectra.norm_scale)  # many are nearly zero: the end of the axis must not cut them in half
        axes.plot(spectra.neuron_ipr, scales, ".", color=color, markersize=3, label=label, clip_on=False)
    if axes.lines:
        axes.margins(y=0.2)  # room for the legend
        axes.legend(loc="upper left", markerscale=3)
    else:
        axes.annotate("no norm", (0.03, 0.97), xycoords="axes fraction", va="top")


def draw_attention(axes: Axes, result: RunResult, pair: tuple[int, int]) -> None:
    """How much of its attention each head gives to m, from n's position (which is read) and from m's."""
    patterns = result.attention(pair)  # [layers, heads, 2, 2]
    layers, heads = patterns.shape[:2]
    places = np.arange(layers * heads)
    for query, (name, color) in enumerate((("from m", OUTPUT_COLOR), ("from n", INPUT_COLOR))):
        axes.bar(places - 0.2 + 0.4 * query, patterns[:, :, query, 0].ravel(), 0.38, color=color, label=name)
    named = [(layer, head) for layer in range(1, layers + 1) for head in range(1, heads + 1)]
    axes.set_xticks(places, [f"{layer}.{head}" if layers > 1 else str(head) for layer, head in named])
    axes.set(xlabel=f"{'layer and ' if layers > 1 else ''}head, for the pair {pair}", ylim=(0, 1))
    axes.legend(loc="upper right")


def _unusual_corruption(spec: RunSpec) -> str:
    kind = spec.task.corruption_kind
    return "" if kind == RunSpec().task.corruption_kind else f" {short_name(kind)}"


def settings_line(result: RunResult) -> str:
    """The settings that differ most between runs, for a title."""
    spec = result.spec
    parts = [
        spec.task.describe(),
        f"α = {spec.task.data_fraction:g}",
        f"ξ = {spec.task.corruption:g}{_unusual_corruption(spec)}",
        f"wd = {spec.optimizer.weight_decay:g}",
    ]
    if spec.model.describe() != RunSpec().model.describe():
        parts.insert(1, spec.model.describe())
    parts += spec.model.details()
    if spec.training.batch_size:
        parts.append(f"B = {spec.training.batch_size}")
    if spec.training.loss != "mse":
        parts.append(spec.training.loss)
    if spec.optimizer.describe() != RunSpec().optimizer.describe():
        parts.append(spec.optimizer.describe())
    if spec.regularizer.acts:
        parts.append(spec.regularizer.describe())
    if spec.optimizer.learning_rate != RunSpec().optimizer.learning_rate:
        parts.append(f"lr = {spec.optimizer.learning_rate:g}")
    return ", ".join(parts)

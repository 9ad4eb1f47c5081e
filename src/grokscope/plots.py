"""Pictures of single runs (curves, IPR histograms) and of sweeps (phase diagrams)."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from grokscope.errors import GrokscopeError
from grokscope.phases import Phase
from grokscope.result import RunResult
from grokscope.sweep.diagram import DIVERGED, OUTCOMES, Cell, Panel, PhaseDiagram
from grokscope.sweep.plan import Axis

STYLE = Path(__file__).with_name("grokscope.mplstyle")

_ACCURACIES = {  # column of the curve → label, colour, line
    "train_accuracy": ("train", "#0072B2", "-"),
    "test_accuracy": ("test", "#D55E00", "-"),
    "corrupted_accuracy": ("corrupted: as trained", "#CC79A7", "--"),
    "recovered_accuracy": ("corrupted: recovered", "#009E73", "--"),
}
_INPUT, _OUTPUT = "#56B4E9", "#D55E00"  # ends of a network
_IPR_BINS = np.linspace(0, 1, 41)


def draw_runs(
    results: Sequence[RunResult], titles: Sequence[str], *, attention_of: tuple[int, int] | None = None
) -> Figure:
    """One column for each run: its accuracies, the IPR histogram of its neurons, and what else it has to show.

    Where there is a norm, that is its scales against the IPR of the neurons they scale; of a Transformer, if a pair
    (m, n) is given, its attention.
    """
    panels: dict[str, Callable[[Axes, RunResult], None]] = {"accuracy": draw_accuracies, "neurons": draw_ipr_histogram}
    if any(result.neurons is not None and result.neurons.norm_scale is not None for result in results):
        panels["|γ| of the norm"] = draw_norm_scales
    if attention_of is not None:
        panels["attention to m"] = partial(draw_attention, pair=attention_of)
    with style.context(STYLE):
        figure = Figure(figsize=(1.2 + 3.9 * len(results), 3.25 * len(panels)))
        axes = figure.subplots(len(panels), len(results), squeeze=False, sharey="row")
        for row, (label, draw) in enumerate(panels.items()):
            for column, result in enumerate(results):
                draw(axes[row, column], result)
            axes[row, 0].set_ylabel(label)
        for column, (result, title) in enumerate(zip(results, titles, strict=True)):
            outcome = result.phase.label if result.phase else "Diverged"
            axes[0, column].set_title(f"{_wrapped(title)}\n{outcome}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(handles) if len(results) > 1 else 2)
    return figure


def _wrapped(title: str) -> str:
    """In lines that fit above a column, broken between settings."""
    kept_together = title.replace(" ", "\N{NO-BREAK SPACE}").replace(",\N{NO-BREAK SPACE}", ", ")
    return "\n".join(wrap(kept_together, 44))


def draw_accuracies(axes: Axes, result: RunResult) -> None:
    """Accuracies against the step, on a logarithmic axis: what happens early is over within tens of steps."""
    steps = [row.step for row in result.curve]
    for column, (label, color, line) in _ACCURACIES.items():
        values = np.array([getattr(row, column) for row in result.curve])
        if not np.isnan(values).all():
            axes.plot(steps, values, line, color=color, label=label)
    clean = 1 - result.dataset().corruption
    axes.axhline(clean, color="0.4", linewidth=0.8, linestyle=":")
    axes.annotate("1 − ξ", (1, clean), xytext=(2, 2), textcoords="offset points", color="0.4", fontsize=8.5)
    axes.set(xscale="log", xlabel="optimisation step", ylim=(-0.03, 1.03))


def draw_ipr_histogram(axes: Axes, result: RunResult) -> None:
    """How many neurons have which IPR; the dead have none and are counted in words."""
    axes.set(xlabel="IPR of a neuron", xlim=(0, 1))
    if result.neurons is None:
        axes.annotate("no network to measure", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    dead = result.neurons.dead
    axes.hist(
        result.neurons.neuron_ipr[~dead], bins=_IPR_BINS.tolist(), color=_INPUT, edgecolor="#1a5276", label="input"
    )
    if result.outputs is not None:
        live = result.outputs.neuron_ipr[~result.outputs.dead]
        axes.hist(live, bins=_IPR_BINS.tolist(), histtype="step", color=_OUTPUT, linewidth=1.4, label="output")
        axes.legend(loc="upper center")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    note = f"mean {result.neurons.mean_ipr:.2g}"
    if dead.any():
        note += f"\n{int(dead.sum())} dead"
    axes.annotate(note, (0.97, 0.95), xycoords="axes fraction", ha="right", va="top")


def draw_norm_scales(axes: Axes, result: RunResult) -> None:
    """|γ_k| of a norm against the IPR of the neuron that it scales, at the input and, of a deep network, the output."""
    axes.set(xlabel="IPR of a neuron", xlim=(0, 1))
    ends = (("input", result.neurons, _INPUT), ("output", result.outputs, _OUTPUT))
    notes = []
    for name, spectra, color in ends:
        if spectra is None or spectra.norm_scale is None:
            continue
        axes.plot(spectra.neuron_ipr, np.abs(spectra.norm_scale), ".", color=color, markersize=3, label=name)
        end = f"{name}: " if result.outputs is not None else ""
        notes.append(f"{end}rank correlation {spectra.norm_correlation:.2f}")
    axes.annotate("\n".join(notes) or "no norm", (0.03, 0.97), xycoords="axes fraction", va="top")


def draw_attention(axes: Axes, result: RunResult, pair: tuple[int, int]) -> None:
    """How much of its attention each head gives to m, from n's position (which is read) and from m's."""
    patterns = result.attention(pair)  # [layers, heads, 2, 2]
    layers, heads = patterns.shape[:2]
    places = np.arange(layers * heads)
    for query, (name, color) in enumerate((("from m", _OUTPUT), ("from n", _INPUT))):
        axes.bar(places - 0.2 + 0.4 * query, patterns[:, :, query, 0].ravel(), 0.38, color=color, label=name)
    named = [(layer, head) for layer in range(1, layers + 1) for head in range(1, heads + 1)]
    axes.set_xticks(places, [f"{layer}.{head}" if layers > 1 else str(head) for layer, head in named])
    axes.set(xlabel=f"{'layer and ' if layers > 1 else ''}head, for the pair {pair}", ylim=(0, 1))
    axes.legend(loc="upper right")


_PANELS_ABREAST = 6
_MOST_PANELS = 48  # that a person can take in, and matplotlib draw while one waits


def draw_phase_diagram(diagram: PhaseDiagram, *, accuracies: bool = False) -> Figure:
    """The panels side by side; above the phases, if wanted, the train and the test accuracies."""
    if len(diagram.panels) > _MOST_PANELS:
        raise GrokscopeError(
            f"the sweep {diagram.plan.name} has {len(diagram.panels)} panels; a picture shows at most {_MOST_PANELS}: "
            "write a .csv, or sweep fewer values (the first two axes are not panels)"
        )
    kinds = ("train", "test", "phase") if accuracies else ("phase",)
    abreast = min(len(diagram.panels), _PANELS_ABREAST)
    rows = -(-len(diagram.panels) // abreast) * len(kinds)
    with style.context(STYLE):
        figure = Figure(figsize=(1.6 + 2.9 * abreast, 0.9 + 2.9 * rows))
        grid = figure.subplots(rows, abreast, squeeze=False, sharex=True, sharey=True)
        for place, panel in enumerate(diagram.panels):
            block, column = divmod(place, abreast)
            for row, kind in enumerate(kinds, start=block * len(kinds)):
                axes = grid[row, column]
                if kind == "phase":
                    _draw_phases(axes, panel)
                else:
                    image = _draw_accuracies(axes, panel, kind)
                    if column == 0:
                        figure.colorbar(image, ax=grid[row], label=f"{kind} accuracy", shrink=0.9)
                if column == 0 and diagram.rows:
                    axes.set_ylabel(_axis_label(diagram.rows))
            grid[block * len(kinds), column].set_title(_panel_title(panel) or diagram.plan.name)
            _label_ticks(axes, diagram.columns, diagram.rows)
            axes.set_xlabel(_axis_label(diagram.columns))
        for axes in grid.flat:
            axes.set_visible(bool(axes.images))
        figure.legend(handles=_phase_handles(diagram), loc="outside lower center", ncols=min(4, 2 * abreast))
    return figure


def _draw_accuracies(axes: Axes, panel: Panel, kind: str) -> AxesImage:
    values = [[getattr(cell, f"{kind}_accuracy") for cell in cells] for cells in panel.cells]
    axes.grid(visible=False)
    return axes.imshow(np.array(values, float), vmin=0, vmax=1, cmap="viridis", origin="lower", aspect="auto")


_MISSING = "#ffffff"
_OUTCOME_COLORS = {**{phase.value: phase.color for phase in Phase}, DIVERGED: "#000000"}
_FIELD_LABELS = {
    "task.data_fraction": "data fraction α",
    "task.corruption": "corruption fraction ξ",
    "optimizer.weight_decay": "weight decay",
    "optimizer.learning_rate": "learning rate",
}


def _draw_phases(axes: Axes, panel: Panel) -> None:
    """Colours for outcomes, and marks for what needs a word: inferred, disagreeing, failed, missing."""
    codes = np.array([[OUTCOMES.index(cell.outcome) if cell.outcome else -1 for cell in row] for row in panel.cells])
    colors = ListedColormap([_MISSING, *(_OUTCOME_COLORS[outcome] for outcome in OUTCOMES)])
    axes.imshow(codes, cmap=colors, vmin=-1.5, vmax=len(OUTCOMES) - 0.5, origin="lower", aspect="auto")
    axes.grid(visible=False)
    cells = [(x, y, cell) for y, row in enumerate(panel.cells) for x, cell in enumerate(row)]
    inferred = [Rectangle((x - 0.5, y - 0.5), 1, 1) for x, y, cell in cells if cell.source == "inferred"]
    axes.add_collection(PatchCollection(inferred, facecolor="none", edgecolor="0.25", hatch="////", linewidth=0))
    for kind, applies in _MARKED.items():
        places = [(x, y) for x, y, cell in cells if applies(cell)]
        axes.plot(*zip(*places, strict=True) if places else ([], []), linestyle="", **_MARKS[kind])


_MARKED: dict[str, Callable[[Cell], bool]] = {
    "not run yet": lambda cell: cell.missing > 0,
    "failed": lambda cell: cell.failed > 0,
    "seeds disagree": lambda cell: not cell.seeds_agree,
}
_MARKS: dict[str, dict[str, Any]] = {
    "not run yet": {"marker": ".", "color": "0.6", "markersize": 3},
    "failed": {"marker": "x", "color": "#c00000", "markersize": 5},
    "seeds disagree": {"marker": "o", "color": "white", "markersize": 4, "markeredgecolor": "black"},
}


def _phase_handles(diagram: PhaseDiagram) -> list[Artist]:
    """The phases in the paper's order, then what else occurs."""
    cells = list(diagram.all_cells())
    handles: list[Artist] = [Patch(color=phase.color, label=phase.label) for phase in Phase]
    if any(cell.outcome == DIVERGED for cell in cells):
        handles.append(Patch(color=_OUTCOME_COLORS[DIVERGED], label="Diverged"))
    if any(cell.source == "inferred" for cell in cells):
        handles.append(Patch(facecolor="white", edgecolor="0.4", hatch="////", linewidth=0, label="inferred, not run"))
    for kind, applies in _MARKED.items():
        if any(map(applies, cells)):
            handles.append(Line2D([], [], linestyle="", label=kind, **_MARKS[kind]))
    return handles


def _label_ticks(axes: Axes, columns: Axis, rows: Axis | None) -> None:
    axes.set_xticks(*_ticks(columns))
    axes.tick_params(labelbottom=True)  # also where another row of panels is below
    axes.set_yticks(*_ticks(rows) if rows else ([], []))


def _ticks(axis: Axis) -> tuple[list[int], list[str]]:
    """At most five labels: the ends, and evenly spaced ones between."""
    count = min(len(axis), 5)
    places = sorted({round(i * (len(axis) - 1) / max(count - 1, 1)) for i in range(count)})
    values = [
        ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in axis.points[i]) for i in places
    ]
    return places, values


def _axis_label(axis: Axis) -> str:
    return ", ".join(_field_label(path) for path in axis.fields)


def _field_label(path: str) -> str:
    return _FIELD_LABELS.get(path, path.partition(".")[2].replace("_", " "))


def _panel_title(panel: Panel) -> str:
    return "\n".join(f"{_field_label(path)} {value}" for path, value in panel.fields.items())


def settings_line(result: RunResult) -> str:
    """The settings that differ most between runs, for a title."""
    spec = result.spec
    parts = [
        f"{spec.task.operation} mod {spec.task.modulus}",
        f"α = {spec.task.data_fraction:g}",
        f"ξ = {spec.task.corruption:g}",
        f"wd = {spec.optimizer.weight_decay:g}",
    ]
    if not spec.model.two_layer:
        parts.insert(1, spec.model.describe())
    if spec.model.dropout:
        parts.append(f"dropout = {spec.model.dropout:g}")
    if spec.model.norm != "none":
        parts.append(f"{spec.model.norm} norm")
    if spec.training.batch_size:
        parts.append(f"B = {spec.training.batch_size}")
    return ", ".join(parts)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure in the format of the path's ending; the absolute path."""
    check_figure_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with style.context(STYLE):
            figure.savefig(path)
    except OSError as error:
        raise GrokscopeError(f"cannot write the figure {path}: {error.strerror or error}") from None
    return path.resolve()


def check_figure_path(path: Path) -> None:
    """Refuse a path whose ending names no format, before anything is computed for it."""
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .png, .pdf or .svg")

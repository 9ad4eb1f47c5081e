"""What a figure gets in the end: a letter for every panel, and a line with the settings that all of it shares."""

import string
from collections.abc import Sequence
from textwrap import fill
from typing import NamedTuple

from matplotlib import style
from matplotlib.figure import Figure

from grokscope.plots.files import STYLE
from grokscope.spec import RunSpec
from grokscope.sweeps.plan import SEED, Plan


def finish(figure: Figure, words: str) -> Figure:
    """Letters for the panels and a quiet line above them, where a figure has none of its own."""
    with style.context(STYLE):
        letter_panels(figure)
        if not figure.get_suptitle():
            add_subtitle(figure, words)
    return figure


def letter_panels(figure: Figure) -> None:
    """Name panels (a), (b) … as a text would, if there are several and none has a name yet."""
    panels = [axes for axes in figure.axes if axes.get_visible() and axes.axison and axes.get_label() != "<colorbar>"]
    if len(panels) < 2 or any(axes.get_title().startswith(panel_letter(0)) for axes in panels):
        return
    for place, axes in enumerate(panels):
        if title := axes.get_title():
            axes.title.set_text(f"{panel_letter(place)}{title}")
        else:
            axes.set_title(f"{panel_letter(place)}{axes.get_title(loc='left')}".strip(), loc="left")


def panel_letter(place: int) -> str:
    """What a panel is called in a text.

    >>> panel_letter(0), panel_letter(27)
    ('(a) ', '(ab) ')
    """
    letters = string.ascii_lowercase
    return f"({(letters[place // 26 - 1] if place >= 26 else '') + letters[place % 26]}) "


def add_subtitle(figure: Figure, words: str) -> None:
    """A quiet line above all panels; several, broken between settings, if the figure is too narrow for one."""
    if words:
        kept_together = words.replace(" ", _NO_BREAK).replace(f",{_NO_BREAK}", ", ").replace(f"{_NO_BREAK}(", " (")
        lines = fill(kept_together, int(_LETTERS_PER_INCH * figure.get_figwidth()))
        figure.suptitle(lines.replace(_NO_BREAK, " "), fontsize="small", color="0.35", fontweight="normal")


_NO_BREAK = "\N{NO-BREAK SPACE}"
_LETTERS_PER_INCH = 14  # of the line above all panels


class _Group(NamedTuple):
    """Networks that share a base."""

    base: RunSpec
    varied: frozenset[str]  # fields
    seeds: int


_SIGNS = {
    "task.modulus": "p",
    "task.group": "group",
    "model.width": "N",
    "model.embed": "d",
    "task.data_fraction": "α",
    "task.corruption": "ξ",
    "optimizer.weight_decay": "weight decay",
    "model.dropout": "dropout",
    "training.batch_size": "B",
    "training.steps": "steps",
}
_SAID_IF_ANY = ("model.dropout",)  # most networks have none, and their figures need not say so


def shared_settings(
    plans: Sequence[Plan] = (), networks: Sequence[RunSpec] = (), seeds: int = 1, full_seeds: int = 1
) -> str:
    """What all networks of a figure share, and how many there are of each, perhaps out of more.

    >>> from grokscope.sweeps.axes import Axis
    >>> shared_settings(networks=[RunSpec(), RunSpec().updated({"model.width": 50})], seeds=3)
    'p = 97, α = 0.5, ξ = 0.35, weight decay = 0, steps = 2000, 3 seeds'
    >>> shared_settings([Plan("wd", axes=(Axis.over("optimizer.weight_decay", (0, 5)),))])
    'p = 97, N = 500, α = 0.5, ξ = 0.35, steps = 2000, one seed'
    >>> shared_settings([Plan("kinds", axes=(Axis.over("model.kind", ("mlp", "transformer")),))])
    'p = 97, α = 0.5, ξ = 0.35, weight decay = 0, steps = 2000, one seed'
    """
    groups = [
        _Group(
            plan.base,
            frozenset([*(path for axis in plan.axes for path in axis.fields), *plan.derived]),
            plan.seed_count,
        )
        for plan in plans
    ] + [_Group(spec, frozenset(), seeds) for spec in networks]
    if not groups:
        return ""
    varied = {path for group in groups for path in group.varied}
    kinds = {path.partition(".")[0] for path in varied if path.endswith(".kind")}  # each may have sizes of its own
    same = []
    for path, sign in _SIGNS.items():
        if path in varied or path.partition(".")[0] in kinds or not all(group.base.has(path) for group in groups):
            continue
        values = {group.base.value_of(path) for group in groups}
        if len(values) == 1 and values != {None}:
            value = values.pop()
            if path in _SAID_IF_ANY and not value:
                continue
            same.append(f"{sign} = {value:g}" if isinstance(value, float) else f"{sign} = {value}")
    counts = {group.seeds for group in groups}
    if SEED not in varied or len(counts) == 1:
        same.append(_seeds_in_words(max(counts), full_seeds))
    return ", ".join(same)


def _seeds_in_words(seeds: int, full: int) -> str:
    """How many seeds there are of each network, and out of how many if there are fewer.

    >>> _seeds_in_words(1, 1), _seeds_in_words(3, 1), _seeds_in_words(1, 40)
    ('one seed', '3 seeds', '1 of 40 seeds')
    """
    if seeds < full:
        return f"{seeds} of {full} seeds"
    return "one seed" if seeds == 1 else f"{seeds} seeds"

"""Pictures of sweeps: phase diagrams."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from grokscope.errors import GrokscopeError
from grokscope.phases import Phase
from grokscope.plots.files import STYLE
from grokscope.plots.finishing import add_subtitle, letter_panels
from grokscope.plots.layout import columns_for
from grokscope.plots.palette import BLACK, RGB, contrast, paler, text_on
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import DIVERGED, Cell, Panel, PhaseDiagram
from grokscope.sweeps.labels import said, short_field, short_value

MOST_ABREAST = 4  # panels in a row, for which a page has room
_MOST_PANELS = 48  # that a person can take in, and matplotlib draw while one waits
_FEW_VALUES = 6  # of an axis: all of them are labelled


class ValueMap(NamedTuple):
    """A number for every cell of a diagram, NaN where there is none, and the range that the colours cover."""

    values: npt.NDArray[np.float64]  # [panels, rows, columns]
    lowest: float = 0.0
    highest: float = 1.0
    why_none: str = "there is none"  # where there is no number, for the legend


def draw_phase_diagram(
    diagram: PhaseDiagram,
    *,
    accuracies: bool = False,
    maps: Mapping[str, ValueMap] | None = None,
    subtitle: str = "",
) -> Figure:
    """The panels side by side; above the phases, if wanted, the train and the test accuracies, and other maps."""
    if len(diagram.panels) > _MOST_PANELS:
        raise GrokscopeError(
            f"the sweep {diagram.plan.name} has {len(diagram.panels)} panels; a picture shows at most {_MOST_PANELS}: "
            "write a .csv, or sweep fewer values (the first two axes are not panels)"
        )
    shown = {f"{kind} accuracy": _accuracy_map(diagram, kind) for kind in ("train", "test") if accuracies} | dict(
        maps or {}
    )
    kinds = (*shown, "phase")
    abreast = columns_for(len(diagram.panels), MOST_ABREAST)
    rows = math.ceil(len(diagram.panels) / abreast) * len(kinds)
    with style.context(STYLE):
        figure = Figure(figsize=(1.6 + 2.9 * abreast, 1.1 + (3.1 if shown else 2.9) * rows))
        grid = figure.subplots(rows, abreast, squeeze=False, sharex=True, sharey=True)
        for place, panel in enumerate(diagram.panels):
            block, column = divmod(place, abreast)
            for row, kind in enumerate(kinds, start=block * len(kinds)):
                axes = grid[row, column]
                if kind in shown:
                    mesh = _draw_values(axes, shown[kind], place, diagram)
                    if column == 0:
                        figure.colorbar(mesh, ax=grid[row], label=kind, shrink=0.9)
                else:
                    draw_phases(axes, panel, diagram)
                if column == 0 and diagram.rows:
                    axes.set_ylabel(axis_label(diagram.rows))
                title = panel_title(panel) or diagram.plan.name
                set_title(axes, f"{title}\n{kind}" if shown else title)
            label_ticks(axes, diagram)
            axes.set_xlabel(axis_label(diagram.columns))
        for axes in grid.flat:
            axes.set_visible(bool(axes.collections))
        letter_panels(figure)
        handles = [*phase_handles(diagram), *_handles_of_none(shown.values())]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(4, 2 * abreast))
        add_subtitle(figure, subtitle)
    return figure


def set_title(axes: Axes, words: str) -> None:
    """A title; a long one is quiet, so that it does not outweigh its panel."""
    quiet: dict[str, Any] = {"fontsize": "medium", "fontweight": "normal"} if words.count("\n") > 1 else {}
    axes.set_title(words, **quiet)


def _accuracy_map(diagram: PhaseDiagram, kind: str) -> ValueMap:
    cells = [[[getattr(cell, f"{kind}_accuracy") for cell in row] for row in panel.cells] for panel in diagram.panels]
    return ValueMap(np.array(cells, float), why_none="not run")


# Grey alone is Confusion.
_NO_VALUE: dict[str, Any] = {"facecolor": "0.95", "edgecolor": "0.75", "hatch": "////", "linewidth": 0}


def _draw_values(axes: Axes, shown: ValueMap, panel: int, diagram: PhaseDiagram) -> QuadMesh:
    axes.grid(visible=False)
    axes.patch.set(**_NO_VALUE)
    return axes.pcolormesh(
        *_cell_edges(diagram), shown.values[panel], vmin=shown.lowest, vmax=shown.highest, cmap="viridis"
    )


def _handles_of_none(maps: Iterable[ValueMap]) -> list[Artist]:
    """What it means that a cell of a map has no value, where there is such a cell."""
    reasons = dict.fromkeys(each.why_none for each in maps if np.isnan(each.values).any())
    return [Patch(**_NO_VALUE, label=f"hatched: {reason}") for reason in reasons]


_MISSING = "#ffffff"
_PALER = 0.3  # how much white is in the colour of a cell that was not run
_OUTCOME_COLORS = {**{phase.value: phase.color for phase in Phase}, DIVERGED: BLACK}
_FIELD_LABELS = {
    "task.data_fraction": "data fraction α",
    "task.corruption": "corruption fraction ξ",
    "optimizer.weight_decay": "weight decay",
    "optimizer.learning_rate": "learning rate",
}


Point = tuple[float, float]


def draw_phases(axes: Axes, panel: Panel, diagram: PhaseDiagram) -> None:
    """A colour for each outcome, paler where it is inferred; lines between phases; marks for what needs a word."""
    across, up = _cell_edges(diagram)
    colors = np.array([[_color(cell) for cell in row] for row in panel.cells])  # [rows, columns, 3]
    axes.pcolormesh(across, up, colors)
    axes.grid(visible=False)
    axes.add_collection(LineCollection(_borders(panel, across, up), colors="0.15", linewidths=0.9, capstyle="round"))
    places = (axis_places(diagram.columns), axis_places(diagram.rows))
    for kind, applies in _MARKED.items():
        marked = [
            (places[0][x], places[1][y])
            for y, row in enumerate(panel.cells)
            for x, cell in enumerate(row)
            if applies(cell)
        ]
        axes.plot(*zip(*marked, strict=True) if marked else ([], []), linestyle="", **_MARKS[kind])
    _name_regions(axes, panel, across, up)


_NAME_POINTS = (9.0, 7.0)  # of the names of regions; the smaller where there is no room
_LETTER = 0.57  # of the size: about how wide a letter is
_PANEL_POINTS = (165.0, 150.0)  # about how large a panel is


def _name_regions(axes: Axes, panel: Panel, across: npt.NDArray[np.float64], up: npt.NDArray[np.float64]) -> None:
    """The name of each phase within it, where there is room for it."""
    outcomes = np.array([[cell.outcome or "" for cell in row] for row in panel.cells])  # [rows, columns]
    inferred = np.array([[cell.source == "inferred" for cell in row] for row in panel.cells])
    for phase in Phase:
        own = outcomes == phase.value
        tints = {(_PALER,): own & inferred, (0.0,): own & ~inferred, (0.0, _PALER): own}  # one of them, or both
        for size, (tint, cells), end in product(_NAME_POINTS, tints.items(), " \n"):
            words = phase.label.replace(" ", end)
            if middle := _room_for(words, size, cells, across, up):
                color, stroke = text_on([paler(phase.color, white) for white in tint])
                effects = [withStroke(linewidth=1.8, foreground=stroke)] if stroke else []
                axes.text(*middle, words, fontsize=size, color=color, path_effects=effects, ha="center", va="center")
                break


def _room_for(
    words: str, size: float, own: npt.NDArray[np.bool_], across: npt.NDArray[np.float64], up: npt.NDArray[np.float64]
) -> Point | None:
    """The middle of the block of own cells, large enough for words of a size, that is nearest to their centre.

    >>> cells = np.array([[True, True, True], [False, False, True]])
    >>> _room_for("short", 7, cells, np.arange(4.0), np.arange(3.0))
    (1.5, 0.5)
    >>> _room_for("a rather long name for two of three cells", 7, cells, np.arange(4.0), np.arange(3.0)) is None
    True
    """
    lines = words.split("\n")
    width = (_LETTER * size * max(map(len, lines)) + 4) / _PANEL_POINTS[0] * (across[-1] - across[0])
    height = (1.25 * size * len(lines)) / _PANEL_POINTS[1] * (up[-1] - up[0])
    columns, rows = _blocks(across, width), _blocks(up, height)
    rooms = [
        ((across[left] + across[right]) / 2, (up[low] + up[high]) / 2)
        for low, high in rows
        for left, right in columns
        if own[low:high, left:right].all()
    ]
    if not rooms:
        return None
    y, x = (np.argwhere(own) + 0.5).mean(axis=0)
    centre = np.interp(x, range(len(across)), across), np.interp(y, range(len(up)), up)
    extent = across[-1] - across[0], up[-1] - up[0]
    near = min(rooms, key=lambda room: math.hypot((room[0] - centre[0]) / extent[0], (room[1] - centre[1]) / extent[1]))
    return float(near[0]), float(near[1])


def _blocks(edges: npt.NDArray[np.float64], length: float) -> list[tuple[int, int]]:
    """The shortest runs of cells that have this length, from each cell on."""
    ends = np.searchsorted(edges, edges[:-1] + length * (1 - 1e-9))
    return [(start, int(end)) for start, end in enumerate(ends) if end < len(edges)]


def _color(cell: Cell) -> RGB:
    color = _OUTCOME_COLORS[cell.outcome] if cell.outcome else _MISSING
    return paler(color, _PALER if cell.source == "inferred" else 0.0)


def _borders(panel: Panel, across: npt.NDArray[np.float64], up: npt.NDArray[np.float64]) -> list[tuple[Point, Point]]:
    """The sides that two cells of different outcomes share."""
    outcomes = [[cell.outcome for cell in row] for row in panel.cells]
    upright = [
        ((across[x], up[y]), (across[x], up[y + 1]))
        for y, row in enumerate(outcomes)
        for x, (left, right) in enumerate(pairwise(row), 1)
        if left != right
    ]
    level = [
        ((across[x], up[y]), (across[x + 1], up[y]))
        for y, rows in enumerate(pairwise(outcomes), 1)
        for x, (below, above) in enumerate(zip(*rows, strict=True))
        if below != above
    ]
    return upright + level


def axis_places(axis: Axis | None) -> list[float]:
    """Where the values of an axis lie: where they are as numbers, if they grow; otherwise side by side.

    >>> axis_places(Axis.over("task.corruption", (0, 0.2, 0.9))), axis_places(Axis.over("model.activation", ("relu",)))
    ([0.0, 0.2, 0.9], [0.0])
    """
    values = [point[0] for point in axis.points] if axis and len(axis.fields) == 1 else []
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values) and all(low < high for low, high in pairwise(numbers)) and numbers:
        return numbers
    return [float(place) for place in range(len(axis) if axis else 1)]


def _cell_edges(diagram: PhaseDiagram) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return _edges(axis_places(diagram.columns)), _edges(axis_places(diagram.rows))


def _edges(places: Sequence[float]) -> npt.NDArray[np.float64]:
    """Where cells begin and end: half way between their neighbours; the outer ones are symmetric.

    >>> _edges([0, 2, 3]).tolist()
    [-1.0, 1.0, 2.5, 3.5]
    """
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    middles = [(low + high) / 2 for low, high in pairwise(places)]
    return np.array([2 * places[0] - middles[0], *middles, 2 * places[-1] - middles[-1]])


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


def phase_handles(*diagrams: PhaseDiagram) -> list[Artist]:
    """The phases that occur, in the paper's order, then what else does."""
    cells = [cell for diagram in diagrams for cell in diagram.all_cells()]
    found = {cell.outcome for cell in cells}
    handles: list[Artist] = [Patch(color=phase.color, label=phase.label) for phase in Phase if phase.value in found]
    if DIVERGED in found:
        handles.append(Patch(color=_OUTCOME_COLORS[DIVERGED], label="Diverged"))
    if inferred := {cell.outcome for cell in cells if cell.source == "inferred" and cell.outcome}:
        handles.append(_two_tones(inferred))
    for kind, applies in _MARKED.items():
        if any(map(applies, cells)):
            handles.append(Line2D([], [], linestyle="", label=kind, **_MARKS[kind]))
    if settled := [words for diagram in diagrams if (words := diagram.settling())]:
        handles.append(Line2D([], [], linestyle="", label=settled[0]))
    return handles


def _two_tones(outcomes: set[str]) -> Line2D:
    """A colour and the paler one beside it, of the outcome where they differ most."""
    pairs = [(_OUTCOME_COLORS[outcome], paler(_OUTCOME_COLORS[outcome], _PALER)) for outcome in sorted(outcomes)]
    color, pale = max(pairs, key=lambda pair: contrast(*pair))
    return Line2D(
        [],
        [],
        linestyle="",
        marker="s",
        markersize=10,
        fillstyle="left",
        markerfacecolor=color,
        markerfacecoloralt=pale,
        markeredgewidth=0,
        label="paler: inferred, not run",
    )


def label_ticks(axes: Axes, diagram: PhaseDiagram) -> None:
    """The values of the two axes of a diagram: round numbers where they are numbers, all of them where they are few."""
    axes.tick_params(labelbottom=True)  # also where another row of panels is below
    for axis, ticks in ((diagram.columns, axes.set_xticks), (diagram.rows, axes.set_yticks)):
        if axis is None:
            ticks([])
        elif len(axis) <= _FEW_VALUES or axis_places(axis) == list(range(len(axis))):
            ticks(*_own_ticks(axis))
        else:
            low, high = axis_places(axis)[0], axis_places(axis)[-1]
            ticks([tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high])


def _own_ticks(axis: Axis) -> tuple[list[float], list[str]]:
    """At most six labels: the ends, and evenly spaced ones between."""
    count = min(len(axis), _FEW_VALUES)
    chosen = sorted({round(i * (len(axis) - 1) / max(count - 1, 1)) for i in range(count)})
    places = axis_places(axis)
    labels = [", ".join(shown_value(path, value) for path, value in said(axis.at(i)).items()) for i in chosen]
    return [places[i] for i in chosen], labels


def shown_value(path: str, value: object, digits: str = "g") -> str:
    """A value of a field, for a reader."""
    return f"{value:{digits}}" if isinstance(value, float) else short_value(path, value)


def axis_label(axis: Axis) -> str:
    """What an axis of a diagram is, for a reader."""
    return ", ".join(field_label(path) for path in axis.fields)


def field_label(path: str) -> str:
    """A field of a spec, for a reader.

    >>> field_label("model.width"), field_label("task.kind")
    ('width', 'task')
    """
    return _FIELD_LABELS.get(path, short_field(path).replace("_", " "))


def panel_title(panel: Panel) -> str:
    """What tells a panel from the others."""
    shown = said(panel.fields).items()
    return "\n".join(f"{field_label(path)} {shown_value(path, value, '.3g')}" for path, value in shown)

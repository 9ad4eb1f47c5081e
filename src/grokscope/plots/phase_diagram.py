"""Pictures of sweeps: phase diagrams."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from grokscope.errors import GrokscopeError
from grokscope.phases import Phase
from grokscope.plots.files import STYLE
from grokscope.plots.palette import BLACK
from grokscope.sweeps.diagram import DIVERGED, OUTCOMES, Cell, Panel, PhaseDiagram
from grokscope.sweeps.labels import said, short_field, short_value
from grokscope.sweeps.plan import Axis

_PANELS_ABREAST = 6
_MOST_PANELS = 48  # that a person can take in, and matplotlib draw while one waits


class ValueMap(NamedTuple):
    """A number for every cell of a diagram, NaN where there is none, and the range that the colours cover."""

    values: npt.NDArray[np.float64]  # [panels, rows, columns]
    lowest: float = 0.0
    highest: float = 1.0


def draw_phase_diagram(
    diagram: PhaseDiagram, *, accuracies: bool = False, maps: Mapping[str, ValueMap] | None = None
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
    kinds = (*shown, None)  # None are the phases
    abreast = min(len(diagram.panels), _PANELS_ABREAST)
    rows = -(-len(diagram.panels) // abreast) * len(kinds)
    with style.context(STYLE):
        figure = Figure(figsize=(1.6 + 2.9 * abreast, 0.9 + 2.9 * rows))
        grid = figure.subplots(rows, abreast, squeeze=False, sharex=True, sharey=True)
        for place, panel in enumerate(diagram.panels):
            block, column = divmod(place, abreast)
            for row, kind in enumerate(kinds, start=block * len(kinds)):
                axes = grid[row, column]
                if kind is None:
                    draw_phases(axes, panel)
                else:
                    image = _draw_values(axes, shown[kind], place)
                    if column == 0:
                        figure.colorbar(image, ax=grid[row], label=kind, shrink=0.9)
                if column == 0 and diagram.rows:
                    axes.set_ylabel(axis_label(diagram.rows))
            grid[block * len(kinds), column].set_title(panel_title(panel) or diagram.plan.name)
            label_ticks(axes, diagram.columns, diagram.rows)
            axes.set_xlabel(axis_label(diagram.columns))
        for axes in grid.flat:
            axes.set_visible(bool(axes.images))
        figure.legend(handles=phase_handles(diagram), loc="outside lower center", ncols=min(4, 2 * abreast))
    return figure


def _accuracy_map(diagram: PhaseDiagram, kind: str) -> ValueMap:
    cells = [[[getattr(cell, f"{kind}_accuracy") for cell in row] for row in panel.cells] for panel in diagram.panels]
    return ValueMap(np.array(cells, float))


def _draw_values(axes: Axes, shown: ValueMap, panel: int) -> AxesImage:
    axes.grid(visible=False)
    return axes.imshow(
        shown.values[panel], vmin=shown.lowest, vmax=shown.highest, cmap="viridis", origin="lower", aspect="auto"
    )


_MISSING = "#ffffff"
_OUTCOME_COLORS = {**{phase.value: phase.color for phase in Phase}, DIVERGED: BLACK}
_FIELD_LABELS = {
    "task.data_fraction": "data fraction α",
    "task.corruption": "corruption fraction ξ",
    "optimizer.weight_decay": "weight decay",
    "optimizer.learning_rate": "learning rate",
}


def draw_phases(axes: Axes, panel: Panel) -> None:
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


def phase_handles(*diagrams: PhaseDiagram) -> list[Artist]:
    """The phases in the paper's order, then what else occurs."""
    cells = [cell for diagram in diagrams for cell in diagram.all_cells()]
    handles: list[Artist] = [Patch(color=phase.color, label=phase.label) for phase in Phase]
    if any(cell.outcome == DIVERGED for cell in cells):
        handles.append(Patch(color=_OUTCOME_COLORS[DIVERGED], label="Diverged"))
    if any(cell.source == "inferred" for cell in cells):
        handles.append(Patch(facecolor="white", edgecolor="0.4", hatch="////", linewidth=0, label="inferred, not run"))
    for kind, applies in _MARKED.items():
        if any(map(applies, cells)):
            handles.append(Line2D([], [], linestyle="", label=kind, **_MARKS[kind]))
    return handles


def label_ticks(axes: Axes, columns: Axis, rows: Axis | None) -> None:
    """The values of the two axes of a diagram."""
    axes.set_xticks(*_ticks(columns))
    axes.tick_params(labelbottom=True)  # also where another row of panels is below
    axes.set_yticks(*_ticks(rows) if rows else ([], []))


def _ticks(axis: Axis) -> tuple[list[int], list[str]]:
    """At most five labels: the ends, and evenly spaced ones between."""
    count = min(len(axis), 5)
    places = sorted({round(i * (len(axis) - 1) / max(count - 1, 1)) for i in range(count)})
    return places, [", ".join(shown_value(path, value) for path, value in said(axis.at(i)).items()) for i in places]


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
    return "\n".join(f"{field_label(path)} {shown_value(path, value, '.4g')}" for path, value in shown)

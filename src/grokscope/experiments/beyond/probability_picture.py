"""Pictures of how likely phases are along a line, over many seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grokscope.phases import Phase
from grokscope.plots.files import STYLE
from grokscope.plots.phase_diagram import axis_label, field_label
from grokscope.sweeps.diagram import Cell, PhaseDiagram
from grokscope.sweeps.plan import GRID

FloatArray = npt.NDArray[np.float64]
_HATCHED: dict[str, Any] = {"edgecolor": "0.25", "linewidth": 0}


def draw_phase_probabilities(lines: Sequence[PhaseDiagram]) -> Figure:
    """A column for each row of each diagram: stacked shares of the seeds above, intervals of each phase below."""
    rows = [(line, row, cells) for line in lines for row, cells in enumerate(line.panels[0].cells)]
    with style.context(STYLE):
        figure = Figure(figsize=(0.9 + 3.6 * len(rows), 6.6))
        grid = figure.subplots(2, len(rows), squeeze=False, sharex="col", sharey="row")
        for (above, below), (line, row, cells) in zip(grid.T, rows, strict=True):
            places = np.array([point[0] for point in line.columns.points], float)
            _draw_shares(above, places, cells)
            _draw_intervals(below, places, cells)
            fields = _fixed(line) | (line.rows.at(row) if line.rows else {})
            above.set_title("\n".join(f"{field_label(path)} {value}" for path, value in fields.items()))
            below.set_xlabel(axis_label(line.columns))
        grid[0, 0].set_ylabel("share of the seeds")
        grid[1, 0].set_ylabel("probability")
        every = [cell for _, _, cells in rows for cell in cells]
        handles = [Patch(facecolor=phase.color, edgecolor="0.3", label=phase.label) for phase in _occurring(every)]
        if any(map(_inferred, every)):
            handles.append(Patch(facecolor="white", hatch="////", label="some seeds inferred, not run", **_HATCHED))
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _occurring(cells: Sequence[Cell]) -> list[Phase]:
    return [phase for phase in Phase if any(cell.counts.get(phase.value) for cell in cells)]


def _fixed(line: PhaseDiagram) -> dict[str, object]:
    """Data fraction or corruption: that along which the line does not run."""
    task = line.plan.base.task
    values: dict[str, object] = dict(zip(GRID, (task.data_fraction, task.corruption), strict=True))
    return {path: value for path, value in values.items() if path not in line.columns.fields}


def _draw_shares(axes: Axes, places: FloatArray, cells: Sequence[Cell]) -> None:
    width = float(np.diff(places).min()) if len(places) > 1 else 1.0
    bottom = np.zeros(len(cells))
    for phase in Phase:
        shares = np.array([cell.interval(phase.value)[0] for cell in cells])
        axes.bar(places, shares, width, bottom=bottom, color=phase.color, edgecolor="white", linewidth=0.4)
        bottom += np.nan_to_num(shares)
    inferred = [place for place, cell in zip(places, cells, strict=True) if _inferred(cell)]
    axes.bar(inferred, [1.0] * len(inferred), width, facecolor="none", hatch="////", **_HATCHED)
    axes.set_ylim(0, 1)
    axes.grid(visible=False)


def _inferred(cell: Cell) -> bool:
    """Whether a refined sweep has left out seeds of the cell, because all cells around it agree."""
    return cell.runs < sum(cell.counts.values())


def _draw_intervals(axes: Axes, places: FloatArray, cells: Sequence[Cell]) -> None:
    shown = _occurring(cells)
    width = float(np.diff(places).min()) if len(places) > 1 else 1.0
    for number, phase in enumerate(shown):
        middle, low, high = np.array([cell.interval(phase.value) for cell in cells]).T
        beside = places + 0.6 * width * (number - (len(shown) - 1) / 2) / len(shown)  # so that none hides another
        axes.errorbar(
            beside,
            middle,
            yerr=np.abs([middle - low, high - middle]),
            color=phase.color,
            marker="o",
            markersize=4.5,
            markeredgecolor="0.25",
            linewidth=1.2,
            elinewidth=1.2,
        )
    axes.set_ylim(-0.03, 1.03)

"""Several phase diagrams in one picture, and beside them the neurons of some networks (Figures 3, 7, 13, 14)."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Literal

from matplotlib import style
from matplotlib.figure import Figure

from grokscope.plots.files import STYLE
from grokscope.plots.finishing import panel_letter
from grokscope.plots.phase_diagram import axis_label, draw_phases, label_ticks, panel_title, phase_handles
from grokscope.plots.runs import draw_ipr_histogram, shared_ipr_limit
from grokscope.result import RunResult
from grokscope.sweeps.diagram import PhaseDiagram


def draw_phase_diagrams(
    diagrams: Sequence[PhaseDiagram],
    names: Sequence[str] = (),
    beside: Sequence[Mapping[str, RunResult]] = (),
    outline: Literal["output", "before"] = "output",
) -> Figure:
    """One row for each diagram: its panels, then an IPR histogram for each network that stands beside it.

    The histograms of a row share their axis, to be compared. What they have outlined is said in `draw_ipr_histogram`.
    """
    networks = [list(row.items()) for row in beside] or [[] for _ in diagrams]
    abreast = max(len(d.panels) + len(row) for d, row in zip(diagrams, networks, strict=True))
    with style.context(STYLE):
        figure = Figure(figsize=(1.3 + 2.9 * abreast, 1.1 + 3.1 * len(diagrams)))
        grid = figure.subplots(len(diagrams), abreast, squeeze=False)
        letters = map(panel_letter, count())
        for row, (diagram, results) in enumerate(zip(diagrams, networks, strict=True)):
            for place, panel in enumerate(diagram.panels):
                axes = grid[row, place]
                draw_phases(axes, panel, diagram)
                label_ticks(axes, diagram)
                axes.set_xlabel(axis_label(diagram.columns))
                axes.set_title(f"{next(letters)}{panel_title(panel) or diagram.plan.name}")
            if diagram.rows:
                label = axis_label(diagram.rows)
                grid[row, 0].set_ylabel(f"{names[row]}\n{label}" if names else label)
            limit = shared_ipr_limit(result for _, result in results)
            for place, (title, result) in enumerate(results, start=len(diagram.panels)):
                draw_ipr_histogram(grid[row, place], result, outline, limit=limit)
                grid[row, place].set(title=f"{next(letters)}{title}", ylabel="neurons")
            for unused in grid[row, len(diagram.panels) + len(results) :]:
                unused.remove()
        figure.legend(handles=phase_handles(*diagrams), loc="outside lower center", ncols=min(8, 2 * abreast))
    return figure

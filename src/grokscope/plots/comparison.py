"""Several phase diagrams in one picture, and beside them the neurons of some networks (Figures 3, 7, 13, 14)."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Literal

from matplotlib import style
from matplotlib.figure import Figure

from grokscope.plots.files import STYLE
from grokscope.plots.finishing import panel_letter
from grokscope.plots.layout import columns_for, figure_of_blocks
from grokscope.plots.phase_diagram import (
    MOST_ABREAST,
    axis_label,
    draw_phases,
    label_ticks,
    panel_title,
    phase_handles,
    set_title,
)
from grokscope.plots.runs import draw_ipr_histogram, names_of_neurons, shared_ipr_limit
from grokscope.result import RunResult
from grokscope.sweeps.diagram import PhaseDiagram


def draw_phase_diagrams(
    diagrams: Sequence[PhaseDiagram],
    names: Sequence[str] = (),
    beside: Sequence[Mapping[str, RunResult]] = (),
    outline: Literal["output", "before"] = "output",
) -> Figure:
    """A block for each diagram: its panels, then an IPR histogram for each network that stands beside it.

    The histograms of a block share their axis, to be compared. What they have outlined is said in
    `draw_ipr_histogram`.
    """
    networks = [list(row.items()) for row in beside] or [[] for _ in diagrams]
    counts = [len(diagram.panels) + len(row) for diagram, row in zip(diagrams, networks, strict=True)]
    with style.context(STYLE):
        figure, blocks = figure_of_blocks(counts, MOST_ABREAST, panel=(2.9, 3.1), margin=(1.3, 1.1))
        letters = map(panel_letter, count())
        for place, (block, diagram, results) in enumerate(zip(blocks, diagrams, networks, strict=True)):
            abreast = columns_for(len(block), MOST_ABREAST)
            for at, (axes, panel) in enumerate(zip(block, diagram.panels, strict=False)):
                draw_phases(axes, panel, diagram)
                label_ticks(axes, diagram)
                axes.set_xlabel(axis_label(diagram.columns))
                set_title(axes, f"{next(letters)}{panel_title(panel) or diagram.plan.name}")
                if diagram.rows and at % abreast == 0:
                    label = axis_label(diagram.rows)
                    axes.set_ylabel(f"{names[place]}\n{label}" if names else label)
            limit = shared_ipr_limit(result for _, result in results)
            for axes, (title, result) in zip(block[len(diagram.panels) :], results, strict=True):
                draw_ipr_histogram(axes, result, outline, limit=limit)
                axes.set(title=f"{next(letters)}{title}", ylabel=names_of_neurons(result)[1])
        figure.legend(handles=phase_handles(*diagrams), loc="outside lower center", ncols=4)
    return figure

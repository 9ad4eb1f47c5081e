"""Figures that are phase diagrams."""

from collections.abc import Callable

from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing
from grokscope.plots import draw_phase_diagram
from grokscope.plots.phase_diagram import settings_line
from grokscope.sweeps.plan import GRID, Plan


def drawing_of(plan: Plan, *, accuracies: bool = False) -> Callable[[Evidence], Drawing]:
    """A function that draws a diagram: its panels and, if wanted, the accuracies behind them above."""

    def draw(evidence: Evidence) -> Drawing:
        diagram = evidence.diagram(plan)
        figure = draw_phase_diagram(diagram, accuracies=accuracies, subtitle=subtitle_of(evidence, plan))
        return Drawing(figure, diagram.to_columns())

    return draw


def subtitle_of(evidence: Evidence, *plans: Plan) -> str:
    """The sizes that the networks of some diagrams share, and the paper's where theirs are smaller."""
    own = settings_line([evidence.scale.diagram(plan) for plan in plans])
    if not Needs(diagrams=plans).reduced(evidence.scale):
        return own
    papers = settings_line(plans)
    if own != papers:
        return f"{own} (smaller than the paper's: {papers})"
    return f"{own} ({_cells_of(evidence.scale.diagram(plans[0]))} cells of the paper's {_cells_of(plans[0])})"


def _cells_of(plan: Plan) -> str:
    """The size of a diagram's panels.

    >>> from grokscope.sweeps.plan import Axis
    >>> _cells_of(Plan("3a", axes=(Axis.over("task.data_fraction", (0.1, 0.9)), Axis.over("task.corruption", (0,)))))
    '2 × 1'
    """
    return " × ".join(str(len(axis)) for axis in plan.axes if axis.fields[0] in GRID)

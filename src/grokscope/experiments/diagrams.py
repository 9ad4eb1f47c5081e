"""Figures that are one phase diagram."""

from collections.abc import Callable

from grokscope.experiments.evidence import Evidence
from grokscope.experiments.experiment import Drawing
from grokscope.plots import draw_phase_diagram
from grokscope.sweeps.plan import Plan


def drawing_of(plan: Plan, *, accuracies: bool = False) -> Callable[[Evidence], Drawing]:
    """A function that draws a diagram: its panels and, if wanted, the accuracies behind them above."""

    def draw(evidence: Evidence) -> Drawing:
        diagram = evidence.diagram(plan)
        return Drawing(draw_phase_diagram(diagram, accuracies=accuracies), diagram.to_columns())

    return draw

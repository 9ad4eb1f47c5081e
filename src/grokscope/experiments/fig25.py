"""Figure 25: the accuracies behind the phase diagrams with dropout."""

from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.fig03 import DROPOUT
from grokscope.experiments.scale import Scale
from grokscope.plots import draw_phase_diagram


def needs(scale: Scale) -> Needs:
    """The diagram of Figure 3(b)."""
    return Needs(diagrams=(DROPOUT,))


def draw(evidence: Evidence) -> Drawing:
    """Train accuracy, test accuracy and phase, one below the other."""
    diagram = evidence.diagram(DROPOUT)
    return Drawing(draw_phase_diagram(diagram, accuracies=True), diagram.to_columns())


EXPERIMENT = Experiment(
    name="fig25",
    title="Accuracies over data and corruption, with dropout",
    caption="The diagrams of Figure 3 (b) with the accuracies that they are made from: on the training labels, wrong "
    "ones included, and on the test set. Cells whose phase is inferred have none.",
    needs=needs,
    draw=draw,
)

"""Figure 25: the accuracies behind the phase diagrams with dropout."""

from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import DROPOUT
from grokscope.experiments.scale import Scale


def needs(scale: Scale) -> Needs:
    """The diagram of Figure 3(b)."""
    return Needs(diagrams=(DROPOUT,))


EXPERIMENT = Experiment(
    name="fig25",
    title="Accuracies over data and corruption, with dropout",
    caption="The diagrams of Figure 3 (b) with the accuracies behind them: on the training labels, including the "
    "wrong ones, and on the test set. Inferred cells have none.",
    needs=needs,
    draw=drawing_of(DROPOUT, accuracies=True),
)

"""Figure 16: an MLP on images of digits with wrong labels, which is out of reach here."""

from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.scale import Scale

_WHY = "it is made from images (MNIST), and grokscope does not read image data yet."


def needs(scale: Scale) -> Needs:
    """Nothing that could be run."""
    return Needs()


def draw(evidence: Evidence) -> Drawing:
    """Never called: an experiment that is unavailable is refused before."""
    raise NotImplementedError(_WHY)


EXPERIMENT = Experiment(
    name="fig16",
    title="A four-layer MLP on MNIST with wrong labels (not available)",
    caption="Accuracies of a four-layer ReLU MLP on images of digits, some of them labelled wrongly, with growing "
    "weight decay and dropout.",
    needs=needs,
    draw=draw,
    unavailable=_WHY,
)

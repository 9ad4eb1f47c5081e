"""Figure 16: an MLP on images of digits with wrong labels, which is out of reach here."""

from grokscope.experiments.experiment import Experiment

EXPERIMENT = Experiment(
    name="fig16",
    title="A four-layer MLP on MNIST with wrong labels (not available)",
    caption="Accuracies of a four-layer ReLU MLP on images of digits, some of them labelled wrongly, with growing "
    "weight decay and dropout.",
    unavailable="it is made from images (MNIST), and grokscope does not read image data yet.",
)

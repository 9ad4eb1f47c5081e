"""Figure 24: the accuracies behind the phase diagrams with weight decay."""

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import WEIGHT_DECAY
from grokscope.experiments.quantities.regions import median_in
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase


def needs(scale: Scale) -> Needs:
    """The diagram of Figure 3(a)."""
    return Needs(diagrams=(WEIGHT_DECAY,))


EXPERIMENT = Experiment(
    name="fig24",
    title="Accuracies over data and corruption, with weight decay",
    caption="The diagrams of Figure 3 (a) with the accuracies behind them: on the training labels, including the "
    "wrong ones, and on the test set. Inferred cells have none.",
    needs=needs,
    draw=drawing_of(WEIGHT_DECAY, accuracies=True),
    claims=(
        Claim(
            "memorization-guesses",
            "Section 2, Figure 24",
            "Networks that memorise fit nearly all training labels and only guess on the test set.",
            (
                Check(
                    "median train accuracy of Memorization at weight decay 0",
                    median_in({"optimizer.weight_decay": 0}, Phase.MEMORIZATION, lambda train, test, xi: train),
                    low=0.98,
                    of=WEIGHT_DECAY,
                ),
                Check(
                    "median test accuracy of Memorization at weight decay 0",
                    median_in({"optimizer.weight_decay": 0}, Phase.MEMORIZATION, lambda train, test, xi: test),
                    high=0.05,
                    of=WEIGHT_DECAY,
                ),
            ),
        ),
        Claim(
            "full-inversion-plateau",
            "Section 2, Figure 24",
            "In Full Inversion the train accuracy is the share of labels that are right, and the test accuracy is 1.",
            (
                Check(
                    "median distance of train accuracy from 1 − ξ in Full Inversion at weight decay 15",
                    median_in(
                        {"optimizer.weight_decay": 15},
                        Phase.FULL_INVERSION,
                        lambda train, test, xi: abs(train - (1 - xi)),
                    ),
                    high=0.03,
                    of=WEIGHT_DECAY,
                ),
                Check(
                    "median test accuracy of Full Inversion at weight decay 15",
                    median_in({"optimizer.weight_decay": 15}, Phase.FULL_INVERSION, lambda train, test, xi: test),
                    low=0.99,
                    of=WEIGHT_DECAY,
                ),
            ),
        ),
    ),
)

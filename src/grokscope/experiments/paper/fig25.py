"""Figure 25: the accuracies behind the phase diagrams with dropout."""

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.diagrams import drawing_of
from grokscope.experiments.evidence import Needs
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig03 import DROPOUT
from grokscope.experiments.quantities.regions import median_in
from grokscope.experiments.scale import Scale
from grokscope.phases import Phase


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
    claims=(
        Claim(
            "dropout-full-inversion-plateau",
            "Section 2, Figure 25",
            "In Full Inversion with dropout the train accuracy is the share of labels that are right, and the test "
            "accuracy is 1.",
            (
                Check(
                    "median distance of train accuracy from 1 − ξ in Full Inversion at dropout 0.6",
                    median_in(
                        {"model.dropout": 0.6}, Phase.FULL_INVERSION, lambda train, test, xi: abs(train - 1 + xi)
                    ),
                    high=0.03,
                    of=DROPOUT,
                ),
                Check(
                    "median test accuracy of Full Inversion at dropout 0.6",
                    median_in({"model.dropout": 0.6}, Phase.FULL_INVERSION, lambda train, test, xi: test),
                    low=0.99,
                    of=DROPOUT,
                ),
            ),
            stated="2026-11-17",
            seen_before="Stated after the diagrams had been seen at the quick scale, and not their accuracies.",
        ),
        Claim(
            "confusion-guesses",
            "Section 2, Figure 25",
            "In Confusion with dropout 0.9 networks fit only a part of their training labels and do not find the rule.",
            (
                Check(
                    "median train accuracy of Confusion at dropout 0.9",
                    median_in({"model.dropout": 0.9}, Phase.CONFUSION, lambda train, test, xi: train),
                    low=0.1,
                    high=0.9,
                    of=DROPOUT,
                ),
                Check(
                    "median test accuracy of Confusion at dropout 0.9",
                    median_in({"model.dropout": 0.9}, Phase.CONFUSION, lambda train, test, xi: test),
                    high=0.5,
                    of=DROPOUT,
                ),
            ),
            stated="2026-11-17",
            seen_before="Stated after the diagrams had been seen at the quick scale, and not their accuracies.",
            note="That both accuracies are below 0.9 is how Confusion is defined. What is tested is that the "
            "networks are far from the rule and have learnt something.",
        ),
    ),
)

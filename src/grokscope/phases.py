"""From accuracies to the name of a phase: Table 2 of the paper.

>>> classify(train_accuracy=0.99, test_accuracy=0.98, corruption=0.35, best_test_accuracy=0.98)
<Phase.COEXISTENCE: 'coexistence'>
"""

import math
from enum import StrEnum

HIGH_ACCURACY = 0.9
FOUND_IN_PART = 0.1  # test accuracy, far above guessing
# Guessing gets 1-2 % of the corrupted labels right, and accuracies fluctuate: the paper allows 5 % for both.
GUESSING_MARGIN = 0.05


class Phase(StrEnum):
    """What a trained network does with the rule and with the corrupted labels."""

    COEXISTENCE = "coexistence"
    PARTIAL_INVERSION = "partial_inversion"
    FULL_INVERSION = "full_inversion"
    MEMORIZATION = "memorization"
    FORGETTING = "forgetting"
    CONFUSION = "confusion"

    @property
    def label(self) -> str:
        """The phase as the paper writes it."""
        return self.value.replace("_", " ").title()

    @property
    def color(self) -> str:
        """Its colour in every picture."""
        return _COLORS[self]

    def describe(self) -> str:
        """One sentence in plain words.

        >>> Phase.MEMORIZATION.describe()
        'The network fits the training labels, wrong ones included, and has not found the rule.'
        """
        return _DESCRIPTIONS[self]


def describe_network(phase: Phase, test_accuracy: float, memorised: float, recovered: float) -> str:
    """What a network in this phase does, in a sentence that follows its numbers.

    A phase is drawn from two accuracies, so networks of one phase can differ. `memorised` and `recovered` are the
    fractions of the corrupted examples with the trained and with the true answer; NaN if no label is corrupted.

    >>> describe_network(Phase.COEXISTENCE, 0.99, memorised=0.17, recovered=0.84)
    'The network has found the rule and gives the true answer for most of the corrupted examples; they are so few that it agrees with most training labels all the same.'
    """  # noqa: E501 (one sentence)
    if phase is Phase.FORGETTING:
        return phase.describe()
    if test_accuracy < HIGH_ACCURACY:
        rule = "has not found the rule" if test_accuracy < FOUND_IN_PART else "has found the rule only in part"
        if phase is Phase.MEMORIZATION:
            wrong = "" if math.isnan(memorised) else ", wrong ones included,"
            return f"The network fits the training labels{wrong} and {rule}."
        return f"The network {rule}, and does not fit the training labels either."
    if math.isnan(memorised):
        worse = "" if phase is Phase.COEXISTENCE else ", though it does worse on the training set"
        return f"The network has found the rule{worse}."
    if memorised >= HIGH_ACCURACY:
        return Phase.COEXISTENCE.describe()
    if recovered >= HIGH_ACCURACY:
        found = Phase.FULL_INVERSION.describe().rstrip(".")
    elif recovered > memorised:
        found = "The network has found the rule and gives the true answer for most of the corrupted examples"
    else:
        found = "The network has found the rule and gives the true answer for some of the corrupted examples"
    few = "; they are so few that it agrees with most training labels all the same"
    return f"{found}{few if phase is Phase.COEXISTENCE else ''}."


_COLORS = {  # told apart by the colour-blind too, as a test computes
    Phase.COEXISTENCE: "#e8b92e",
    Phase.PARTIAL_INVERSION: "#a8ea9e",
    Phase.FULL_INVERSION: "#0f6f5c",
    Phase.MEMORIZATION: "#5a4fa2",
    Phase.FORGETTING: "#a83a1c",
    Phase.CONFUSION: "#c4c4c4",
}
_DESCRIPTIONS = {
    Phase.COEXISTENCE: "The network has found the rule and, beside it, memorises the corrupted labels.",
    Phase.PARTIAL_INVERSION: "The network has found the rule and gives the true answer for some of the corrupted "
    "examples, so it does better on the test set than on the training set.",
    Phase.FULL_INVERSION: "The network has found the rule and ignores the corrupted labels: it gives the true "
    "answer even where it was trained on a wrong one.",
    Phase.MEMORIZATION: "The network fits the training labels, wrong ones included, and has not found the rule.",
    Phase.FORGETTING: "The network had found the rule and lost it again: both accuracies fell after test accuracy "
    "had been high.",
    Phase.CONFUSION: "The network has neither found the rule nor managed to memorise the training labels.",
}


def classify(train_accuracy: float, test_accuracy: float, corruption: float, best_test_accuracy: float) -> Phase:
    """The phase of a network, from its final accuracies and the best test accuracy on its way.

    `train_accuracy` is measured against the noisy labels; `corruption` is the fraction of the training set whose
    labels were drawn anew. The last argument is what tells Forgetting from Confusion; it is only as fine as the
    curve it is taken from.
    """
    if test_accuracy >= HIGH_ACCURACY:
        if train_accuracy >= HIGH_ACCURACY:
            return Phase.COEXISTENCE
        if train_accuracy >= 1 + GUESSING_MARGIN - corruption:
            return Phase.PARTIAL_INVERSION
        return Phase.FULL_INVERSION
    if train_accuracy >= HIGH_ACCURACY:
        return Phase.MEMORIZATION
    return Phase.FORGETTING if best_test_accuracy >= HIGH_ACCURACY else Phase.CONFUSION

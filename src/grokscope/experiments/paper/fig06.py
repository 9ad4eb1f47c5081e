"""Figure 6: prune the neurons of the Coexistence network, from the lowest and from the highest IPR."""

from collections.abc import Callable

import numpy as np

from grokscope.experiments.claim import Check, Claim
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.experiment import Drawing, Experiment
from grokscope.experiments.paper import fig01
from grokscope.experiments.quantities.pruned import (
    HIGHEST,
    LOWEST,
    at_random,
    by_ipr,
    curve_table,
    fraction_to_lose,
    place_at,
)
from grokscope.experiments.quantities.trends import largest_rise
from grokscope.experiments.scale import Scale
from grokscope.measure import PruningCurve
from grokscope.plots.pruning import PRUNED_ACCURACIES, draw_prunings

_UNTIL = {LOWEST: 0.7, HIGHEST: 0.3}  # of all neurons: what the paper shows
_MEMORY_GONE, _RULE_GONE = 0.6, 0.3  # where what each order takes away should be gone


def needs(scale: Scale) -> Needs:
    """One network."""
    return Needs(networks=(fig01.COEXISTENCE,))


def draw(evidence: Evidence) -> Drawing:
    """One panel for each order."""
    result, curves = evidence.network(fig01.COEXISTENCE), by_ipr(evidence, fig01.COEXISTENCE)
    title = result.outcome
    figure = draw_prunings({title: curves}, result.dataset().corruption, until=_UNTIL)
    return Drawing(figure, curve_table({title: (result.run_id, curves)}, tuple(PRUNED_ACCURACIES)))


def _at(order: str, quantity: str, fraction: float) -> Callable[[Evidence], float]:
    def value(evidence: Evidence) -> float:
        curve = by_ipr(evidence, fig01.COEXISTENCE)[order]
        return float(getattr(curve, quantity)[place_at(curve, fraction)])

    return value


def _lowest(order: str, quantity: str, until: float) -> Callable[[Evidence], float]:
    def value(evidence: Evidence) -> float:
        curve = by_ipr(evidence, fig01.COEXISTENCE)[order]
        return float(getattr(curve, quantity)[: place_at(curve, until) + 1].min())

    return value


def _low_first(evidence: Evidence) -> PruningCurve:
    return by_ipr(evidence, fig01.COEXISTENCE)[LOWEST]


def _rise_of_memory(evidence: Evidence) -> float:
    curve = _low_first(evidence)
    return largest_rise(curve.corrupted_accuracy[: place_at(curve, _MEMORY_GONE) + 1])


def _distance_from_clean(evidence: Evidence) -> float:
    clean = 1 - evidence.network(fig01.COEXISTENCE).dataset().corruption
    return abs(_at(LOWEST, "train_accuracy", _MEMORY_GONE)(evidence) - clean)


def _gain(quantity: str) -> Callable[[Evidence], float]:
    """By how much an accuracy is higher, at best, than before any neuron went."""

    def value(evidence: Evidence) -> float:
        values = getattr(_low_first(evidence), quantity)
        return float(np.max(values) - values[0])

    return value


def _rule_outlasts_memory(evidence: Evidence) -> float:
    """By how much more of the neurons can go before the rule suffers than before the memory does, in random order."""
    curves = at_random(evidence, fig01.COEXISTENCE)
    lost = [
        fraction_to_lose(curve, "test_accuracy") - fraction_to_lose(curve, "corrupted_accuracy") for curve in curves
    ]
    return float(np.mean(lost))


def _claim(name: str, paper: str, statement: str, *checks: Check, note: str = "") -> Claim:
    return Claim(name, paper, statement, lambda scale: Needs(networks=(fig01.COEXISTENCE,), seeds=3), checks, note)


EXPERIMENT = Experiment(
    name="fig06",
    title="Pruning the Coexistence network by IPR",
    caption="Accuracies of the network at α = 0.5, ξ = 0.35 and without weight decay, against the fraction of its "
    "neurons that were removed, without training again: from the lowest IPR on (left), and from the highest (right). "
    "Without neurons of low IPR it forgets the corrupted labels and keeps the rule; without those of high IPR it "
    "forgets the rule and keeps the corrupted labels.",
    needs=needs,
    draw=draw,
    claims=(
        _claim(
            "low-ipr-memorises",
            "Hypothesis 2.1, Figure 6 (left)",
            "Without its low-IPR neurons the network steadily loses the corrupted labels, and nothing else.",
            Check("corrupted accuracy, 60 % pruned", _at(LOWEST, "corrupted_accuracy", _MEMORY_GONE), high=0.05),
            Check("largest rise of corrupted accuracy on the way", _rise_of_memory, high=0.02),
            Check("lowest test accuracy on the way", _lowest(LOWEST, "test_accuracy", _MEMORY_GONE), low=0.95),
            Check("lowest clean accuracy on the way", _lowest(LOWEST, "clean_accuracy", _MEMORY_GONE), low=0.95),
            Check("train accuracy, 60 % pruned, from 1 − ξ", _distance_from_clean, high=0.03),
        ),
        _claim(
            "high-ipr-generalises",
            "Hypothesis 2.1, Figure 6 (right)",
            "Without its high-IPR neurons the network loses the rule and keeps the corrupted labels.",
            Check("test accuracy, 30 % pruned", _at(HIGHEST, "test_accuracy", _RULE_GONE), high=0.1),
            Check("clean accuracy, 30 % pruned", _at(HIGHEST, "clean_accuracy", _RULE_GONE), high=0.7),
            Check("lowest corrupted accuracy on the way", _lowest(HIGHEST, "corrupted_accuracy", _RULE_GONE), low=0.9),
        ),
        _claim(
            "rule-survives-random-loss",
            "Section 3.2",
            "Generalising solutions are redundant, and overfitting ones are not: if neurons go at random, the network "
            "loses the corrupted labels before the rule.",
            Check("fraction of neurons between the losses of 10 % of each", _rule_outlasts_memory, low=0.05),
            note="Three seeds say 0.06, 0.01 and −0.03: in Coexistence the rule and the memory suffer at about the "
            "same number of lost neurons.",
        ),
        _claim(
            "pruning-improves",
            "Abstract (ii)",
            "Pruning the memorising neurons raises the accuracy on uncorrupted data, to nearly 100 %.",
            Check("gain of test accuracy", _gain("test_accuracy"), low=0.005),
            Check("test accuracy, 60 % pruned", _at(LOWEST, "test_accuracy", _MEMORY_GONE), low=0.99),
            Check("clean accuracy, 60 % pruned", _at(LOWEST, "clean_accuracy", _MEMORY_GONE), low=0.99),
            note="Test accuracy falls a little first, from 0.987 to 0.970 at 25 % pruned (seed 0), and gains only when "
            "the last low-IPR neurons go: 0.989 at 60 %, which is where we look, and 1.0 at 70 %.",
        ),
    ),
)

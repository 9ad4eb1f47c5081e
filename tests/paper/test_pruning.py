"""Figures 6 and 17 at the paper's scale: which neurons memorise and which generalise."""

import numpy as np
import pytest

from grokscope import Pruning, PruningCurve, RunSpec, measure_pruning, run

pytestmark = pytest.mark.verify


@pytest.fixture(scope="module")
def coexistence() -> Pruning:
    """α .5, ξ .35, no weight decay."""
    result = run(RunSpec())
    assert result.phase == "coexistence"
    return measure_pruning(result.trained_weights(), result.spec.model, result.dataset())


def at(curve: PruningCurve, fraction: float) -> int:
    return round(fraction * (len(curve.test_accuracy) - 1))


def test_without_low_ipr_neurons_the_network_forgets_the_corrupted_labels_only(coexistence: Pruning) -> None:
    curve = coexistence.orders["lowest_ipr"]
    assert curve.corrupted_accuracy[0] == pytest.approx(0.94, abs=0.03)
    assert curve.corrupted_accuracy[at(curve, 0.6)] < 0.05
    assert curve.test_accuracy[: at(curve, 0.7) + 1].min() >= 0.96  # .97 less what seeds differ by
    assert curve.test_accuracy[at(curve, 0.7)] > 0.99
    assert curve.clean_accuracy[: at(curve, 0.7) + 1].min() > 0.99
    assert curve.train_accuracy[at(curve, 0.7)] == pytest.approx(1 - 0.35, abs=0.02)
    assert curve.recovered_accuracy[at(curve, 0.7)] > 0.99


def test_without_high_ipr_neurons_it_forgets_the_rule_only(coexistence: Pruning) -> None:
    curve = coexistence.orders["highest_ipr"]
    assert curve.test_accuracy[at(curve, 0.3)] < 0.03
    assert curve.corrupted_accuracy[: at(curve, 0.3) + 1].min() >= 0.95


def test_random_neurons_are_missed_more_than_low_ipr_neurons(coexistence: Pruning) -> None:
    low, chance = coexistence.orders["lowest_ipr"], coexistence.orders["random"]
    some = slice(at(low, 0.1), at(low, 0.85))
    assert np.all(coexistence.random_high.test_accuracy[some] < low.test_accuracy[some])
    assert low.prunable > 10 * chance.prunable

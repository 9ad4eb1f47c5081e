"""How series of numbers go, and where a curve crosses a level."""

import math

import numpy as np
import pytest

from grokscope.experiments.paper.fig32 import neurons_for
from grokscope.experiments.quantities.pruned import fraction_to_lose
from grokscope.experiments.quantities.trends import (
    largest_fall,
    largest_rise,
    power_law_exponent,
    relative_fall,
    turning,
)
from grokscope.measure import PruningCurve


def test_a_rising_series_never_falls() -> None:
    values = np.linspace(2, 5, 20)
    assert largest_fall(values) == 0
    assert largest_rise(values) == 3
    assert relative_fall(values) == 0
    assert turning(values) == 0


def test_a_falling_series_falls_by_its_range() -> None:
    values = np.linspace(5, 2, 20)
    assert largest_fall(values) == 3
    assert largest_rise(values) == 0
    assert relative_fall(values) == 1
    assert turning(values) == 0


def test_a_fall_is_measured_from_the_highest_value_before_it() -> None:
    values = [0, 4, 3, 6, 1, 10]  # 6 → 1 is the fall, and 1 → 10 makes the whole range the rise
    assert largest_fall(values) == 5
    assert largest_rise(values) == 10
    assert relative_fall(values) == 0.5
    assert turning(values) == 0.5


def test_a_constant_series_has_no_relative_fall() -> None:
    assert math.isnan(relative_fall([1, 1, 1]))
    assert math.isnan(turning([1, 1, 1]))
    assert math.isnan(largest_fall([]))


@pytest.mark.parametrize("exponent", [-0.5, 0.8, 1.0])
def test_the_exponent_of_a_power_law_is_found(exponent: float) -> None:
    x = np.array([500, 1000, 2000, 5000])
    assert power_law_exponent(x, 7 * x**exponent) == pytest.approx(exponent)


def test_there_is_no_exponent_without_two_places_or_with_values_that_are_not_positive() -> None:
    assert math.isnan(power_law_exponent([500], [3]))
    assert math.isnan(power_law_exponent([500, 500], [3, 4]))
    assert math.isnan(power_law_exponent([500, 1000], [0, 4]))
    assert math.isnan(power_law_exponent([500, 1000], [math.nan, 4]))


def test_the_fewest_neurons_with_a_test_accuracy_are_counted_from_the_end() -> None:
    # Without 0 … 4 of four neurons; test accuracy dips at one pruned neuron and is back at two.
    test = np.array([0.9, 0.7, 0.96, 0.5, 0.0])
    curve = PruningCurve(test, test, test, test, test, test, test)
    assert neurons_for(curve, 0.95) == 2
    assert neurons_for(curve, 0.5) == 1
    assert math.isnan(neurons_for(curve, 0.99))


def test_an_accuracy_is_lost_when_a_tenth_of_it_is() -> None:
    kept, lost, none = np.full(5, 0.8), np.array([0.8, 0.75, 0.73, 0.71, 0.0]), np.zeros(5)
    curve = PruningCurve(kept, lost, none, kept, kept, kept, kept)
    assert fraction_to_lose(curve, "test_accuracy") == 0.75  # 0.72 is a tenth less
    assert math.isnan(fraction_to_lose(curve, "train_accuracy"))
    assert math.isnan(fraction_to_lose(curve, "corrupted_accuracy"))

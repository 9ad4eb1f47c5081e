"""Gradients by formula, the δ made of waves, and the table that defines the phases."""

import numpy as np
import pytest

from grokscope import TaskSpec, make_dataset
from grokscope.experiments.paper.analytic import delta_from_waves
from grokscope.experiments.paper.gradients import (
    autograd_gradients,
    degree_of_gradient,
    equation_9,
    relative_difference,
)
from grokscope.experiments.paper.table2 import columns_of_table, in_one_column
from grokscope.models import initial_weights
from grokscope.spec import ModelSpec

MODEL = ModelSpec(width=12)


@pytest.mark.parametrize("name", ["U", "V", "W"])
def test_equation_9_with_factor_2_for_w_is_the_gradient(name: str) -> None:
    weights, dataset = initial_weights(MODEL, 7), make_dataset(TaskSpec(modulus=7))
    formula, exact = equation_9(weights, dataset)[name], autograd_gradients(weights, dataset)[name]
    assert formula.shape == exact.shape == weights[name].shape
    assert relative_difference(formula, exact) < 1e-12
    assert relative_difference(2 * formula, exact) == pytest.approx(1)


def test_the_gradient_of_a_vanishing_network_has_degree_2_and_that_of_a_huge_one_5() -> None:
    weights, dataset = initial_weights(MODEL, 7), make_dataset(TaskSpec(modulus=7))
    assert degree_of_gradient({name: 0.01 * array for name, array in weights.items()}, dataset) == pytest.approx(
        2, abs=0.01
    )
    assert degree_of_gradient({name: 100 * array for name, array in weights.items()}, dataset) == pytest.approx(
        5, abs=0.01
    )


def test_half_of_the_frequencies_make_the_delta() -> None:
    assert delta_from_waves(7, range(4)) == pytest.approx(np.eye(7)[0])
    # One wave fewer takes 2/7 off the peak.
    assert delta_from_waves(7, range(3))[0] == pytest.approx(5 / 7)


def test_table_2_has_one_column_for_each_pair_unless_few_labels_are_corrupted() -> None:
    assert columns_of_table([1.0, 0.8, 0.6, 1.0, 0.5], [1.0, 1.0, 1.0, 0.1, 0.1], 0.35).tolist() == [1] * 5
    assert columns_of_table(0.95, 1.0, 0.05) == 2  # ≥ 0.9, and < 1.05 − 0.05
    assert in_one_column([0.15, 0.35, 0.9]) == 1
    assert in_one_column([0.05]) < 1

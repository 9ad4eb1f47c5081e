"""Distributions of the IPR, and shares of the diagrams over batch sizes, with known answers."""

import math

import numpy as np
import pytest

from grokscope.experiments.paper.fig09_10_11 import diagram_plan
from grokscope.experiments.paper.fig20_21_22 import phases_claim
from grokscope.experiments.quantities.distributions import largest_gap, live_ipr, share_below
from grokscope.experiments.quantities.regions import GENERALISING, INVERTING, share_gain, share_of
from grokscope.phases import Phase
from grokscope.sweeps.diagram import Cell, Panel


def _panel(*outcomes: str | None) -> Panel:
    cells = [
        Cell("run" if outcome else "missing", {outcome: 1} if outcome else {}, 1, 0, 0, (), None, None)
        for outcome in outcomes
    ]
    return Panel({}, [cells])


def test_the_largest_gap_is_nothing_between_the_same_values_and_one_between_separate_ones() -> None:
    values = np.linspace(0, 1, 50)
    assert largest_gap(values, values[::-1]) == 0
    assert largest_gap(values, values + 2) == 1
    assert largest_gap([0, 0, 1, 1], [0, 1, 1, 1]) == pytest.approx(0.25)
    assert math.isnan(largest_gap([], values))


def test_the_largest_gap_is_that_of_a_shift() -> None:
    values = np.arange(1000)
    assert largest_gap(values, values + 100) == pytest.approx(0.1)


def test_shares_of_nothing_are_not_numbers() -> None:
    assert math.isnan(share_below([], 0.1))
    assert math.isnan(share_of([_panel(None, None)], INVERTING))
    assert len(live_ipr(None)) == 0


def test_the_share_of_cells_counts_those_that_are_known() -> None:
    panel = _panel(Phase.FULL_INVERSION, Phase.PARTIAL_INVERSION, Phase.COEXISTENCE, "diverged", None)
    assert share_of([panel], INVERTING) == 0.5
    assert share_of([panel], GENERALISING) == 0.75
    assert share_of([panel, _panel(Phase.CONFUSION, Phase.MEMORIZATION)], GENERALISING) == 0.5


def test_a_gain_needs_something_to_compare() -> None:
    inverted, other = _panel(Phase.FULL_INVERSION, Phase.MEMORIZATION), _panel(Phase.CONFUSION, Phase.MEMORIZATION)
    assert share_gain([inverted], [other], INVERTING) == 0.5
    assert share_gain([other], [inverted], INVERTING) == -0.5
    assert math.isnan(share_gain([other], [other], INVERTING))


def test_all_batch_sizes_see_equally_many_examples() -> None:
    specs = list(diagram_plan("some", "none").specs())
    assert {(spec.training.batch_size or 0) * spec.training.steps for spec in specs} == {512_000}
    assert {round(spec.optimizer.learning_rate, 6) for spec in specs} == {0.001768, 0.005, 0.01}


def test_a_phase_has_the_bounds_of_table_2() -> None:
    checks = {check.what: check for check in phases_claim("some", 20, "none", "Without a norm").checks}
    assert checks["train accuracy at α 0.4"].low == 0.88
    assert (checks["train accuracy at α 0.5"].low, checks["train accuracy at α 0.5"].high) == (0.73, 0.92)
    assert checks["train accuracy at α 0.8"].high == 0.77

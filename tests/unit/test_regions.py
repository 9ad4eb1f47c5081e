"""Regions of panels that are small enough to count by hand."""

import math

import pytest

from grokscope.errors import GrokscopeError
from grokscope.experiments.quantities.regions import (
    GENERALISING,
    INVERTING,
    Region,
    agreement,
    boundary_shift,
    region,
    share_grown,
    share_of_these,
)
from grokscope.store import CellOutcome
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import assemble
from grokscope.sweeps.plan import Plan

M, C, P, F = "memorization", "coexistence", "partial_inversion", "full_inversion"
ALPHAS, XIS = (0.1, 0.5, 0.9), (0.0, 0.45, 0.9)
WITHOUT = Region(ALPHAS, XIS, ((M, C, C), (M, M, P), (M, M, M)))
WITH = Region(ALPHAS, XIS, ((C, C, C), (M, F, F), (M, M, M)))


def test_shares_count_every_cell_the_same() -> None:
    assert WITHOUT.share(M) == pytest.approx(6 / 9)
    assert WITHOUT.share(*INVERTING) == pytest.approx(1 / 9)
    assert WITH.share(*GENERALISING) == pytest.approx(5 / 9)
    assert WITH.share() == 0


def test_what_is_unknown_does_not_count() -> None:
    assert Region((0.1, 0.5), (0.0,), ((None, C),)).share(C) == 1
    assert math.isnan(Region((0.1,), (0.0,), ((None,),)).share(C))


def test_a_rectangle_has_its_edges() -> None:
    cut = WITH.within(data_fractions=(0.5, 1), corruptions=(0, 0.45))
    assert cut == Region((0.5, 0.9), (0.0, 0.45), ((C, C), (F, F)))
    assert math.isnan(WITH.within(corruptions=(0.5, 0.6)).share(M))


def test_boundaries_are_of_the_nearest_row_or_column() -> None:
    assert WITHOUT.first_data_fraction(0.0) == 0.5
    assert WITHOUT.first_data_fraction(0.4) == 0.9
    assert WITHOUT.first_data_fraction(0.4, [C]) != WITHOUT.first_data_fraction(0.4)
    assert math.isnan(WITHOUT.first_data_fraction(0.9))
    assert [WITHOUT.robustness(alpha) for alpha in (0.45, 0.9)] == [0.0, 0.45]
    assert math.isnan(WITHOUT.robustness(0.1))


def test_two_panels_are_compared_cell_by_cell() -> None:
    assert agreement(WITHOUT, WITHOUT) == 1
    assert agreement(WITHOUT, WITH) == pytest.approx(6 / 9)
    assert share_of_these(WITH, [F], WITHOUT, [P]) == pytest.approx(1 / 2)
    assert math.isnan(share_of_these(WITHOUT, [F], WITH, [F]))
    with pytest.raises(GrokscopeError, match="same grid"):
        agreement(WITHOUT, WITH.within(corruptions=(0, 0.5)))


def test_a_boundary_moves_by_the_mean_over_the_rows_that_have_one() -> None:
    # From 0.5 to 0.1 and from 0.9 to 0.5; the third row generalises in neither.
    assert boundary_shift(WITHOUT, WITH) == pytest.approx(0.4)
    assert boundary_shift(WITH, WITHOUT) == pytest.approx(-0.4)
    nowhere = Region(ALPHAS, XIS, ((M, M, M),) * 3)
    assert boundary_shift(nowhere, WITHOUT) == pytest.approx((0.5 + 0.1) / 2)
    assert math.isnan(boundary_shift(nowhere, nowhere))


def test_a_region_is_a_panel_of_a_diagram() -> None:
    decays = Axis(("optimizer.weight_decay",), ((0,), (5,)))
    axes = (Axis(("task.data_fraction",), ((0.1,), (0.9,))), Axis(("task.corruption",), ((0.0,), (0.5,))), decays)
    plan = Plan("test", axes=axes)
    outcomes = [M, C, M, M, C, C, M, F]
    cells = [
        CellOutcome(place, spec.run_id, outcome, train_accuracy=None, test_accuracy=None)
        for place, (spec, outcome) in enumerate(zip(plan.specs(), outcomes, strict=True))
    ]
    diagram = assemble(plan, cells, refined=False)
    assert region(diagram, {"optimizer.weight_decay": 5.0}) == Region((0.1, 0.9), (0.0, 0.5), ((C, C), (M, F)))
    assert share_grown(F)(diagram) == pytest.approx(1 / 4)
    with pytest.raises(GrokscopeError, match=r"0 panels with .*weight_decay = 7"):
        region(diagram, {"optimizer.weight_decay": 7})
    with pytest.raises(GrokscopeError, match="2 panels"):
        region(diagram)

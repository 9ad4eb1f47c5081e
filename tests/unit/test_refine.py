"""Refinement: fewer runs, the same picture."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.sweeps.refine import Place, refine

# grokscope sweep fig3a --set task.modulus=43 --set model.width=200 --set training.steps=1000
# grokscope phase-diagram fig3a --out fig3a_modest.csv; and of that the first eight columns
RECORDED = Path(__file__).parents[1] / "data" / "fig3a_modest.csv"


def refined(truth: dict[Place, str], columns: int, rows: int) -> tuple[dict[Place, str], set[Place]]:
    """What a refined sweep would show, and the cells it would run."""
    known: dict[Place, str] = {}
    while True:
        refinement = refine(columns, rows, known)
        if not refinement.wanted:
            return {**refinement.inferred, **known}, set(known)
        assert not refinement.wanted & known.keys(), "a cell was asked for twice"
        known |= {place: truth[place] for place in refinement.wanted}


@given(st.integers(1, 20), st.integers(1, 20), st.data())
def test_every_cell_is_run_or_inferred(columns: int, rows: int, data: st.DataObject) -> None:
    places = [(column, row) for column in range(columns) for row in range(rows)]
    outcomes = data.draw(st.lists(st.sampled_from("ab"), min_size=len(places), max_size=len(places)))
    truth = dict(zip(places, outcomes, strict=True))
    shown, run = refined(truth, columns, rows)
    assert shown.keys() == truth.keys()
    assert all(shown[place] == truth[place] for place in run)
    for column, row in truth.keys() - run:  # what is inferred lies inside a phase
        for beside in ((column + 1, row), (column - 1, row), (column, row + 1), (column, row - 1)):
            assert beside not in shown or shown[beside] == shown[column, row]


@given(st.floats(-3, 3), st.floats(-20, 20))
def test_a_straight_boundary_is_found_exactly(slope: float, offset: float) -> None:
    truth = {(x, y): "above" if y > slope * x + offset else "below" for x in range(17) for y in range(19)}
    shown, run = refined(truth, 17, 19)
    wrong = sum(shown[place] != truth[place] for place in truth)
    assert wrong <= 6  # a corner that is cut between two cells of the first grid, three cells across
    assert len(run) < 0.5 * len(truth)


def test_one_phase_needs_only_the_coarse_grid() -> None:
    truth = {(x, y): "same" for x in range(17) for y in range(19)}
    shown, run = refined(truth, 17, 19)
    assert shown == truth
    assert len(run) == 5 * 6


def test_order_of_what_is_known_does_not_matter() -> None:
    """A sweep that was interrupted, or run in full in part, is refined from what is there."""
    truth = {(x, y): "a" if x + y > 15 else "b" for x in range(17) for y in range(19)}
    known = {place: truth[place] for place in truth if place[0] % 3 == 0}
    while wanted := refine(17, 19, known).wanted:
        known |= {place: truth[place] for place in wanted}
    shown = {**refine(17, 19, known).inferred, **known}
    assert shown == truth


def test_figure_3a_at_modest_scale() -> None:
    """At most 45 % of the runs, and the same phase in at least 98 % of the cells, on a grid that was run in full."""
    with RECORDED.open(encoding="utf-8") as file:
        outcomes = [row["outcome"] for row in csv.DictReader(file)]
    assert len(set(outcomes)) == 6  # every phase occurs
    cells = runs = right = 0
    for start in range(0, len(outcomes), 17 * 19):
        truth = {(i % 17, i // 17): outcome for i, outcome in enumerate(outcomes[start : start + 17 * 19])}
        shown, run = refined(truth, 17, 19)
        cells += len(truth)
        runs += len(run)
        right += sum(shown[place] == truth[place] for place in truth)
    assert cells == 4 * 17 * 19
    assert runs <= 0.45 * cells
    assert right >= 0.98 * cells


@pytest.mark.parametrize("outcome", ["diverged", "failed"])
def test_other_outcomes_count_as_different(outcome: str) -> None:
    truth = {(x, y): outcome if x > 7 else "phase" for x in range(9) for y in range(9)}
    shown, _ = refined(truth, 9, 9)
    assert shown == truth

"""Figures of detection against their definitions."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.arrays import BoolArray, FloatArray
from grokscope.measure.audit.detection import auroc, average_precision, flag, precision_recall, r_precision

# Few different values, so that many are equal.
EXAMPLES = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=25)


def scores_and_wrong(examples: list[tuple[int, bool]]) -> tuple[FloatArray, BoolArray]:
    return np.array([float(score) for score, _ in examples]), np.array([wrong for _, wrong in examples])


def auroc_by_counting(scores: FloatArray, wrong: BoolArray) -> float | None:
    pairs = [(a, b) for a in scores[wrong] for b in scores[~wrong]]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs) if pairs else None


@given(EXAMPLES)
def test_auroc_is_the_fraction_of_pairs_in_order(examples: list[tuple[int, bool]]) -> None:
    scores, wrong = scores_and_wrong(examples)
    assert auroc(scores, wrong) == pytest.approx(auroc_by_counting(scores, wrong))


@given(EXAMPLES)
def test_only_the_order_counts(examples: list[tuple[int, bool]]) -> None:
    scores, wrong = scores_and_wrong(examples)
    for other in (np.exp(scores), scores**3 - 5, 1e-9 * scores, np.arctan(scores)):
        for figure in (auroc, average_precision, r_precision):
            assert figure(other, wrong) == figure(scores, wrong)


@given(EXAMPLES)
def test_the_opposite_order_has_the_opposite_auroc(examples: list[tuple[int, bool]]) -> None:
    scores, wrong = scores_and_wrong(examples)
    there, back = auroc(scores, wrong), auroc(-scores, wrong)
    assert there is None or back is None or there + back == pytest.approx(1)


@given(st.lists(st.booleans(), min_size=2).filter(lambda wrong: 0 < sum(wrong) < len(wrong)))
def test_perfect_opposite_and_constant_scores(listed: list[bool]) -> None:
    wrong = np.array(listed)
    perfect = wrong.astype(float)
    fraction = pytest.approx(wrong.mean())
    assert (auroc(perfect, wrong), average_precision(perfect, wrong), r_precision(perfect, wrong)) == (1, 1, 1)
    assert auroc(-perfect, wrong) == 0
    constant = np.zeros(len(wrong))
    assert auroc(constant, wrong) == 0.5
    assert average_precision(constant, wrong) == fraction  # guessing
    assert r_precision(constant, wrong) == fraction


@given(EXAMPLES)
def test_precision_and_recall_at_every_threshold(examples: list[tuple[int, bool]]) -> None:
    scores, wrong = scores_and_wrong(examples)
    curve = precision_recall(scores, wrong)
    if not wrong.any():
        assert curve is None
        assert average_precision(scores, wrong) is None
        return
    assert curve is not None
    area, recall_before = 0.0, 0.0
    for place, threshold in enumerate(sorted(set(scores.tolist()), reverse=True)):
        _, precision, recall = flag(scores >= threshold, wrong)
        assert precision is not None
        assert recall is not None
        assert (curve.precision[place], curve.recall[place]) == (pytest.approx(precision), pytest.approx(recall))
        area += precision * (recall - recall_before)
        recall_before = recall
    assert len(curve.recall) == place + 1
    assert recall_before == 1
    assert average_precision(scores, wrong) == pytest.approx(area)


@given(EXAMPLES.map(lambda examples: examples[:6]))
def test_r_precision_is_the_mean_over_all_orders_of_equal_scores(examples: list[tuple[int, bool]]) -> None:
    scores, wrong = scores_and_wrong(examples)
    count = int(wrong.sum())
    if not count:
        assert r_precision(scores, wrong) is None
        return
    orders = [
        np.array(order) for order in permutations(range(len(scores))) if (np.diff(scores[list(order)]) <= 0).all()
    ]
    assert r_precision(scores, wrong) == pytest.approx(np.mean([wrong[order][:count].mean() for order in orders]))


def test_what_does_not_exist() -> None:
    scores = np.array([1.0, 2.0])
    none, every = np.zeros(2, np.bool_), np.ones(2, np.bool_)
    assert (auroc(scores, none), average_precision(scores, none), r_precision(scores, none)) == (None, None, None)
    assert (auroc(scores, every), average_precision(scores, every), r_precision(scores, every)) == (None, 1, 1)
    assert flag(none, every) == (0, None, 0)
    assert flag(every, none) == (2, 0, None)

"""Which neurons are pruned for an audit."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grokscope import GrokscopeError
from grokscope.measure.audit.memorising import ipr_valley, pruning_of

# In 64ths, so that different values are not different by rounding only.
IPRS = st.lists(st.integers(1, 64).map(lambda number: number / 64), min_size=2, max_size=40)


@given(IPRS)
def test_the_valley_is_the_cut_that_leaves_the_least_variance(values: list[float]) -> None:
    ascending = np.sort(np.array(values))
    inside = [  # the sum of squares that each cut leaves in both groups
        len(low) * float(low.var()) + len(high) * float(high.var())
        for low, high in (np.split(ascending, [i]) for i in range(1, len(values)))
    ]
    best = int(np.argmin(inside))
    low, high = np.split(ascending, [best + 1])
    total, apart = len(values) * float(ascending.var()), high.mean() - low.mean()
    # Where two cuts are equally good, or a condition is met just so, rounding decides.
    assume(sum(own < inside[best] + 1e-9 for own in inside) == 1)
    assume(abs(inside[best] - 0.25 * total) > 0.01 * total)
    assume(abs(apart - 0.1) > 1e-9)
    two_groups = inside[best] < 0.25 * total and apart > 0.1
    expected = (ascending[best] + ascending[best + 1]) / 2 if two_groups else None
    assert ipr_valley(np.array(values)) == expected


@pytest.mark.parametrize("low", [0.04, 0.2])
@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_two_groups_are_parted_whatever_their_sizes(low: float, fraction: float) -> None:
    generator = np.random.default_rng(0)
    memorising = generator.random(500) < fraction
    ipr = np.where(memorising, low, 0.9) + generator.normal(scale=0.02, size=500)
    pruning = pruning_of("auto", ipr)
    assert pruning is not None
    assert pruning.neurons.tolist() == memorising.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_one_group_is_not_parted(seed: int) -> None:
    generator = np.random.default_rng(seed)
    assert ipr_valley(generator.normal(0.5, 0.1, size=500)) is None
    assert ipr_valley(np.where(generator.random(500) < 0.5, 1.0, 1 - 1e-7)) is None  # rounding is no kind of neuron


def test_too_few_neurons_to_part() -> None:
    assert ipr_valley(np.array([])) is None
    assert ipr_valley(np.array([0.3])) is None
    pruning = pruning_of("auto", np.array([np.nan, np.nan]))
    assert pruning is not None
    assert (pruning.count, pruning.live, pruning.below) == (0, 0, None)


def test_rules() -> None:
    ipr = np.array([0.9, np.nan, 0.1, 0.2, 0.8])
    for rule, expected in [
        ("auto", [2, 3]),
        ("0.5", [2, 3]),
        (".25", [2]),
        ("0", []),
        ("ipr<0.85", [2, 3, 4]),
        ("IPR < .15", [2]),
    ]:
        pruning = pruning_of(rule, ipr)
        assert pruning is not None
        assert np.flatnonzero(pruning.neurons).tolist() == expected  # the dead one is left alone
        assert pruning.live == 4
    assert pruning_of("none", ipr) is None


@pytest.mark.parametrize("rule", ["", "1", "1.5", "-0.2", "nan", "ipr", "ipr<", "ipr<2", "ipr>0.5", "most"])
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(GrokscopeError, match="must be auto, none, a fraction"):
        pruning_of(rule, np.array([0.1, 0.9]))

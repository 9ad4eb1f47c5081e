from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope import (
    GrokscopeError,
    ModelSpec,
    PruningCurve,
    TaskSpec,
    analytic_weights,
    initial_weights,
    make_dataset,
    measure_network,
    measure_pruning,
    neuron_spectra,
    pruned,
    pruning_curves,
    pruning_orders,
)
from grokscope.measure.pruning import curves as pruning
from grokscope.measure.pruning import prefixes
from grokscope.measure.pruning.curves import random_order
from grokscope.models import Network, Weights, make_network
from grokscope.tasks import Dataset, modular_waves

P, N = 11, 23


def network(dead: bool = False, **model: Any) -> tuple[Weights, Network]:
    """Weights of every part, large enough for the activation to bend, and norms that do something."""
    spec = ModelSpec(width=N, **model)
    generator = np.random.default_rng(1)
    weights = {
        name: generator.normal(size=array.shape).astype(np.float32) for name, array in initial_weights(spec, P).items()
    }
    if "norm_variance" in weights:
        weights["norm_variance"] = np.square(weights["norm_variance"]) + np.float32(0.1)
    return (pruned(spec, weights, [3, 8]) if dead else weights), spec


def dataset(**task: Any) -> Dataset:
    return make_dataset(TaskSpec(**{"modulus": P, "corruption": 0.4} | task))


def directly(weights: Weights, model: Network, data: Dataset, order: Any, loss: Any) -> PruningCurve:
    """One copy of the network for each prefix, measured as any network is."""
    rows = [
        measure_network(make_network(model, pruned(model, weights, order[:count])), data, loss)
        for count in range(len(order) + 1)
    ]
    names = PruningCurve.__dataclass_fields__
    return PruningCurve(**{name: np.array([getattr(row, name) for row in rows]) for name in names})


def assert_same(found: PruningCurve, expected: PruningCurve) -> None:
    for name, values in asdict(expected).items():
        tolerance = 1e-5 if name.endswith("loss") else 1e-12
        np.testing.assert_allclose(getattr(found, name), values, rtol=10 * tolerance, atol=tolerance, err_msg=name)


ORDER = np.random.default_rng(5).permutation(N)


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("activation", ["quadratic", "relu", "gelu"])
@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
def test_rank_one_updates_are_direct_evaluation(norm: Any, activation: Any, loss: Any, level: str) -> None:
    weights, model = network(norm=norm, activation=activation)
    (curve,) = pruning_curves(weights, model, dataset(), [ORDER], loss)
    assert_same(curve, directly(weights, model, dataset(), ORDER, loss))


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
def test_without_the_kernel_numpy_does_the_same(norm: Any, loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, "native_module", lambda: None)
    weights, model = network(norm=norm)
    (curve,) = pruning_curves(weights, model, dataset(), [ORDER], loss)
    assert_same(curve, directly(weights, model, dataset(), ORDER, loss))


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("operation", ["multiply", "divide"])
def test_with_dead_neurons_and_other_operations(norm: Any, operation: Any) -> None:
    weights, model = network(norm=norm, dead=True)
    data = dataset(operation=operation)
    measured = measure_pruning(weights, model, data, random_orders=1)
    orders = pruning_orders(model, weights, data.task) | {"random": random_order(N, 0)}
    assert measured.orders.keys() == orders.keys()
    for name, order in orders.items():
        assert_same(measured.orders[name], directly(weights, model, data, order, "mse"))


def test_examples_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also more examples than numpy takes at once."""
    weights, model = network(norm="layer")
    (whole,) = pruning_curves(weights, model, dataset(), [ORDER])
    monkeypatch.setattr(pruning, "_VALUES_AT_ONCE", 7 * N)
    monkeypatch.setattr(pruning, "_FEWEST_PAIRS", 7)
    monkeypatch.setattr(prefixes, "_ROWS_AT_ONCE", 3)
    (pieces,) = pruning_curves(weights, model, dataset(), [ORDER])
    assert_same(pieces, whole)


def test_orders_follow_ipr_weights_and_scales() -> None:
    weights, model = network(norm="batch", dead=True)
    task = TaskSpec(modulus=P)
    orders = pruning_orders(model, weights, task)
    spectra = neuron_spectra(model, weights, task)
    assert spectra is not None
    assert set(orders["lowest_ipr"][:2]) == set(orders["highest_ipr"][-2:]) == {3, 8}
    assert (np.diff(spectra.neuron_ipr[orders["lowest_ipr"][2:]]) >= 0).all()
    assert (np.diff(spectra.neuron_ipr[orders["highest_ipr"][:-2]]) <= 0).all()
    norms = [np.sqrt(sum((weights[m][k] ** 2).sum() for m in "UV") + (weights["W"][:, k] ** 2).sum()) for k in range(N)]
    assert (np.diff(np.array(norms)[orders["norm"]]) >= 0).all()
    assert (np.diff(np.abs(weights["norm_scale"])[orders["norm_scale"]]) >= 0).all()
    assert all(sorted(order) == list(range(N)) for order in orders.values())
    weights, model = network()
    assert "norm_scale" not in pruning_orders(model, weights, task)


def test_ipr_is_that_of_the_operation() -> None:
    """A character of the multiplicative group has IPR 1 for multiplication only."""
    weights, model = network()
    order = modular_waves("multiply", P).order
    for name in "UV":
        weights[name][7] = 0
        weights[name][7, order] = np.cos(2 * np.pi * 3 * np.arange(P - 1) / (P - 1))
    weights["W"][:, 7] = weights["U"][7]
    first = {
        operation: pruning_orders(model, weights, TaskSpec(operation=operation, modulus=P))["highest_ipr"][0]
        for operation in ("multiply", "add")
    }
    assert first["multiply"] == 7
    assert first["add"] != 7


def test_random_orders_are_seeded_and_their_band_encloses_the_mean() -> None:
    weights, model = network()
    first, again = (measure_pruning(weights, model, dataset(), random_orders=6, seed=4) for _ in range(2))
    other = measure_pruning(weights, model, dataset(), random_orders=6, seed=5)
    drawn = pruning_curves(weights, model, dataset(), [random_order(N, number, 4) for number in range(6)])
    for name, values in asdict(first.orders["random"]).items():
        np.testing.assert_array_equal(values, getattr(again.orders["random"], name))
        every = np.stack([getattr(curve, name) for curve in drawn])  # [6, N + 1]
        np.testing.assert_allclose(values, every.mean(axis=0))
        low, high = getattr(first.random_low, name), getattr(first.random_high, name)
        assert (every.min(axis=0) <= low + 1e-12).all()
        assert (low <= np.median(every, axis=0) + 1e-12).all()
        assert (np.median(every, axis=0) <= high + 1e-12).all()
        assert (high <= every.max(axis=0) + 1e-12).all()
    assert not np.array_equal(first.orders["random"].test_loss, other.orders["random"].test_loss)
    np.testing.assert_array_equal(first.orders["norm"].test_loss, other.orders["norm"].test_loss)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30))
def test_how_many_can_go(hits: list[int]) -> None:
    """Of 100 test examples one may be lost."""
    values = np.array(hits) / 100
    empty = np.zeros(len(hits))
    curve = PruningCurve(*[empty] * 7)
    curve = replace(curve, test_accuracy=values)
    enough = [hit >= hits[0] - 1 for hit in hits]
    assert curve.prunable == max(count for count, retained in enumerate(enough) if retained)
    assert curve.prunable_throughout == ([*enough, False].index(False)) - 1
    assert curve.prunable_throughout <= curve.prunable
    assert len(curve.fraction_pruned) == len(hits)


def test_nothing_and_everything_pruned() -> None:
    """The whole network as it is measured, and the empty one, which says 0 to everything and has loss 1/p."""
    weights, data = analytic_weights(P, 300), dataset()
    model = ModelSpec(width=300)
    row = measure_network(make_network(model, weights), data)
    for name, curve in measure_pruning(weights, model, data, random_orders=2).orders.items():
        assert curve.test_accuracy[0] == pytest.approx(row.test_accuracy), name
        assert curve.train_loss[0] == pytest.approx(row.train_loss)
        assert curve.test_accuracy[-1] == pytest.approx((data.test_labels == 0).mean())
        assert curve.recovered_accuracy[-1] == pytest.approx((data.train_truth[data.corrupted] == 0).mean())
        assert curve.test_loss[-1] == pytest.approx(1 / P)


def test_the_analytic_network_survives_down_to_a_width_that_solves_the_task() -> None:
    """Its neurons are drawn alike, so any of them make a smaller analytic network; corrections grow as 1/√N."""
    enough, width = 400, 1200
    data = make_dataset(TaskSpec(modulus=31, corruption=0.2))
    small = measure_network(make_network(ModelSpec(width=enough), analytic_weights(31, enough)), data)
    assert small.test_accuracy == 1
    pruning = measure_pruning(analytic_weights(31, width), ModelSpec(width=width), data, random_orders=5)
    kept = slice(0, width - enough + 1)
    for name in ("test_accuracy", "clean_accuracy", "recovered_accuracy"):
        assert (getattr(pruning.random_low, name)[kept] == 1).all()
    assert pruning.orders["random"].test_accuracy[-2] < 0.5  # one neuron cannot


@pytest.mark.parametrize(("corruption", "missing"), [(0.0, {"corrupted", "recovered"}), (1.0, {"clean"})])
def test_accuracies_on_no_examples_do_not_exist(corruption: float, missing: set[str]) -> None:
    weights, model = network()
    for curve in measure_pruning(weights, model, dataset(corruption=corruption), random_orders=2).orders.values():
        for name, values in asdict(curve).items():
            assert np.isnan(values).all() == (name.removesuffix("_accuracy") in missing)
            assert np.isnan(values).any() == (name.removesuffix("_accuracy") in missing)


@pytest.mark.parametrize("model", [ModelSpec(depth=3, width=8), ModelSpec(kind="transformer", embed=8)])
def test_other_networks_are_refused(model: Network) -> None:
    weights = initial_weights(model, P)
    for attempt in (
        lambda: measure_pruning(weights, model, dataset()),
        lambda: pruning_orders(model, weights, dataset().task),
    ):
        with pytest.raises(GrokscopeError, match="defined here for two-layer networks"):
            attempt()


def test_orders_and_counts_are_checked() -> None:
    weights, model = network()
    for order in ([0, 1], [*range(N - 1), 0], [*range(N - 1), N], [range(N)], np.arange(N) / 2):
        with pytest.raises(GrokscopeError, match="name each of the neurons"):
            pruning_curves(weights, model, dataset(), [order])
    with pytest.raises(GrokscopeError, match="at least 1"):
        measure_pruning(weights, model, dataset(), random_orders=0)

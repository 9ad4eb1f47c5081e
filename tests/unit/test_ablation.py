"""Waves in and out of weights: against plain transforms, the closed-form network, and searches by brute force."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grokscope import (
    GrokscopeError,
    ModelSpec,
    RunSpec,
    TaskSpec,
    ablate,
    analytic_weights,
    initial_weights,
    make_dataset,
    measure_network,
    pruned,
    run,
)
from grokscope.measure.ablation.ablation import (
    KEY_IPR,
    kept,
    own_waves,
    shared_frequency,
    shared_waves,
    strongest_frequencies,
    with_vectors,
)
from grokscope.measure.ablation.analytic_family import nearest_member
from grokscope.measure.ablation.progress_measures import excluded_logits, key_components, restricted_logits
from grokscope.models import Network, Weights, make_network
from grokscope.tasks import Operation, modular_waves

Array = npt.NDArray[np.float64]
GROUPS: list[tuple[Operation, int]] = [
    ("add", 12), ("add", 13), ("subtract", 7), ("multiply", 13), ("multiply", 15), ("multiply", 24), ("divide", 11),
]  # fmt: skip


def noise(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def neuron_vectors(weights: Weights) -> Array:
    """Rows of U and V and columns of W of a two-layer network [3, N, p]."""
    neurons = ModelSpec(width=len(weights["U"])).input_neurons(weights)
    assert neurons is not None
    return neurons.stacked().astype(np.float64)


# ---- waves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("operation", "modulus"), [*GROUPS, ("x2+y2", 11), ("add", 2), ("multiply", 2)])
def test_waves_are_those_of_the_spectrum(operation: Operation, modulus: int) -> None:
    waves, vectors = modular_waves(operation, modulus), noise(3, 5, modulus)
    coefficients = waves.coefficients(vectors)
    np.testing.assert_allclose(np.abs(coefficients), waves.amplitudes(vectors), atol=1e-9)
    np.testing.assert_allclose(waves.replaced(vectors, coefficients), vectors, atol=1e-9)
    own = np.square(vectors[..., waves.places]).sum(axis=-1)
    np.testing.assert_allclose(waves.energies(coefficients).sum(axis=-1), own)


def test_entries_outside_the_group_stay() -> None:
    waves, vectors = modular_waves("multiply", 15), noise(3, 4, 15)
    outside = np.setdiff1d(np.arange(15), waves.places)
    assert outside.tolist() == [0, 3, 5, 6, 9, 10, 12]
    np.testing.assert_array_equal(own_waves(vectors, waves)[..., outside], vectors[..., outside])


@pytest.mark.parametrize(("operation", "modulus"), GROUPS)
def test_projections_are_idempotent(operation: Operation, modulus: int) -> None:
    waves, vectors = modular_waves(operation, modulus), noise(3, 30, modulus)
    for once in (own_waves(vectors, waves), shared_waves(vectors, waves), kept(vectors, waves, np.array([0, 2]))):
        assert not np.allclose(once, vectors)
    np.testing.assert_allclose(own_waves(own_waves(vectors, waves), waves), own_waves(vectors, waves), atol=1e-9)
    np.testing.assert_allclose(
        shared_waves(shared_waves(vectors, waves), waves), shared_waves(vectors, waves), atol=1e-9
    )
    member = nearest_member(vectors, waves)
    again = nearest_member(member.vectors, waves)
    whole = (np.square(member.vectors[..., waves.places]).sum(axis=-1) > 1e-20).all(axis=0)
    assert again.distance[whole].max() < 1e-7  # a member that gave a vector up is dead and has no distance
    np.testing.assert_allclose(again.vectors[:, whole], member.vectors[:, whole], atol=1e-7)


def test_the_nearest_wave_is_the_best_least_squares_fit() -> None:
    """Against fits of every cosine and sine by lstsq."""
    waves, vectors = modular_waves("add", 10), noise(20, 10)
    nearest = own_waves(vectors, waves)
    for vector, found in zip(vectors, nearest, strict=True):
        errors = []
        for frequency in range(6):
            turns = 2 * np.pi * frequency * np.arange(10) / 10
            basis = np.stack([np.cos(turns), np.sin(turns)], axis=1)
            solution = np.linalg.lstsq(basis, vector, rcond=None)[0]
            errors.append(np.square(vector - basis @ solution).sum())
        assert np.square(vector - found).sum() == pytest.approx(min(errors))


def test_a_shared_frequency_is_one_that_no_vector_need_prefer() -> None:
    """Each vector has a stronger wave of its own, and all have wave 3."""
    i = 2 * np.pi * np.arange(31) / 31
    vectors = np.stack([[np.cos(3 * i) + 1.1 * np.cos(own * i)] for own in (5, 7, 9)])  # [3, 1, 31]
    waves = modular_waves("add", 31)
    assert shared_frequency(vectors, waves).tolist() == [3]
    assert np.allclose(shared_waves(vectors, waves), np.cos(3 * i))
    assert np.allclose(own_waves(vectors, waves)[1, 0], 1.1 * np.cos(7 * i))


def test_the_strongest_frequencies_count_u_v_and_w_the_same() -> None:
    i = 2 * np.pi * np.arange(31) / 31
    vectors = np.stack([[100 * np.cos(2 * i)], [np.cos(4 * i)], [0.01 * np.cos(4 * i)]])
    assert strongest_frequencies(vectors, modular_waves("add", 31))[:2].tolist() == [4, 2]


# ---- the analytic family --------------------------------------------------------------------------------------------


def family_member(operation: Operation, modulus: int, wave: int, phases: tuple[float, float], sizes: Array) -> Array:
    """[3, 1, p] by the formula in the module, over the group's own order, zero outside of the group."""
    order = modular_waves(operation, modulus).order
    (G,) = order.shape
    turns = 2 * np.pi * wave * np.arange(G) / G
    second = -turns if operation in ("subtract", "divide") else turns
    member = np.zeros((3, 1, modulus))
    member[0, 0, order] = sizes[0] * np.cos(turns + phases[0])
    member[1, 0, order] = sizes[1] * np.cos(second + phases[1])
    member[2, 0, order] = sizes[2] * np.cos(turns + sum(phases))
    return member


@given(
    st.sampled_from([("add", 12), ("add", 13), ("subtract", 13), ("multiply", 13), ("divide", 13)]),
    st.integers(1, 5),
    st.tuples(st.floats(-3.1, 3.1), st.floats(-3.1, 3.1)),
    arrays(np.float64, 3, elements=st.floats(0.01, 100)),
)
def test_members_of_the_family_have_distance_0(
    group: tuple[Operation, int], wave: int, phases: tuple[float, float], sizes: Array
) -> None:
    vectors = family_member(*group, wave, phases, sizes)
    member = nearest_member(vectors, modular_waves(*group))
    assert member.distance[0] < 1e-6
    assert member.weight_distance < 1e-6
    assert member.frequency.tolist() == [wave]
    np.testing.assert_allclose(member.vectors, vectors, atol=1e-6 * sizes.max())


def test_a_member_speaks_for_the_right_answer() -> None:
    """With the sign of W turned the neuron is not in the family: giving up one of three equal vectors is the best."""
    vectors = family_member("add", 13, 2, (0.4, 1.3), np.ones(3))
    assert nearest_member(vectors * [[[-1]], [[-1]], [[1]]], modular_waves("add", 13)).distance[0] < 1e-6
    wrong = nearest_member(vectors * [[[1]], [[1]], [[-1]]], modular_waves("add", 13))
    assert wrong.distance[0] == pytest.approx(np.sqrt(1 / 3))


def brute_distance(vectors: Array, inverse: bool) -> float:
    """Equation 2 on a grid of phases, with the best amplitude that is not negative for each vector."""
    p = vectors.shape[-1]
    relative = vectors / np.sqrt(np.square(vectors).sum(axis=-1, keepdims=True))
    best = np.inf
    phases = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    for wave in range(p // 2 + 1):
        turns = 2 * np.pi * wave * np.arange(p) / p
        # [3, phases]  what is left of each vector after the best wave of each phase
        signs = (1, -1 if inverse else 1, 1)
        left = []
        for vector, sign in zip(relative, signs, strict=True):
            shapes = np.cos(sign * turns + phases[:, None])  # [phases, p]
            squares = np.square(shapes).sum(axis=1)
            inner = np.maximum(shapes @ vector, 0)
            left.append(1 - np.divide(inner**2, squares, out=np.zeros_like(inner), where=squares > 1e-9))
        for i, j in product(range(60), range(60)):
            best = min(best, (left[0][i] + left[1][j] + left[2][(i + j) % 60]) / 3)
    return float(np.sqrt(best))


@pytest.mark.parametrize("operation", ["add", "subtract"])
@pytest.mark.parametrize("modulus", [5, 6])
def test_the_nearest_member_against_a_search(operation: Operation, modulus: int) -> None:
    vectors = noise(3, 8, modulus, seed=modulus)
    found = nearest_member(vectors, modular_waves(operation, modulus)).distance
    for k in range(8):
        brute = brute_distance(vectors[:, k], operation == "subtract")
        assert found[k] <= brute + 1e-9  # the grid has no better one
        assert found[k] >= brute - 0.01  # and one nearly as good


neurons = arrays(np.float64, (3, 2, 11), elements=st.floats(-1, 1)).filter(
    lambda vectors: np.square(vectors).sum(axis=-1).min() > 1e-3
)


@settings(max_examples=40)
@given(neurons, arrays(np.float64, (3, 2, 1), elements=st.floats(1e-3, 1e3)))
def test_distances_do_not_see_the_scale_of_a_vector(vectors: Array, scale: Array) -> None:
    waves = modular_waves("add", 11)
    first, second = nearest_member(vectors, waves), nearest_member(scale * vectors, waves)
    np.testing.assert_allclose(second.distance, first.distance, atol=1e-6)
    assert ((first.distance >= 0) & (first.distance <= 1)).all()
    whole = nearest_member(7 * vectors, waves)
    assert whole.weight_distance == pytest.approx(first.weight_distance, abs=1e-6)


def test_a_dead_neuron_has_no_distance_and_stays() -> None:
    weights = pruned(ModelSpec(width=40), analytic_weights(11, 40), [3])
    member = nearest_member(neuron_vectors(weights), modular_waves("add", 11))
    assert np.flatnonzero(np.isnan(member.distance)).tolist() == [3]
    assert member.frequency[3] == -1
    assert not member.vectors[:, 3].any()
    nothing = nearest_member(np.zeros((3, 4, 11)), modular_waves("add", 11))
    assert np.isnan(nothing.weight_distance)


def test_there_is_no_family_without_a_group() -> None:
    with pytest.raises(GrokscopeError, match=r"not a group operation.*x2\+y2"):
        nearest_member(noise(3, 2, 11), modular_waves("x2+y2", 11))


# ---- restricted and excluded logits ---------------------------------------------------------------------------------


def test_key_components_against_a_transform_in_two_dimensions() -> None:
    """cos and sin(2πσ(m + n)/p) are the entries (σ, σ) and (−σ, −σ) of the transform over (m, n)."""
    p, key = 7, np.array([1, 3])
    logits = noise(p, p, p)  # m, n, q
    transform = np.fft.fft2(logits, axes=(0, 1))
    wanted = np.zeros((p, p, 1))
    for sigma in key:
        wanted[sigma, sigma] = wanted[-sigma, -sigma] = 1
    expected = np.fft.ifft2(transform * wanted, axes=(0, 1)).real.reshape(p * p, p)
    flat = logits.reshape(p * p, p)
    m, n = np.divmod(np.arange(p * p), p)
    constant, parts = key_components(flat, (m + n) % p, modular_waves("add", p), key)
    np.testing.assert_allclose(parts, expected, atol=1e-12)
    np.testing.assert_allclose(constant, np.broadcast_to(flat.mean(axis=0), flat.shape))


@pytest.mark.parametrize(("operation", "modulus"), [("add", 6), ("multiply", 7), ("multiply", 15)])
def test_of_the_rule_itself_restricting_leaves_all_and_excluding_nothing(operation: Operation, modulus: int) -> None:
    """Logits that depend on the answer alone, with all frequencies, shuffled pairs."""
    waves = modular_waves(operation, modulus)
    i, j = (waves.places[index.ravel()] for index in np.indices((len(waves.places),) * 2))
    answers = (i + j if operation == "add" else i * j) % modulus
    answers = np.random.default_rng(0).permutation(answers)
    logits = noise(modulus, modulus)[answers]
    every = np.arange(len(waves))
    np.testing.assert_allclose(restricted_logits(logits, answers, waves, every), logits, atol=1e-12)
    constant = np.broadcast_to(logits.mean(axis=0), logits.shape)
    np.testing.assert_allclose(excluded_logits(logits, answers, waves, every), constant, atol=1e-12)
    none = np.array([], dtype=np.int64)
    np.testing.assert_allclose(restricted_logits(logits, answers, waves, none), constant, atol=1e-12)
    np.testing.assert_array_equal(excluded_logits(logits, answers, waves, none), logits)


# ---- whole networks -------------------------------------------------------------------------------------------------


def test_the_analytic_network_is_made_of_waves() -> None:
    """Nothing that keeps its waves changes it; without them it guesses."""
    p, task = 23, TaskSpec(modulus=23)
    ablations = ablate(ModelSpec(width=1000), analytic_weights(p, 1000), make_dataset(task))
    (full,) = ablations.series("full")
    for name in ("own_wave", "shared_wave", "analytic_family"):
        for row in ablations.series(name):
            assert row.behaviour.test_accuracy == full.behaviour.test_accuracy == 1
            assert row.behaviour.train_loss == pytest.approx(full.behaviour.train_loss, rel=1e-4)
    assert ablations.series("frequencies")[-1].k == p // 2 + 1
    assert ablations.series("frequencies")[-1].behaviour.test_loss == pytest.approx(full.behaviour.test_loss, rel=1e-4)
    assert ablations.distance is not None
    assert ablations.distance.max() < 1e-5
    assert ablations.key_frequencies == tuple(range(1, p // 2 + 1))
    (restricted,), (excluded,) = ablations.series("restricted"), ablations.series("excluded")
    assert restricted.behaviour.test_accuracy == restricted.behaviour.recovered_accuracy == 1
    assert restricted.behaviour.test_loss <= full.behaviour.test_loss
    assert excluded.behaviour.test_accuracy < 3 / p
    assert excluded.behaviour.test_loss == pytest.approx(1 / p, rel=0.2)  # that of the network that says nothing
    assert excluded.behaviour.recovered_accuracy < 4 / p


def test_keeping_all_frequencies_that_a_network_has_keeps_it() -> None:
    weights = analytic_weights(23, 300)
    waves = modular_waves("add", 23)
    vectors = neuron_vectors(weights)
    few = np.isin(shared_frequency(vectors, waves), [2, 5, 7])
    smaller = neuron_vectors(pruned(ModelSpec(width=300), weights, ~few))
    assert set(strongest_frequencies(smaller, waves)[:3].tolist()) == {2, 5, 7}
    np.testing.assert_allclose(kept(smaller, waves, strongest_frequencies(smaller, waves)[:3]), smaller, atol=1e-7)
    assert not np.allclose(kept(smaller, waves, strongest_frequencies(smaller, waves)[:2]), smaller)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"model.norm": "batch", "model.activation": "relu"},
        {"model.norm": "layer", "training.loss": "cross-entropy"},
        {"task.operation": "multiply", "task.modulus": 15},
        {"task.operation": "divide", "task.corruption": 0.0},
        {"task.operation": "subtract", "model.activation": "gelu"},
        {"task.operation": "x2+y2"},
    ],
)
def test_every_two_layer_network(tiny: RunSpec, fields: dict[str, Any]) -> None:
    """The unreplaced network, and the one with all its frequencies, are the network; k counts to the end."""
    result = run(tiny.updated(fields))
    dataset, weights, model = result.dataset(), result.trained_weights(), result.spec.model
    ablations = ablate(model, weights, dataset, result.spec.training.loss)
    expected = measure_network(make_network(model, weights), dataset, result.spec.training.loss)
    (full,) = ablations.series("full")
    for name in ("train", "test", "corrupted", "clean", "recovered"):
        measured = getattr(full.behaviour, f"{name}_accuracy")
        assert measured == pytest.approx(getattr(expected, f"{name}_accuracy"), nan_ok=True)
    assert full.behaviour.train_loss == pytest.approx(expected.train_loss)
    assert full.behaviour.test_loss == pytest.approx(expected.test_loss)
    unreplaced, everything = ablations.series("own_wave")[0], ablations.series("frequencies")[-1]
    assert unreplaced.k == 0
    assert unreplaced.behaviour.test_loss == full.behaviour.test_loss
    assert everything.behaviour.test_loss == pytest.approx(full.behaviour.test_loss, rel=1e-4)
    assert [row.k for row in ablations.series("shared_wave")][-1] == 24
    group = result.spec.task.operation != "x2+y2"
    assert bool(ablations.series("analytic_family")) == group == (ablations.distance is not None)
    assert ("analytic_family" in ablations.missing) == (not group)
    assert ("progress" in ablations.missing) == (not ablations.series("excluded"))
    if dataset.corrupted.any():
        share = dataset.corrupted.mean()
        both = share * full.behaviour.corrupted_loss + (1 - share) * full.behaviour.clean_loss
        assert both == pytest.approx(full.behaviour.train_loss)
    else:
        assert full.to_dict()["corrupted_loss"] is None


def test_pairs_outside_the_group_are_left_out_of_the_progress_measures() -> None:
    """Multiplication by hand: waves over the logarithm; 0 takes no part, so 2·13 − 1 pairs are left out."""
    task = TaskSpec(modulus=13, operation="multiply")
    dataset, order = make_dataset(task), modular_waves("multiply", 13).order
    plain = analytic_weights(12, 1500)
    weights = {name: np.zeros((1500, 13), dtype=np.float32) for name in "UV"} | {"W": np.zeros((13, 1500), np.float32)}
    for name in "UV":
        weights[name][:, order] = plain[name]
    weights["W"][order] = plain["W"]
    ablations = ablate(ModelSpec(width=1500), weights, dataset)
    assert ablations.pairs_left_out == 25
    (restricted,), (excluded,) = ablations.series("restricted"), ablations.series("excluded")
    assert restricted.behaviour.test_accuracy == 1
    assert excluded.behaviour.test_accuracy < 0.3
    assert ablations.mean_distance(high=True) < 1e-5


def test_a_network_without_live_neurons() -> None:
    model = ModelSpec(width=6)
    weights = pruned(model, initial_weights(model, 7), np.arange(6))
    ablations = ablate(model, weights, make_dataset(TaskSpec(modulus=7)))
    assert ablations.frequency.tolist() == [-1] * 6
    assert np.isnan(ablations.mean_distance(high=True))
    assert np.isnan(ablations.weight_distance)
    assert "no neuron has IPR" in ablations.missing["progress"]


def test_high_and_low_ipr_neurons_apart() -> None:
    """Half of the neurons analytic, half noise."""
    model, weights = ModelSpec(width=40), analytic_weights(23, 40)
    vectors = neuron_vectors(weights)
    vectors[:, 20:] = noise(3, 20, 23)
    ablations = ablate(model, with_vectors(model, weights, vectors), make_dataset(TaskSpec(modulus=23)))
    assert ablations.high.tolist() == [True] * 20 + [False] * 20
    assert ablations.mean_distance(high=True) < 1e-5
    assert ablations.mean_distance(high=False) > KEY_IPR


@pytest.mark.parametrize("model", [ModelSpec(depth=3), ModelSpec(kind="transformer")])
def test_other_networks_are_refused(model: Network) -> None:
    with pytest.raises(GrokscopeError, match="two-layer network"):
        ablate(model, initial_weights(model, 11), make_dataset(TaskSpec(modulus=11)))

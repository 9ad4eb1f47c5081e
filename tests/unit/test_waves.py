"""Waves and phases of neurons, against cosines that are written down."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grokscope import ModelSpec, NeuronWaves, TaskSpec, analytic_weights, initial_weights, neuron_waves, output_waves
from grokscope.measure.spectra.waves import phase_relation, why_no_relation
from grokscope.models import Weights
from grokscope.randomness import Stream, permutation
from grokscope.tasks import Operation, modular_waves
from grokscope.waves import wave_frequencies


def distance(first: npt.ArrayLike, second: npt.ArrayLike) -> Any:
    """Between angles, the short way round."""
    return np.abs(np.exp(1j * np.asarray(first)) - np.exp(1j * np.asarray(second)))


def cosine(frequency: int, phase: float, period: int) -> npt.NDArray[np.float64]:
    return np.cos(2 * np.pi * frequency * np.arange(period) / period + phase)


def network(u: npt.ArrayLike, v: npt.ArrayLike, w: npt.ArrayLike) -> Weights:
    """Of neurons with these rows of U and V and columns of W."""
    U, V, W = (np.atleast_2d(np.asarray(rows, np.float32)) for rows in (u, v, w))
    return {"U": U, "V": V, "W": W.T.copy()}


def waves_in(weights: Weights, operation: Operation = "add") -> NeuronWaves:
    """Of the neurons of a two-layer network."""
    width, modulus = weights["U"].shape
    return neuron_waves(ModelSpec(width=width), weights, TaskSpec(operation=operation, modulus=modulus))


@pytest.mark.parametrize(("modulus", "width"), [(97, 500), (31, 90), (10, 60)])
def test_the_analytic_network_obeys_the_relation_in_every_neuron(modulus: int, width: int) -> None:
    waves = waves_in(analytic_weights(modulus, width, seed=3))
    frequency = 1 + permutation(3, Stream.ANALYTIC, 0, np.arange(width, dtype=np.int64))
    folded = np.minimum(frequency % modulus, -frequency % modulus)
    assert [waves.frequency_of(wave) for wave in waves.wave] == folded.tolist()
    assert waves.spectra.neuron_ipr == pytest.approx(1, abs=1e-4)
    # Frequencies 0 and p/2 are constant and alternating: they have a sign and no phase.
    has_phase = 2 * folded % modulus != 0
    assert np.array_equal(~np.isnan(waves.residual), has_phase)
    assert np.abs(waves.residual[has_phase]).max() < 1e-5
    summary = waves.summary()
    assert (summary.neurons, summary.agreement) == (width, 1)
    assert summary.frequencies == len(set(folded.tolist()))
    assert waves.counts().tolist() == np.bincount(folded, minlength=modulus // 2 + 1).tolist()
    assert (waves.second == -1).all()
    assert math.isnan(summary.second_double)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("operation", "modulus"), [("add", 2), ("add", 7), ("multiply", 7), ("multiply", 15)])
def test_a_vector_that_is_not_finite_has_no_waves(operation: Operation, modulus: int, bad: float) -> None:
    """A transform would make ∞ of some and NaN of others, with a warning, which fails here."""
    vectors = np.random.default_rng(0).normal(size=(3, modulus))
    waves = modular_waves(operation, modulus)
    expected = waves.coefficients(vectors)
    vectors[1, 1] = bad
    found = waves.coefficients(vectors)
    assert np.isnan(found[1]).all()
    assert np.isnan(waves.amplitudes(vectors)[1]).all()
    np.testing.assert_array_equal(found[::2], expected[::2])


@given(st.integers(1, 48), st.floats(-3.1, 3.1), st.floats(-3.1, 3.1), st.floats(-3.1, 3.1))
@settings(max_examples=50)
def test_phases_are_those_of_the_cosines(frequency: int, u: float, v: float, w: float) -> None:
    waves = waves_in(network(*(cosine(frequency, phase, 97) for phase in (u, v, w))))
    assert distance(waves.phase[:, 0], [u, v, w]).max() < 1e-4
    assert distance(waves.residual[0], u + v - w) < 1e-4
    assert -np.pi < waves.residual[0] <= np.pi
    assert waves.frequency_of(waves.wave[0]) == frequency


@given(st.integers(0, 2**32 - 1), st.integers(0, 30))
@settings(max_examples=50)
def test_shifting_all_weights_turns_every_phase_by_the_shift_theorem(seed: int, shift: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(3, 31))
    here = waves_in(network(*rows))
    there = waves_in(network(*np.roll(rows, shift, axis=1)))
    assume(not np.isnan(here.phase).any())
    frequency = here.frequency_of(here.wave[0])
    assert there.frequency_of(there.wave[0]) == frequency
    assert isinstance(frequency, int)
    turned = here.phase[:, 0] - 2 * np.pi * frequency * shift / 31
    assert distance(there.phase[:, 0], turned).max() < 1e-3
    assert there.second_ratio == pytest.approx(here.second_ratio, rel=1e-4)


def test_a_residual_of_half_a_turn_is_plus_pi() -> None:
    waves = waves_in(network(cosine(1, 0, 4 * 3), cosine(1, 0, 12), -cosine(1, 0, 12)))
    assert waves.residual[0] == pytest.approx(np.pi)


def character(modulus: int, frequencies: tuple[int, ...], phase: float) -> npt.NDArray[np.float64]:
    """A real character of the multiplicative group, one value at a time; 0 at what has no inverse."""
    order = modular_waves("multiply", modulus).order
    wave = np.zeros(modulus)
    for exponents in np.ndindex(order.shape):
        turns = sum(f * e / length for f, e, length in zip(frequencies, exponents, order.shape, strict=True))
        wave[order[exponents]] = math.cos(2 * math.pi * turns + phase)
    return wave


@pytest.mark.parametrize(("modulus", "frequencies"), [(31, (7,)), (35, (1, 2)), (15, (1, 1)), (24, (1, 0, 1))])
def test_a_character_of_the_group_is_one_wave(modulus: int, frequencies: tuple[int, ...]) -> None:
    waves = waves_in(network(*(character(modulus, frequencies, phase) for phase in (0.5, 0.25, 0.75))), "multiply")
    found = waves.frequency_of(waves.wave[0])
    conjugate = tuple(-f % length for f, length in zip(frequencies, waves.waves.cycles, strict=True))
    assert (tuple(found) if isinstance(found, list) else (found,)) in (frequencies, conjugate)
    assert waves.spectra.neuron_ipr[0] == pytest.approx(1, abs=1e-5)
    if frequencies == conjugate:
        assert math.isnan(waves.residual[0])
    else:
        assert waves.residual[0] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(("operation", "w"), [("add", 1.5), ("subtract", 0.5), ("multiply", 1.5), ("divide", 0.5)])
def test_the_relation_of_each_operation(operation: Operation, w: float) -> None:
    """m − n and m/n go back with n, so φ_v enters with the other sign."""
    phases = (1.0, 0.5, w)
    if operation in ("add", "subtract"):
        rows = [cosine(3, phase, 31) for phase in phases]
    else:
        rows = [character(31, (3,), phase) for phase in phases]
    waves = waves_in(network(*rows), operation)
    assert waves.residual[0] == pytest.approx(0, abs=1e-5)
    assert ("φ_u − φ_v" in phase_relation(waves.waves)) == (operation in ("subtract", "divide"))


def test_a_neuron_that_subtracts_solves_subtraction() -> None:
    """The sign is not a convention: of the mean of W·U·V over the grid only this one is the largest possible."""
    m, n = np.divmod(np.arange(31**2), 31)
    phases = np.linspace(-np.pi, np.pi, 13)
    u, v = cosine(3, 1.0, 31), cosine(3, 0.5, 31)
    overlap = [(u[m] * v[n] * cosine(3, w, 31)[(m - n) % 31]).mean() for w in phases]
    best = waves_in(network(u, v, cosine(3, phases[int(np.argmax(overlap))], 31)), "subtract")
    assert abs(best.residual[0]) < np.pi / 12 + 1e-5  # half the distance of the phases that were tried


@pytest.mark.parametrize(("second", "field"), [(10, "second_double"), (15, "second_triple"), (0, "second_constant")])
def test_second_waves(second: int, field: str) -> None:
    mixed = cosine(5, 0.3, 97) + (0.1 if second == 0 else 0.2) * cosine(second, 0, 97)
    waves = waves_in(network(mixed, mixed, mixed))
    assert (waves.wave[0], waves.second[0]) == (5, second)
    assert waves.second_ratio[0] == pytest.approx(0.2, rel=1e-5)  # |rfft| of a constant is twice that of a cosine
    summary = waves.summary()
    fields = ("second_double", "second_triple", "second_constant")
    assert {name: getattr(summary, name) for name in fields} == {name: float(name == field) for name in fields}


def test_harmonics_wrap_round_the_modulus() -> None:
    """2 · 40 = 80, which is the wave of 17."""
    mixed = cosine(40, 0.3, 97) + 0.2 * cosine(17, 0, 97)
    assert waves_in(network(mixed, mixed, mixed)).summary().second_double == 1


def test_neurons_whose_vectors_disagree_or_are_dead() -> None:
    a, b, zero = cosine(3, 0.1, 97), cosine(8, 0.2, 97), np.zeros(97)
    waves = waves_in(network([a, a, zero, a], [a, b, zero, a], [a, a, zero, zero]))
    assert waves.agrees.tolist() == [True, False, False, False]
    assert waves.live.tolist() == [True, True, False, False]
    assert waves.wave.tolist() == [3, 3, -1, -1]
    assert waves.summary().agreement == 0.5
    # V of the second neuron holds nothing of the neuron's wave: no phase, so no residual.
    assert np.isnan(waves.phase[:, 1]).tolist() == [False, True, False]
    assert np.isnan(waves.residual).tolist() == [False, True, True, True]
    assert np.isnan(waves.second_ratio).tolist() == [False, False, True, True]
    assert waves.frequency_of(-1) is None
    assert not waves.power[2:].any()
    assert waves.norm[3] == pytest.approx(math.sqrt(97))
    dead = waves_in(network([zero], [zero], [zero])).summary()
    assert (dead.neurons, dead.frequencies) == (0, 0)
    assert math.isnan(dead.agreement)
    assert math.isnan(dead.mean_residual)


@pytest.mark.parametrize("modulus", [2, 3, 4])
@pytest.mark.parametrize("operation", ["add", "multiply"])
def test_the_smallest_moduli(modulus: int, operation: Operation) -> None:
    waves = waves_in(initial_weights(ModelSpec(width=8), modulus), operation)
    assert waves.counts().sum() == 8
    assert waves.power.sum(axis=1) == pytest.approx(1)
    waves.summary()


@pytest.mark.parametrize(
    ("fields", "ends"),
    [
        ({"width": 12}, {"hidden": ("u", "v", "w")}),
        ({"width": 12, "depth": 3}, {"first hidden": ("u", "v"), "last hidden": ("w",)}),
        ({"kind": "transformer", "embed": 8}, {"embedding": ("e",), "unembedding": ("w",)}),
        ({"kind": "transformer", "embed": 8, "tie_weights": True}, {"embedding": ("e",)}),
    ],
)
def test_what_each_network_has(fields: dict[str, Any], ends: dict[str, tuple[str, ...]]) -> None:
    model, task = ModelSpec(**fields), TaskSpec(modulus=11)
    weights = initial_weights(model, 11)
    both = neuron_waves(model, weights, task), output_waves(model, weights, task)
    found = [waves for waves in both if waves is not None]
    assert {waves.layer: waves.vectors for waves in found} == ends
    for waves in found:
        relation = why_no_relation(waves)
        assert (relation is None) == (waves.layer == "hidden") == (not np.isnan(waves.residual).all())
        assert math.isnan(waves.summary().agreement) == (len(waves.vectors) == 1)
        assert waves.neurons.vectors.keys() == set(waves.vectors)
        assert {vectors.shape for vectors in waves.neurons.vectors.values()} == {(len(waves.wave), 11)}
    squares = neuron_waves(model, weights, TaskSpec(operation="x2+y2", modulus=11))
    assert why_no_relation(squares) is not None


@given(st.sampled_from([(7,), (8,), (2, 4), (4, 6), (2, 2, 2)]), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_waves_have_the_frequencies_that_a_plain_sum_finds(cycles: tuple[int, ...], seed: int) -> None:
    """The slow twin: each coefficient as a sum over all places."""
    modulus = {(7,): 7, (8,): 8, (2, 4): 15, (4, 6): 35, (2, 2, 2): 24}[cycles]
    operation: Operation = "add" if len(cycles) == 1 else "multiply"
    waves = modular_waves(operation, modulus)
    order = waves.order
    assert order.shape == cycles
    vector = np.random.default_rng(seed).normal(size=modulus)
    for place, frequencies in enumerate(wave_frequencies(cycles)):
        plain = sum(
            vector[order[at]] * np.exp(-2j * np.pi * (frequencies * np.array(at) / np.array(cycles)).sum())
            for at in np.ndindex(cycles)
        )
        assert waves.coefficients(vector)[place] == pytest.approx(plain, abs=1e-9)

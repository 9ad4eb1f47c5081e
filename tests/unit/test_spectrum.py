import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from grokscope import ModelSpec, NeuronSpectra, TaskSpec, neuron_spectra
from grokscope.arrays import FloatArray
from grokscope.measure.spectra.spectrum import gini_coefficient, inverse_participation_ratio
from grokscope.models import Weights
from grokscope.tasks import Operation, modular_waves

COMPOSITE_AND_PRIME = [3, 4, 5, 8, 9, 12, 15, 16, 24, 36, 60, 97, 100]


def amplitudes(vectors: np.ndarray, operation: Operation) -> FloatArray:
    return modular_waves(operation, vectors.shape[-1]).amplitudes(vectors)


def spectra_of(weights: Weights) -> NeuronSpectra:
    """Of the neurons of a two-layer network that adds."""
    width, modulus = weights["U"].shape
    spectra = neuron_spectra(ModelSpec(width=width), weights, TaskSpec(modulus=modulus))
    assert spectra is not None
    return spectra


def ipr(vector: np.ndarray, operation: Operation = "add") -> float:
    return float(inverse_participation_ratio(amplitudes(vector, operation)))


@pytest.mark.parametrize("modulus", [2, 3, 10, 97, 113])
def test_a_pure_cosine_has_ipr_1(modulus: int) -> None:
    places = np.arange(modulus)
    for frequency in range(modulus // 2 + 1):
        wave = np.cos(2 * np.pi * frequency * places / modulus + 0.3)
        assert ipr(wave) == pytest.approx(1)
        assert int(amplitudes(wave, "add").argmax()) == frequency


def test_a_flat_spectrum_has_ipr_1_over_49() -> None:
    impulse = np.zeros(97)
    impulse[0] = 1
    assert ipr(impulse) == pytest.approx(1 / 49)
    assert float(gini_coefficient(amplitudes(impulse, "add"))) == pytest.approx(0, abs=1e-12)


def test_gaussian_noise_has_ipr_about_004() -> None:
    noise = np.random.default_rng(0).normal(size=(2000, 97))
    assert inverse_participation_ratio(amplitudes(noise, "add")).mean() == pytest.approx(0.04, abs=0.003)


def test_amplitudes_of_addition_are_those_of_rfft() -> None:
    vectors = np.random.default_rng(0).normal(size=(3, 4, 97))
    np.testing.assert_allclose(amplitudes(vectors, "add"), np.abs(np.fft.rfft(vectors)), rtol=1e-12)


vectors = arrays(np.float64, 31, elements=st.floats(-10, 10)).filter(lambda vector: np.abs(vector).max() > 1e-3)


@given(vectors, st.floats(1e-30, 1e30), st.integers(0, 30))
def test_ipr_does_not_see_scale_sign_or_shift(vector: np.ndarray, scale: float, shift: int) -> None:
    value = ipr(vector)
    assert 1 / 16 - 1e-9 <= value <= 1 + 1e-9
    assert ipr(scale * vector) == pytest.approx(value)
    assert ipr(-vector) == pytest.approx(value)
    assert ipr(np.roll(vector, shift)) == pytest.approx(value)


@given(vectors)
def test_gini_lies_between_equality_and_a_single_wave(vector: np.ndarray) -> None:
    assert -1e-9 <= float(gini_coefficient(amplitudes(vector, "add"))) <= 1 - 1 / 16 + 1e-9


def units(modulus: int) -> list[int]:
    return [residue for residue in range(modulus) if math.gcd(residue, modulus) == 1]


@pytest.mark.parametrize("modulus", [2, *COMPOSITE_AND_PRIME])
def test_wave_order_holds_every_invertible_residue_once(modulus: int) -> None:
    assert sorted(modular_waves("multiply", modulus).order.ravel().tolist()) == units(modulus)


@pytest.mark.parametrize("modulus", COMPOSITE_AND_PRIME)
def test_steps_along_an_axis_multiply_by_one_number(modulus: int) -> None:
    """Which makes multiplication a shift, and a shift changes no amplitude."""
    order = modular_waves("multiply", modulus).order
    for axis in range(order.ndim):
        moved = np.roll(order, -1, axis=axis)
        factors = {
            int(b) * pow(int(a), -1, modulus) % modulus for a, b in zip(order.ravel(), moved.ravel(), strict=True)
        }
        assert len(factors) == 1


@pytest.mark.parametrize("modulus", COMPOSITE_AND_PRIME)
def test_a_character_of_the_multiplicative_group_has_ipr_1(modulus: int) -> None:
    order = modular_waves("multiply", modulus).order
    generator = np.random.default_rng(0)
    for _ in range(5):
        frequencies = generator.integers(0, order.shape)
        exponents = np.indices(order.shape)
        turns = sum(f * e / length for f, e, length in zip(frequencies, exponents, order.shape, strict=True))
        wave = np.zeros(modulus)
        wave[order] = np.cos(2 * np.pi * turns + 0.3)
        assert ipr(wave, "multiply") == pytest.approx(1)


@given(st.sampled_from(COMPOSITE_AND_PRIME), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_multiplying_the_index_changes_no_multiplicative_amplitude(modulus: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    vector = generator.normal(size=modulus)
    factor = int(generator.choice(units(modulus)))
    moved = vector[np.arange(modulus) * factor % modulus]
    np.testing.assert_allclose(amplitudes(moved, "multiply"), amplitudes(vector, "multiply"), atol=1e-10)


@pytest.mark.parametrize(("modulus", "waves"), [(97, 49), (15, 6), (8, 4), (24, 8)])
def test_each_conjugate_pair_of_waves_counts_once(modulus: int, waves: int) -> None:
    """A group of n elements with s that are their own inverse has (n + s) / 2 distinct real waves."""
    assert amplitudes(np.ones(modulus), "multiply").shape == (waves,)


def test_dead_neurons_are_counted_and_kept_out_of_the_means() -> None:
    wave = np.cos(2 * np.pi * 3 * np.arange(97) / 97).astype(np.float32)
    tiny = 1e-37 * wave
    rows = np.stack([wave, tiny, np.zeros(97, np.float32)])
    spectra = spectra_of({"U": rows, "V": rows, "W": rows.T.copy()})
    assert spectra.dead.tolist() == [False, False, True]
    assert spectra.frequency[0].tolist() == [3, 3, -1]
    assert spectra.neuron_ipr[:2] == pytest.approx(1, rel=1e-5)
    assert np.isnan(spectra.neuron_ipr[2])
    assert spectra.mean_ipr == pytest.approx(1, rel=1e-5)
    assert spectra.mean_gini == pytest.approx(1 - 1 / 49, rel=1e-3)


def test_a_network_of_dead_neurons_has_no_mean() -> None:
    zero = np.zeros((4, 97), np.float32)
    spectra = spectra_of({"U": zero, "V": zero, "W": zero.T.copy()})
    assert spectra.dead.all()
    assert math.isnan(spectra.mean_ipr)

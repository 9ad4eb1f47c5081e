"""The closed-form network of Equation 2, which solves modular addition without training.

>>> from grokscope.models import MLP
>>> module = MLP().module(analytic_weights(modulus=97, width=500))
"""

import math

import numpy as np

from grokscope.errors import SpecError
from grokscope.models.weights import Weights
from grokscope.randomness import Stream, permutation, unit_interval


def analytic_weights(modulus: int, width: int, seed: int = 0) -> Weights:
    """Every neuron k is a cosine of frequency σ(k) with random phases; W undoes the sum of the phases.

    The network is exact as N grows, with corrections of order 1/√N. The prefactor is (2/N)^(+1/3): the paper's
    Equation 2 prints the exponent as −1/3, but three factors have to make the 2/N of its Equation 6.
    """
    if modulus < 2 or width < 1:
        raise SpecError(f"there is no analytic network with modulus = {modulus} and width = {width}: at least 2 and 1")
    # σ is a random permutation of 1 … N; as a frequency it counts modulo p.
    frequency = 1 + permutation(seed, Stream.ANALYTIC, 0, np.arange(width, dtype=np.int64))  # [N]
    phase_u, phase_v = (2 * math.pi * u - math.pi for u in unit_interval(seed, Stream.ANALYTIC, 1, width))  # [N] each
    residues = np.arange(modulus)
    # Reducing k·i modulo p before it becomes a float keeps the cosines exact at every width.
    turns = 2 * math.pi / modulus * (np.outer(frequency, residues) % modulus)  # [N, p]
    scale = (2 / width) ** (1 / 3)
    return {
        "U": (scale * np.cos(turns + phase_u[:, None])).astype(np.float32),
        "V": (scale * np.cos(turns + phase_v[:, None])).astype(np.float32),
        "W": (scale * np.cos(-turns - (phase_u + phase_v)[:, None])).T.astype(np.float32).copy(),
    }

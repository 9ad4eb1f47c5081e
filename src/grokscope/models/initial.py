"""Initial weights.

>>> weights = initial_weights(ModelSpec(width=500), modulus=97, seed=0)
>>> weights["U"].shape, round(float(weights["U"].std()), 3)
((500, 97), 0.05)
"""

import math

import numpy as np
import numpy.typing as npt

from grokscope.randomness import normal
from grokscope.spec import ModelSpec, Seeding

Weights = dict[str, npt.NDArray[np.float32]]

_REFERENCE_INIT_SEED = 1


def initial_weights(model: ModelSpec, modulus: int, seed: int = 0, seeding: Seeding = "independent") -> Weights:
    """Gaussian weights at the scale of the parameterisation, and a normalisation layer that does nothing yet."""
    N, p = model.width, modulus
    u: npt.NDArray[np.floating]
    if seeding == "reference":
        u, v, w = _reference_normals(N, p)
    else:
        u, v, w = normal(seed, 0, (N, p)), normal(seed, 1, (N, p)), normal(seed, 2, (p, N))
    if model.parameterization == "paper":
        first = second = (16 * N) ** (-1 / 3)
    else:
        # N(0, 2/fan_in); the one-hot input eₘ ⊕ eₙ has 2p entries.
        first, second = math.sqrt(2 / (2 * p)), math.sqrt(2 / N)
    weights = {
        "U": (first * u).astype(np.float32),
        "V": (first * v).astype(np.float32),
        "W": (second * w).astype(np.float32),
    }
    if model.norm != "none":
        weights |= {"norm_scale": np.ones(N, np.float32), "norm_shift": np.zeros(N, np.float32)}
    if model.norm == "batch":
        weights |= {"norm_mean": np.zeros(N, np.float32), "norm_variance": np.ones(N, np.float32)}
    return weights


def _reference_normals(N: int, p: int) -> tuple[npt.NDArray[np.floating], ...]:
    """The authors' random numbers: two nn.Linear layers draw their default weights, then are drawn again."""
    import torch

    generator = torch.Generator().manual_seed(_REFERENCE_INIT_SEED)
    for shape in ((N, 2 * p), (p, N)):
        torch.empty(shape).uniform_(generator=generator)
    first = torch.empty(N, 2 * p).normal_(generator=generator).numpy()
    second = torch.empty(p, N).normal_(generator=generator).numpy()
    return first[:, :p], first[:, p:], second

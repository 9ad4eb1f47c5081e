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

EMBEDDINGS = ("embedding", "positions")  # of a Transformer; weight decay may leave them alone
MLP_EXPANSION = 4  # the hidden layer of a Transformer's MLP, in embedding sizes
NORM_EPSILON = 1e-5  # added to the variance by Batch- and LayerNorm
_REFERENCE_INIT_SEED = 1


def is_statistic(name: str) -> bool:
    """Whether an array is a running statistic of BatchNorm, which is averaged and not trained."""
    return name.endswith(("_mean", "_variance"))


def norm_prefix(layer: int) -> str:
    """How the names of the norm after hidden layer 1, 2, … of an MLP begin."""
    return "norm" if layer == 1 else f"norm{layer}"


def initial_weights(model: ModelSpec, modulus: int, seed: int = 0, seeding: Seeding = "independent") -> Weights:
    """Gaussian weights at the scale of the parameterisation, and normalisation layers that do nothing yet."""
    if model.kind == "transformer":
        return _transformer_weights(model, modulus, seed)
    N, p = model.width, modulus
    # Each with its number in the random stream.
    shapes = {"U": (N, p), "V": (N, p), "W": (p, N)} | {f"H{layer}": (N, N) for layer in range(2, model.depth)}
    if seeding == "reference":
        normals: dict[str, npt.NDArray[np.floating]] = dict(zip("UVW", _reference_normals(N, p), strict=True))
    else:
        normals = {name: normal(seed, number, shape) for number, (name, shape) in enumerate(shapes.items())}
    weights = {name: (_scale(model, name, p) * values).astype(np.float32) for name, values in normals.items()}
    for layer in range(1, model.depth):
        if model.norm != "none":
            weights |= _idle_norm(norm_prefix(layer), N)
        if model.norm == "batch":
            weights |= {
                f"{norm_prefix(layer)}_mean": np.zeros(N, np.float32),
                f"{norm_prefix(layer)}_variance": np.ones(N, np.float32),
            }
    return weights


def _scale(model: ModelSpec, name: str, modulus: int) -> float:
    """The standard deviation of a layer of an MLP."""
    match model.parameterization:
        case "paper":
            return float((16 * model.width) ** (-1 / 3))
        case "lazy":
            return math.sqrt(2) * float(model.width ** (-1 / 3))
        case "standard":
            # N(0, 2/fan_in); the one-hot input eₘ ⊕ eₙ has 2p entries.
            return math.sqrt(2 / (2 * modulus if name in ("U", "V") else model.width))


def _transformer_weights(model: ModelSpec, modulus: int, seed: int) -> Weights:
    """Embeddings N(0, 1) and linear layers N(0, 1/fan_in), as in the authors' program."""
    d, hidden = model.embed, MLP_EXPANSION * model.embed
    shapes = {"embedding": (modulus, d), "positions": (2, d)}
    for layer in range(1, model.layers + 1):
        shapes |= {f"{name}{layer}": (d, d) for name in ("query", "key", "value", "output")}
        shapes |= {f"mlp_in{layer}": (hidden, d), f"mlp_out{layer}": (d, hidden)}
    if not model.tie_weights:
        shapes["unembedding"] = (modulus, d)
    weights = {}
    for number, (name, shape) in enumerate(shapes.items()):
        scale = 1 if name in EMBEDDINGS else 1 / math.sqrt(shape[1])
        weights[name] = (scale * normal(seed, number, shape)).astype(np.float32)
    if model.norm == "layer":
        for layer in range(1, model.layers + 1):
            weights |= _idle_norm(f"attention_norm{layer}", d) | _idle_norm(f"mlp_norm{layer}", d)
        weights |= _idle_norm("final_norm", d)
    return weights


def _idle_norm(prefix: str, width: int) -> Weights:
    return {f"{prefix}_scale": np.ones(width, np.float32), f"{prefix}_shift": np.zeros(width, np.float32)}


def parameter_count(model: ModelSpec, modulus: int) -> int:
    """How many numbers the arrays of a network hold.

    >>> parameter_count(ModelSpec(width=500), modulus=97)
    145500
    """
    if model.kind == "transformer":
        d = model.embed
        tables = (2 - model.tie_weights) * modulus * d + 2 * d
        norms = 2 * d * (2 * model.layers + 1) if model.norm == "layer" else 0
        return tables + norms + model.layers * d * d * (4 + 2 * MLP_EXPANSION)
    N = model.width
    per_norm = {"none": 0, "layer": 2 * N, "batch": 4 * N}[model.norm]
    return 3 * N * modulus + (model.depth - 2) * N * N + (model.depth - 1) * per_norm


def _reference_normals(N: int, p: int) -> tuple[npt.NDArray[np.floating], ...]:
    """The authors' random numbers: two nn.Linear layers draw their default weights, then are drawn again."""
    import torch

    generator = torch.Generator().manual_seed(_REFERENCE_INIT_SEED)
    for shape in ((N, 2 * p), (p, N)):
        torch.empty(shape).uniform_(generator=generator)
    first = torch.empty(N, 2 * p).normal_(generator=generator).numpy()
    second = torch.empty(p, N).normal_(generator=generator).numpy()
    return first[:, :p], first[:, p:], second

"""The gradients of a quadratic two-layer network under MSE: by Equation 9, by autograd, and how they scale."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from grokscope.models import Weights
from grokscope.tasks import Dataset

FloatArray = npt.NDArray[np.float64]
_STEP = 1e-4  # of the logarithm of the scale


def equation_9(weights: Mapping[str, npt.NDArray[np.floating]], dataset: Dataset) -> dict[str, FloatArray]:
    """U, V [N, p] and W [p, N] as sums over the training set, in double precision.

    The factor of W is 2: the paper prints 4, which the derivative of the square brings to U and V only.
    """
    U, V, W = (weights[name].astype(np.float64) for name in "UVW")
    m, n = dataset.train_inputs.T
    p, examples = len(W), len(dataset.train_inputs)
    inside = U[:, m] + V[:, n]  # [N, n_train]
    bracket = W @ np.square(inside) - np.eye(p)[:, dataset.train_labels]  # [p, n_train]
    through = (W.T @ bracket) * inside  # [N, n_train]
    pairs_of_m, pairs_of_n = np.eye(p)[m], np.eye(p)[n]  # [n_train, p]: which examples have the index
    scale = 1 / (examples * p)
    return {
        "U": 4 * scale * through @ pairs_of_m,
        "V": 4 * scale * through @ pairs_of_n,
        "W": 2 * scale * bracket @ np.square(inside).T,
    }


def autograd_gradients(weights: Weights, dataset: Dataset) -> dict[str, FloatArray]:
    """The same by autograd, from the network and the loss used for training, in double precision."""
    import torch

    from grokscope.models import MLP
    from grokscope.models.module import losses_per_example

    network = MLP(width=len(weights["U"])).module(weights).double()
    logits = network(torch.tensor(dataset.train_inputs))  # [n_train, p]
    losses_per_example(logits, torch.tensor(dataset.train_labels), "mse").mean().backward()  # type: ignore[no-untyped-call]
    found = {}
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None
        found[name] = network.oriented(name, parameter.grad).numpy()
    return found


def relative_difference(first: FloatArray, second: FloatArray) -> float:
    """The norm of the difference over that of the second."""
    return float(np.linalg.norm(first - second) / np.linalg.norm(second))


def degree_of_gradient(weights: Weights, dataset: Dataset) -> float:
    """The power with which the norm of the gradient grows when all weights are scaled together, at these weights.

    It is 2 where the network's output is small beside the labels, and 5 where the output is all there is.
    """
    norms = []
    for power in (-_STEP, _STEP):
        scaled = {name: array.astype(np.float64) * math.exp(power) for name, array in weights.items()}
        gradients = equation_9(scaled, dataset)
        norms.append(math.sqrt(sum(np.square(each).sum() for each in gradients.values())))
    return (math.log(norms[1]) - math.log(norms[0])) / (2 * _STEP)

"""Networks: what they are, their initial weights, the analytic solution, and the torch module that evaluates them.

Weights are engine-neutral: a dictionary of float32 numpy arrays, under the names that each network gives them.
Importing this package does not import torch; making a module of weights does.
"""

from typing import TYPE_CHECKING

import numpy.typing as npt

from grokscope.models.analytic import analytic_weights
from grokscope.models.evaluation import Evaluation, Loss
from grokscope.models.mlp import MLP, Activation, Norm
from grokscope.models.network import HiddenLayer, Network, Neurons, UnresolvedNetwork, checked_weights
from grokscope.models.transformer import Transformer
from grokscope.models.weights import NORM_EPSILON, Weights, idle_norm, is_statistic
from grokscope.tasks import ModularTask, Seeding

if TYPE_CHECKING:
    from grokscope.models.module import NetworkModule

Network.built_in = (MLP, Transformer)

__all__ = [
    "MLP",
    "NORM_EPSILON",
    "Activation",
    "Evaluation",
    "HiddenLayer",
    "Loss",
    "Network",
    "Neurons",
    "Norm",
    "Transformer",
    "UnresolvedNetwork",
    "Weights",
    "analytic_weights",
    "checked_weights",
    "idle_norm",
    "initial_weights",
    "is_statistic",
    "make_network",
    "pruned",
]


def initial_weights(model: Network, modulus: int, seed: int = 0, seeding: Seeding = "independent") -> Weights:
    """The weights before the first step, for modular arithmetic.

    >>> weights = initial_weights(MLP(), modulus=97)
    >>> weights["U"].shape, round(float(weights["U"].std()), 3)
    ((500, 97), 0.05)
    """
    return model.initial_weights(ModularTask(modulus=modulus), seed, seeding)


def make_network(model: Network, weights: Weights) -> "NetworkModule":
    """The torch module that a spec describes, with these weights.

    >>> make_network(MLP(depth=3, width=8), initial_weights(MLP(depth=3, width=8), modulus=5)).network.describe()
    '3-layer relu 8'
    """
    return model.module(weights)


def pruned(model: Network, weights: Weights, neurons: npt.ArrayLike) -> Weights:
    """A copy of the weights without these neurons (indices, or a mask); nothing is retrained.

    >>> smaller = pruned(MLP(), analytic_weights(modulus=11, width=50), [0, 1])
    >>> bool(smaller["U"][:2].any()), bool(smaller["U"][2].any())
    (False, True)
    """
    return model.pruned(weights, neurons)

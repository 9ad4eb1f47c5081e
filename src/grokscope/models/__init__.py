"""Networks: their initial weights, the analytic solution, and the torch modules that evaluate them.

Weights are engine-neutral: a dictionary of float32 numpy arrays. Those of an MLP have the paper's names,

    U [N, p]   V [N, p]   H2, H3, … [N, N]   W [p, N]

and, with a normalisation layer, norm_scale [N] and norm_shift [N], with BatchNorm also norm_mean [N] and
norm_variance [N]; those after the second hidden layer are norm2_scale, and so on. Those of a Transformer are

    embedding [p, d]   positions [2, d]   unembedding [p, d], unless it is tied to the embedding
    query1, key1, value1, output1 [d, d]   mlp_in1 [4d, d]   mlp_out1 [d, 4d]   and so on for each layer

and, with LayerNorm, attention_norm1_scale, mlp_norm1_scale, …, final_norm_scale [d] and their shifts.

Importing this package does not import torch; making a module of weights does.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grokscope.models.analytic import analytic_weights
from grokscope.models.evaluation import Evaluation
from grokscope.models.initial import (
    EMBEDDINGS,
    MLP_EXPANSION,
    NORM_EPSILON,
    Weights,
    initial_weights,
    is_statistic,
    norm_prefix,
    parameter_count,
)
from grokscope.models.pruning import pruned
from grokscope.spec import ModelSpec

if TYPE_CHECKING:
    from grokscope.models.network import Network

__all__ = [
    "EMBEDDINGS",
    "MLP_EXPANSION",
    "NORM_EPSILON",
    "Evaluation",
    "Weights",
    "analytic_weights",
    "attention_patterns",
    "initial_weights",
    "is_statistic",
    "make_network",
    "norm_prefix",
    "parameter_count",
    "pruned",
]


def attention_patterns(model: ModelSpec, weights: Weights, pair: tuple[int, int]) -> npt.NDArray[np.float32]:
    """How the heads of a Transformer divide their attention on a pair (m, n): [layers, heads, query, key].

    Position 0 is m, position 1 is n; only the query at position 1 of the last layer is read.

    >>> model = ModelSpec(kind="transformer", embed=8, heads=2)
    >>> attention_patterns(model, initial_weights(model, modulus=5), (3, 4)).sum(axis=-1).round(5).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    import torch

    from grokscope.models.transformer import Transformer

    network = make_network(model, weights)
    assert isinstance(network, Transformer)
    patterns: npt.NDArray[np.float32] = network.attention(torch.tensor([pair]))[0].numpy()
    return patterns


def make_network(model: ModelSpec, weights: Weights) -> "Network":
    """The torch module that a spec describes, with these weights.

    >>> network = make_network(ModelSpec(depth=3, width=8), initial_weights(ModelSpec(depth=3, width=8), modulus=5))
    >>> type(network).__name__, network.hidden_layers
    ('MLP', 2)
    """
    if model.kind == "transformer":
        from grokscope.models.transformer import Transformer

        return Transformer(weights, model.heads, model.activation, model.norm, model.scaling)
    from grokscope.models.mlp import MLP

    return MLP(weights, model.activation, model.norm)

"""The layers of a Transformer on pairs of tokens, as torch computes them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from grokscope.models.module import ACTIVATIONS, Layers, NetworkModule

if TYPE_CHECKING:
    from grokscope.models.transformer import Transformer

Arrays = Mapping[str, Tensor]


@torch.no_grad()
def attention(module: NetworkModule, pairs: Tensor) -> Tensor:
    """Who attends to whom: [B, layers, heads, 2, 2], the last two being the query's and the key's position.

    The query at the first position of the last layer has no influence on the logits.
    """
    network: Transformer = module.network  # type: ignore[assignment]
    arrays = module.named_arrays()
    _, to_first = through_layers(network, arrays, pairs, Layers(arrays), whole=True)  # a list of [B, 2, H]
    patterns = torch.stack(to_first, dim=1).transpose(2, 3)  # [B, layers, H, 2]
    return torch.stack([patterns, 1 - patterns], dim=-1)


def through_layers(
    network: "Transformer", weights: Arrays, pairs: Tensor, layers: Layers, *, whole: bool
) -> tuple[Tensor, list[Tensor]]:
    """The residual stream [B, P, d] after all layers, and each layer's attention to the first position [B, P, H].

    P are both positions if the `whole` last layer is wanted, else the last one.
    """
    x, patterns = None, []
    for layer in range(1, network.layers + 1):
        positions = (0, 1) if whole or layer < network.layers else (1,)
        attended, x, to_first = _attend(network, weights, pairs, layers, layer, x, positions)
        x = x + layers.dropout(F.linear(attended, weights[f"output{layer}"]))
        x = x + layers.dropout(_mlp(network, weights, layers, x, layer))
        patterns.append(to_first)
    assert x is not None
    return x, patterns


def _attend(
    network: "Transformer",
    weights: Arrays,
    pairs: Tensor,
    layers: Layers,
    layer: int,
    x: Tensor | None,
    positions: tuple[int, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """At these positions: the mixed values [B, P, d], the residual stream [B, P, d], the attention to the first
    position [B, P, H]."""

    def projected(x: Tensor) -> list[Tensor]:
        return [
            F.linear(layers.norm(x, network.norm, f"attention_norm{layer}"), weights[f"{name}{layer}"])
            for name in ("query", "key", "value")
        ]

    if x is None:
        embedded = weights["embedding"] + weights["positions"][:, None]  # [2, p, d]
        tables = projected(embedded)  # [2, p, d] each
        stream, q, k, v = ([table[i].index_select(0, pairs[:, i]) for i in (0, 1)] for table in (embedded, *tables))
    else:
        tables = projected(x)  # [B, 2, d] each
        stream, q, k, v = ([table[:, i] for i in (0, 1)] for table in (x, *tables))
    # Softmax over two keys is a sigmoid of the difference of their scores.
    heads = (-1, network.heads, k[0].shape[-1] // network.heads)
    preference = (k[0] - k[1]) / network.scale(heads[2])  # [B, d]
    value, other = v[0] - v[1], v[1]
    mixed, to_first = [], []
    for position in positions:
        weight = torch.sigmoid((q[position] * preference).view(heads).sum(dim=-1))  # [B, H]
        mixed.append((other.view(heads) + weight[..., None] * value.view(heads)).flatten(1))  # [B, d]
        to_first.append(weight)
    kept = torch.stack([stream[position] for position in positions], dim=1)
    return torch.stack(mixed, dim=1), kept, torch.stack(to_first, dim=1)


def _mlp(network: "Transformer", weights: Arrays, layers: Layers, x: Tensor, layer: int) -> Tensor:
    hidden = F.linear(layers.norm(x, network.norm, f"mlp_norm{layer}"), weights[f"mlp_in{layer}"])  # [B, P, 4d]
    return F.linear(ACTIVATIONS[network.activation](hidden), weights[f"mlp_out{layer}"])  # [B, P, d]

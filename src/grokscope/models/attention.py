"""The layers of a Transformer on pairs of tokens, as torch computes them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from grokscope.models.hooks import Places
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
        added = layers.hook(f"attention{layer}.out", F.linear(attended, weights[f"output{layer}"]))
        x = layers.hook(f"resid{layer}.mid", x + layers.dropout(added))
        added = layers.hook(f"mlp{layer}.out", _mlp(network, weights, layers, x, layer))
        x = layers.hook(f"resid{layer}.post", x + layers.dropout(added))
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

    stream, q, k, v = _projections(network, weights, pairs, layers, layer, x)
    # Softmax over two keys is a sigmoid of the difference of their scores.
    heads = (-1, network.heads, k[0].shape[-1] // network.heads)
    if layers.places is not None:
        named = {"query": q, "key": k, "value": v}
        q, k, v = (_hooked_heads(f"attention{layer}.{name}", own, heads, layers.places) for name, own in named.items())
    preference = (k[0] - k[1]) / network.scale(heads[2])  # [B, d]
    value, other = v[0] - v[1], v[1]
    to_first = [torch.sigmoid((q[position] * preference).view(heads).sum(dim=-1)) for position in positions]  # [B, H]
    if _drops_everywhere(network, layers):
        mixed = _mixed(layers.dropout(_pattern(to_first)), v, heads)
    else:
        mixed = [
            (other.view(heads) + weight[..., None] * value.view(heads)).flatten(1) for weight in to_first
        ]  # [B, d]
    if layers.places is not None:
        mixed = _hooked_attention(f"attention{layer}", to_first, mixed, v, heads, layers.places)
    kept = torch.stack([stream[position] for position in positions], dim=1)
    return torch.stack(mixed, dim=1), kept, torch.stack(to_first, dim=1)


def _projections(
    network: "Transformer", weights: Arrays, pairs: Tensor, layers: Layers, layer: int, x: Tensor | None
) -> Iterator[list[Tensor]]:
    """The residual stream, queries, keys and values, at both positions [B, d]."""

    def projected(x: Tensor) -> list[Tensor]:
        return [
            F.linear(layers.norm(x, network.norm, f"attention_norm{layer}"), weights[f"{name}{layer}"])
            for name in ("query", "key", "value")
        ]

    if x is None:
        embedded = weights["embedding"] + weights["positions"][:, None]  # [2, p, d]
        if _drops_everywhere(network, layers):
            x = layers.hook("embed", layers.dropout(_embedded_pairs(embedded, pairs)))
        elif layers.places is not None:
            x = _replaced_embedding(embedded, pairs, layers.places)
        if x is None:
            tables = projected(embedded)  # [2, p, d] each
            return ([table[i].index_select(0, pairs[:, i]) for i in (0, 1)] for table in (embedded, *tables))
    tables = projected(x)  # [B, 2, d] each
    return ([table[:, i] for i in (0, 1)] for table in (x, *tables))


def _drops_everywhere(network: "Transformer", layers: Layers) -> bool:
    """Whether this pass drops some of the embedded pairs and of the attention too, each pair its own."""
    return layers.drops and network.dropout_places == "everywhere"


def _embedded_pairs(embedded: Tensor, pairs: Tensor) -> Tensor:
    """The stream before the first layer: tables [2, p, d] → [B, 2, d]."""
    return torch.stack([embedded[i].index_select(0, pairs[:, i]) for i in (0, 1)], dim=1)


def _replaced_embedding(embedded: Tensor, pairs: Tensor, places: Places) -> Tensor | None:
    """What to go on with instead of the tables [B, 2, d]; None if nobody may change it."""
    seen = places.at("embed", _embedded_pairs(embedded, pairs))
    return seen if places.has_hook("embed") else None


def _hooked_heads(name: str, own: list[Tensor], heads: tuple[int, int, int], places: Places) -> list[Tensor]:
    """Queries, keys or values, which are seen as [B, 2, H, d/H]."""
    seen = places.at(name, torch.stack([one.reshape(heads) for one in own], dim=1))
    return list(seen.flatten(2).unbind(dim=1))


def _hooked_attention(
    name: str, to_first: list[Tensor], mixed: list[Tensor], v: list[Tensor], heads: tuple[int, int, int], places: Places
) -> list[Tensor]:
    """Who attends to whom, as [B, H, P, 2], and what each head has mixed by that, as [B, P, H, d/H]."""
    pattern = places.at(f"{name}.pattern", _pattern(to_first))
    if places.has_hook(f"{name}.pattern"):
        mixed = _mixed(pattern, v, heads)
    seen = places.at(f"{name}.mixed", torch.stack([one.view(heads) for one in mixed], dim=1))
    return list(seen.flatten(2).unbind(dim=1))


def _pattern(to_first: list[Tensor]) -> Tensor:
    """Who attends to whom: a [B, H] for each position → [B, H, P, 2]."""
    weights = torch.stack(to_first, dim=2)  # [B, H, P]
    return torch.stack([weights, 1 - weights], dim=-1)


def _mixed(pattern: Tensor, v: list[Tensor], heads: tuple[int, int, int]) -> list[Tensor]:
    """Values mixed by a pattern [B, H, P, 2] whose rows need not sum to 1: a [B, d] for each position."""
    first, second = (own.reshape(heads) for own in v)  # [B, H, d/H]
    return [(row[..., :1] * first + row[..., 1:] * second).flatten(1) for row in pattern.unbind(dim=2)]


def _mlp(network: "Transformer", weights: Arrays, layers: Layers, x: Tensor, layer: int) -> Tensor:
    hidden = F.linear(layers.norm(x, network.norm, f"mlp_norm{layer}"), weights[f"mlp_in{layer}"])  # [B, P, 4d]
    hidden = ACTIVATIONS[network.activation](layers.hook(f"mlp{layer}.pre", hidden))
    return F.linear(layers.hook(f"mlp{layer}.post", hidden), weights[f"mlp_out{layer}"])  # [B, P, d]

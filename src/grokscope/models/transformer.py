"""Encoder Transformers on the two tokens m and n, without an "=" token, a mask or biases; the last position is read.

    x = E[token] + P[position]
    x = x + dropout(O attention(Q norm(x), K norm(x), V norm(x)))     each layer
    x = x + dropout(B φ(A norm(x)))
    f(m, n) = W norm(x_last) / scale

What a position is in the first layer depends on its token alone, so queries, keys and values are computed for p tokens
at each position, not for every pair. And only the last position goes through the last layer, because nothing else is
read. At one layer and α = .5 that is two fifths of the work of the plain way.
"""

import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from grokscope.models.initial import Weights
from grokscope.models.network import ACTIVATIONS, Network
from grokscope.spec import Activation, Norm, Scaling


class Transformer(Network):
    """The network with given weights.

    >>> from grokscope.models import initial_weights
    >>> from grokscope.spec import ModelSpec
    >>> network = Transformer(initial_weights(ModelSpec(kind="transformer"), modulus=11), heads=4)
    >>> network(torch.tensor([[3, 4]])).shape, network.attention(torch.tensor([[3, 4]])).shape
    (torch.Size([1, 11]), torch.Size([1, 1, 4, 2, 2]))
    """

    def __init__(
        self,
        weights: Weights,
        heads: int,
        activation: Activation = "relu",
        norm: Norm = "none",
        scaling: Scaling = "d",
    ) -> None:
        super().__init__(weights)
        self.heads, self.activation, self.norm, self.scaling = heads, activation, norm, scaling
        self.layers = sum(name.startswith("query") for name in weights)
        self.tied = "unembedding" not in weights

    def forward(
        self, pairs: Tensor, dropout_masks: Sequence[Tensor] = (), example_weights: Tensor | None = None
    ) -> Tensor:
        """Logits [B, p] of pairs [B, 2]; see `Network.forward`."""
        x, _ = self._through_layers(pairs, iter(dropout_masks), whole=False)
        unembedding = self.array("embedding" if self.tied else "unembedding")  # [p, d]
        return F.linear(self._normalised(x[:, -1], "final_norm"), unembedding) / self._scale(unembedding.shape[-1])

    @torch.no_grad()
    def attention(self, pairs: Tensor) -> Tensor:
        """Who attends to whom: [B, layers, heads, 2, 2], the last two being the query's and the key's position.

        The query at the first position of the last layer has no influence on the logits.
        """
        _, to_first = self._through_layers(pairs, iter(()), whole=True)  # a list of [B, 2, H]
        patterns = torch.stack(to_first, dim=1).transpose(2, 3)  # [B, layers, H, 2]
        return torch.stack([patterns, 1 - patterns], dim=-1)

    def dropout_widths(self) -> list[int]:
        """What attention and MLP of each layer add to the positions that go on."""
        embed = self.array("embedding").shape[-1]
        return [2 * embed] * (2 * self.layers - 2) + [embed] * 2

    def _through_layers(self, pairs: Tensor, masks: Iterator[Tensor], *, whole: bool) -> tuple[Tensor, list[Tensor]]:
        """The residual stream [B, P, d] after all layers, and each layer's attention to the first position [B, P, H].

        P are both positions if the `whole` last layer is wanted, else the last one.
        """
        x, patterns = None, []
        for layer in range(1, self.layers + 1):
            positions = (0, 1) if whole or layer < self.layers else (1,)
            attended, x, to_first = self._attend(pairs, layer, x, positions)
            x = x + self._dropped(F.linear(attended, self.array(f"output{layer}")), masks)
            x = x + self._dropped(self._mlp(x, layer), masks)
            patterns.append(to_first)
        assert x is not None
        return x, patterns

    def _attend(
        self, pairs: Tensor, layer: int, x: Tensor | None, positions: tuple[int, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """At these positions: the mixed values [B, P, d], the residual stream [B, P, d], the attention to the first
        position [B, P, H]."""
        if x is None:
            embedded = self.array("embedding") + self.array("positions")[:, None]  # [2, p, d]
            tables = [self._projected(embedded, name, layer) for name in ("query", "key", "value")]  # [2, p, d] each
            stream, q, k, v = ([table[i].index_select(0, pairs[:, i]) for i in (0, 1)] for table in (embedded, *tables))
        else:
            tables = [self._projected(x, name, layer) for name in ("query", "key", "value")]  # [B, 2, d] each
            stream, q, k, v = ([table[:, i] for i in (0, 1)] for table in (x, *tables))
        # Softmax over two keys is a sigmoid of the difference of their scores.
        heads = (-1, self.heads, k[0].shape[-1] // self.heads)
        preference = (k[0] - k[1]) / self._scale(heads[2])  # [B, d]
        value, other = v[0] - v[1], v[1]
        mixed, to_first = [], []
        for position in positions:
            weight = torch.sigmoid((q[position] * preference).view(heads).sum(dim=-1))  # [B, H]
            mixed.append((other.view(heads) + weight[..., None] * value.view(heads)).flatten(1))  # [B, d]
            to_first.append(weight)
        kept = torch.stack([stream[position] for position in positions], dim=1)
        return torch.stack(mixed, dim=1), kept, torch.stack(to_first, dim=1)

    def _mlp(self, x: Tensor, layer: int) -> Tensor:
        hidden = F.linear(self._normalised(x, f"mlp_norm{layer}"), self.array(f"mlp_in{layer}"))  # [B, P, 4d]
        return F.linear(ACTIVATIONS[self.activation](hidden), self.array(f"mlp_out{layer}"))  # [B, P, d]

    def _projected(self, x: Tensor, name: str, layer: int) -> Tensor:
        return F.linear(self._normalised(x, f"attention_norm{layer}"), self.array(f"{name}{layer}"))

    def _normalised(self, x: Tensor, prefix: str) -> Tensor:
        return self.normalise(x, self.norm, prefix)

    def _dropped(self, x: Tensor, masks: Iterator[Tensor]) -> Tensor:
        mask = next(masks, None)
        return x if mask is None else x * mask.view(x.shape)

    def _scale(self, size: int) -> float:
        return size if self.scaling == "d" else math.sqrt(size)

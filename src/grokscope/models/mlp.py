"""Fully connected networks: the two-layer one of Equations 1 and 5, and deeper ones.

x₁ = norm(φ(dropout(U eₘ + V eₙ)))
xᵢ = norm(φ(dropout(Hᵢ xᵢ₋₁)))        i = 2 … depth − 1
f(m, n) = W x
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from grokscope.models.initial import Weights, norm_prefix
from grokscope.models.network import ACTIVATIONS, Network
from grokscope.spec import Activation, Norm


class MLP(Network):
    """The network with given weights; it trains, evaluates, and gives its weights back.

    >>> import torch
    >>> from grokscope.models import analytic_weights
    >>> network = MLP(analytic_weights(modulus=97, width=500))
    >>> int(network(torch.tensor([[96, 4]])).argmax())
    3
    """

    transposed = ("U", "V")

    def __init__(self, weights: Weights, activation: Activation = "quadratic", norm: Norm = "none") -> None:
        super().__init__(weights)
        self.activation, self.norm = activation, norm
        self.hidden_layers = 1 + sum(name.startswith("H") for name in weights)

    def forward(
        self, pairs: Tensor, dropout_masks: Sequence[Tensor] = (), example_weights: Tensor | None = None
    ) -> Tensor:
        """Logits [B, p] of pairs [B, 2]; see `Network.forward`."""
        # index_select, not U[m]: the gradient of advanced indexing scatters row by row, twice as slowly.
        hidden = self.array("U").index_select(0, pairs[:, 0]) + self.array("V").index_select(0, pairs[:, 1])  # [B, N]
        for layer in range(1, self.hidden_layers + 1):
            if layer > 1:
                hidden = F.linear(hidden, self.array(f"H{layer}"))  # [B, N]
            if dropout_masks:
                hidden = hidden * dropout_masks[layer - 1]
            hidden = ACTIVATIONS[self.activation](hidden)
            hidden = self.normalise(hidden, self.norm, norm_prefix(layer), example_weights)
        return F.linear(hidden, self.array("W"))  # [B, p]

    def dropout_widths(self) -> list[int]:
        """Every hidden layer."""
        return [self.array("W").shape[-1]] * self.hidden_layers

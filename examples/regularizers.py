"""Two regularisers of your own: one acts on the loss of each example, the other on the weights.

    grokscope train --regularizer examples/regularizers.py:LabelSmoothing --set regularizer.smoothing=.1 \
        --loss cross-entropy
    grokscope train --regularizer examples/regularizers.py:NormPenalty --set regularizer.strength=1e-5
"""

from collections.abc import Mapping
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

import grokscope as gs


class LabelSmoothing(gs.Regularizer):
    """Some of the loss is against all labels alike: a wrong label is then worth less."""

    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1

    def example_losses(self, logits: Tensor, labels: Tensor, loss: gs.Loss) -> Tensor:
        """(1 − s) · the loss against the label + s · the mean loss against every label."""
        own = super().example_losses(logits, labels, loss)  # [B]
        if loss == "cross-entropy":
            uniform = -logits.log_softmax(dim=1).mean(dim=1)
        else:  # the mean over labels y of |logits − e_y|² / p
            uniform = (logits.square().sum(dim=1) - 2 * logits.mean(dim=1) + 1) / logits.shape[1]
        return (1 - self.smoothing) * own + self.smoothing * uniform


class NormPenalty(gs.Regularizer):
    """The sum of |weights|^power: what weight decay is for power 2 under plain gradient descent."""

    strength: Annotated[float, Field(ge=0)] = 1e-5
    power: Annotated[float, Field(gt=0)] = 1.0

    def penalty(self, weights: Mapping[str, Tensor]) -> Tensor:
        """One number."""
        sums = [array.abs().pow(self.power).sum() for array in weights.values()]
        return self.strength * torch.stack(sums).sum()

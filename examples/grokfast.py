"""An optimiser of your own: Grokfast (Lee et al., 2024) amplifies the slow part of the gradient.

    grokscope train --optimizer examples/grokfast.py:Grokfast --set optimizer.amplify=2 --weight-decay 1

It changes the size of the steps too. For a fair comparison, AdamW needs the learning rate at which its steps are as
large: compare both over a range of `optimizer.learning_rate`, not at one value.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

import grokscope as gs


class Grokfast(gs.AdamW):
    """AdamW on the gradient plus `amplify` times its moving average."""

    moments: ClassVar[tuple[str, ...]] = (*gs.AdamW.moments, "slow_gradient")
    elementwise: ClassVar[bool] = True  # every number is treated by itself: many runs at once are fine

    amplify: Annotated[float, Field(ge=0)] = 2.0
    memory: Annotated[float, Field(ge=0, lt=1)] = 0.98

    def update(self, weight: Tensor, gradient: Tensor, moments: Mapping[str, Tensor], step: int) -> None:
        """Follow the gradient slowly, and go where both point."""
        slow = moments["slow_gradient"]
        slow.lerp_(gradient, 1 - self.memory)
        super().update(weight, gradient + self.amplify * slow, moments, step)

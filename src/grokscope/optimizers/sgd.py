"""Gradient descent, with momentum or without."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from grokscope.optimizers.arithmetic import add_scaled
from grokscope.optimizers.optimizer import Optimizer, decay_advice

if TYPE_CHECKING:
    from torch import Tensor


class SGD(Optimizer):
    """Weight decay is added to the gradient."""

    moments: ClassVar[tuple[str, ...]] = ("momentum",)
    elementwise: ClassVar[bool] = True

    kind: str = "sgd"
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def describe(self) -> str:
        """With its momentum, if it has any."""
        return f"sgd {self.momentum:g}" if self.momentum else "sgd"

    def advice_if_diverged(self) -> str:
        """A weight decay that is too large makes the weights grow, whatever the gradient is."""
        return decay_advice(self) or super().advice_if_diverged()

    def update(self, weight: "Tensor", gradient: "Tensor", moments: "Mapping[str, Tensor]", step: int) -> None:
        """The momentum, then a step along it."""
        velocity = moments["momentum"].mul_(self.momentum).add_(add_scaled(gradient, weight, self.weight_decay))
        weight.copy_(add_scaled(weight, velocity, -self.learning_rate))

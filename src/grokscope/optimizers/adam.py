"""Adam, and AdamW, which decays weights apart from the gradient: torch's own, operation by operation.

The tests compare both with torch.optim bit by bit.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from grokscope.optimizers.arithmetic import add_scaled, add_scaled_square
from grokscope.optimizers.optimizer import Optimizer, decay_advice

if TYPE_CHECKING:
    from torch import Tensor


class Adam(Optimizer):
    """Weight decay is added to the gradient."""

    moments: ClassVar[tuple[str, ...]] = ("first_moment", "second_moment")
    elementwise: ClassVar[bool] = True

    kind: str = "adam"
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.98
    epsilon: Annotated[float, Field(gt=0)] = 1e-8

    def update(self, weight: "Tensor", gradient: "Tensor", moments: "Mapping[str, Tensor]", step: int) -> None:
        """Decay, then a step."""
        self.descend(weight, add_scaled(gradient, weight, self.weight_decay), moments, step)

    def descend(self, weight: "Tensor", gradient: "Tensor", moments: "Mapping[str, Tensor]", step: int) -> None:
        """A step along the mean gradient, over the root of the mean square."""
        first, second = moments["first_moment"], moments["second_moment"]
        first.lerp_(gradient, 1 - self.beta1)
        add_scaled_square(second.mul_(self.beta2), gradient, 1 - self.beta2)
        root = second.sqrt() / (1 - self.beta2**step) ** 0.5 + self.epsilon
        weight.sub_(self.learning_rate / (1 - self.beta1**step) * first / root)


class AdamW(Adam):
    """A step first multiplies the weights by 1 − learning rate · weight decay."""

    elementwise: ClassVar[bool] = True

    kind: str = "adamw"

    def advice_if_diverged(self) -> str:
        """A factor below −1 makes the weights grow without end, whatever the gradient is."""
        return decay_advice(self) or super().advice_if_diverged()

    def update(self, weight: "Tensor", gradient: "Tensor", moments: "Mapping[str, Tensor]", step: int) -> None:
        """Decay, then a step."""
        weight.mul_(1 - self.learning_rate * self.weight_decay)
        self.descend(weight, gradient, moments, step)

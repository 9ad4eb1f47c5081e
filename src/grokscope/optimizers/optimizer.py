"""What every optimiser is: its fields, and how a gradient becomes a step.

    class SignDescent(Optimizer):
        def update(self, weight, gradient, moments, step):
            weight.sub_(self.learning_rate * gradient.sign())

`moments` are arrays as large as the weight, zero before the first step, that an optimiser keeps from step to step; they
are stored in checkpoints, so that a run goes on exactly.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from grokscope.extension import Complete, short_name
from grokscope.section import UNRESOLVED_CONFIG, KindSection, Unresolved

if TYPE_CHECKING:
    from torch import Tensor


class Optimizer(Complete, KindSection):
    """How gradients become steps."""

    section: ClassVar[str] = "optimizer"
    moments: ClassVar[tuple[str, ...]] = ()  # names of what it keeps for each weight
    # Whether `update` treats every number by itself. Then many runs are updated at once, with arrays of their
    # learning rates in place of the numbers; else one run after another. A subclass has to say it again.
    elementwise: ClassVar[bool] = False

    learning_rate: Annotated[float, Field(gt=0)] = 0.01
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    decay_embeddings: bool = True  # whether weight decay acts on a Transformer's embeddings of tokens and positions

    def describe(self) -> str:
        """In a few words, learning rate and weight decay apart."""
        return short_name(self.kind)

    def advice_if_diverged(self) -> str:
        """What to try if the loss became infinite."""
        return "Try a smaller learning rate."

    @abstractmethod
    def update(self, weight: "Tensor", gradient: "Tensor", moments: "Mapping[str, Tensor]", step: int) -> None:
        """Change `weight` and `moments` in place. Steps count from 1."""

    def updates_together(self) -> bool:
        """Whether one call of `update` may serve many runs."""
        return bool(vars(type(self)).get("elementwise", False))

    def with_numbers(self, **numbers: Any) -> "Optimizer":
        """A copy with other numbers in some fields, which may be arrays of one for each run."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_construct(**values | numbers)


def decay_advice(optimizer: Optimizer) -> str | None:
    """What to say if each step multiplies the weights by 1 − learning rate · weight decay, and that lies below −1."""
    factor = 1 - optimizer.learning_rate * optimizer.weight_decay
    if factor >= -1:
        return None
    most = 2 / optimizer.learning_rate
    return (
        f"Try a smaller weight decay: each step multiplies the weights by 1 − learning rate · weight decay = "
        f"{factor:.3g}, so they grow; at this learning rate it must be below {most:.3g}."
    )


class UnresolvedOptimizer(Unresolved, Optimizer):
    """An optimiser of a stored run whose code was not imported."""

    model_config = UNRESOLVED_CONFIG

    def update(self, weight: "Tensor", gradient: "Tensor", moments: "Mapping[str, Tensor]", step: int) -> None:
        """Not without the code."""
        raise self.needed()

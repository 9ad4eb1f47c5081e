"""What is added to the loss, or done to it: nothing, or a user's own.

class NormPenalty(Regularizer):
    strength: float = 0.001

    def penalty(self, weights):
        return self.strength * sum(array.square().sum() for array in weights.values())
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from grokscope.extension import ExtensionError
from grokscope.models import Loss
from grokscope.section import UNRESOLVED_CONFIG, KindSection, Unresolved

if TYPE_CHECKING:
    from torch import Tensor


class Regularizer(KindSection):
    """Two places to act: on the loss of each example, and on the weights."""

    section: ClassVar[str] = "regularizer"

    def __init__(self, /, **fields: Any) -> None:
        own = type(self)
        if not self.is_built_in() and (own.example_losses, own.penalty) == (
            Regularizer.example_losses,
            Regularizer.penalty,
        ):
            raise ExtensionError(
                f"{own.__name__} does nothing: a regulariser has example_losses() or penalty(), or both"
            )
        super().__init__(**fields)

    @property
    def acts(self) -> bool:
        """Whether it does anything."""
        return True

    def example_losses(self, logits: "Tensor", labels: "Tensor", loss: Loss) -> "Tensor":
        """The loss of each example [B] from its logits [B, classes] and label [B]."""
        from grokscope.models.module import losses_per_example

        return losses_per_example(logits, labels, loss)

    def penalty(self, weights: "Mapping[str, Tensor]") -> "Tensor | float":
        """What the weights add to the mean loss: one number."""
        return 0.0


class NoRegularizer(Regularizer):
    """The loss as it is."""

    kind: str = "none"

    @property
    def acts(self) -> bool:
        """Nothing."""
        return False


class UnresolvedRegularizer(Unresolved, Regularizer):
    """A regulariser of a stored run whose code was not imported."""

    model_config = UNRESOLVED_CONFIG

    def example_losses(self, logits: "Tensor", labels: "Tensor", loss: Loss) -> "Tensor":
        """Not without the code."""
        raise self.needed()

    def penalty(self, weights: "Mapping[str, Tensor]") -> "Tensor | float":
        """Not without the code."""
        raise self.needed()


Regularizer.built_in = (NoRegularizer,)

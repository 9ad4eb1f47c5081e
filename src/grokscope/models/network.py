"""What all networks share as torch modules: their weights by name, normalisation, evaluation and losses."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grokscope.models.evaluation import Evaluation
from grokscope.models.initial import NORM_EPSILON, Weights, is_statistic
from grokscope.randomness import Int64Array
from grokscope.spec import Activation, Loss, Norm

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"quadratic": torch.square, "relu": F.relu, "gelu": F.gelu}
_STATISTICS_RATE = 0.1  # at which BatchNorm's running statistics follow those of the batches
_ROWS_AT_ONCE = 4096  # keeps the hidden layer of a full grid within a few MB at N = 500


class Network(nn.Module, ABC):
    """Weights under their engine-neutral names as parameters, and BatchNorm's statistics as buffers.

    A subclass says what `forward` computes, which of its arrays are kept transposed, and what dropout acts on.
    """

    # Kept as [p, N]: a look-up then reads whole rows, and its gradient adds whole rows.
    transposed: tuple[str, ...] = ()

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        for name, array in weights.items():
            tensor = torch.tensor(np.ascontiguousarray(array.T if name in self.transposed else array))
            if is_statistic(name):
                self.register_buffer(name, tensor)
            else:
                self.register_parameter(name, nn.Parameter(tensor))

    @abstractmethod
    def forward(
        self, pairs: Tensor, dropout_masks: Sequence[Tensor] = (), example_weights: Tensor | None = None
    ) -> Tensor:
        """Logits [B, p] of pairs [B, 2].

        `dropout_masks` multiply what dropout acts on, one [B, width] for each of `dropout_widths`; none drops nothing.
        `example_weights` [B], which sum to 1, are what BatchNorm averages with; all the same if None.
        """

    @abstractmethod
    def dropout_widths(self) -> list[int]:
        """How many values of an example dropout acts on, at each place where it acts."""

    def extra_repr(self) -> str:
        """The arrays and their shapes, for print(network)."""
        return ", ".join(f"{name} {list(array.shape)}" for name, array in self.named_arrays().items())

    def array(self, name: str) -> Tensor:
        """The live tensor of this name, as it is kept."""
        tensor: Tensor = getattr(self, name)
        return tensor

    def named_arrays(self) -> dict[str, Tensor]:
        """The live tensors under the engine-neutral names, each in its engine-neutral orientation (as a view)."""
        kept = dict(self.named_parameters()) | dict(self.named_buffers())
        return {name: tensor.T if name in self.transposed else tensor for name, tensor in kept.items()}

    def weights(self) -> Weights:
        """A copy of the weights as numpy arrays."""
        return {name: to_numpy(tensor) for name, tensor in self.named_arrays().items()}

    def normalise(self, hidden: Tensor, norm: Norm, prefix: str, example_weights: Tensor | None = None) -> Tensor:
        """Batch- or LayerNorm of hidden [B, N] with the arrays whose names begin with the prefix."""
        if norm == "none":
            return hidden
        scale, shift = self.array(f"{prefix}_scale"), self.array(f"{prefix}_shift")
        if norm == "layer":
            return F.layer_norm(hidden, scale.shape, scale, shift, NORM_EPSILON)
        mean, variance = self.array(f"{prefix}_mean"), self.array(f"{prefix}_variance")
        if example_weights is None or not self.training:
            return F.batch_norm(hidden, mean, variance, scale, shift, self.training, _STATISTICS_RATE, NORM_EPSILON)
        own_mean = example_weights @ hidden  # [N]
        own_variance = example_weights @ (hidden - own_mean).square()  # [N]
        with torch.no_grad():
            unbiased = own_variance / (1 - example_weights.square().sum())  # n/(n − 1) for n equal weights
            mean.add_(_STATISTICS_RATE * (own_mean - mean))
            variance.add_(_STATISTICS_RATE * (unbiased - variance))
        return (hidden - own_mean) * torch.rsqrt(own_variance + NORM_EPSILON) * scale + shift


@torch.no_grad()
def evaluate(network: Network, pairs: Int64Array, labels: Int64Array, loss: Loss) -> Evaluation:
    """Predicted labels and the loss of each example, in evaluation mode."""
    device = next(network.parameters()).device
    was_training = network.training
    network.eval()
    predictions, losses = [], []
    for start in range(0, len(pairs), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        logits = network(torch.tensor(pairs[rows], device=device))  # [rows, p]
        targets = torch.tensor(labels[rows], device=device)
        predictions.append(logits.argmax(dim=1).cpu().numpy())
        losses.append(losses_per_example(logits, targets, loss).cpu().double().numpy())
    network.train(was_training)
    return Evaluation(np.concatenate(predictions), np.concatenate(losses))


def losses_per_example(logits: Tensor, labels: Tensor, loss: Loss) -> Tensor:
    """The loss of each row; MSE averages over the p outputs, so that the all-zero network has loss 1/p."""
    if loss == "cross-entropy":
        return F.cross_entropy(logits, labels, reduction="none")
    return (logits - F.one_hot(labels, logits.shape[1])).square().mean(dim=1)


def to_numpy(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A contiguous float32 copy on the host."""
    array: npt.NDArray[np.float32] = tensor.detach().to("cpu", torch.float32).contiguous().numpy()
    return array.copy()

"""The two-layer network of Equations 1 and 5 as a torch module.

f(m, n) = W · norm(φ(dropout(U eₘ + V eₙ)))
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grokscope.models.evaluation import Evaluation
from grokscope.models.initial import Weights
from grokscope.randomness import Int64Array
from grokscope.spec import Activation, Loss, Norm

_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"quadratic": torch.square, "relu": F.relu, "gelu": F.gelu}
_ROWS_AT_ONCE = 4096  # keeps the hidden layer of a full grid within a few MB at N = 500


class TwoLayerMLP(nn.Module):
    """The network with given weights; it trains, evaluates, and gives its weights back.

    >>> from grokscope.models import analytic_weights
    >>> network = TwoLayerMLP(analytic_weights(modulus=97, width=500))
    >>> int(network(torch.tensor([[96, 4]])).argmax())
    3
    """

    def __init__(self, weights: Weights, activation: Activation = "quadratic", norm: Norm = "none") -> None:
        super().__init__()
        self.activation = activation
        # U and V are kept transposed: a look-up then reads whole rows, and its gradient adds whole rows.
        self.u = nn.Parameter(_tensor(weights["U"].T))  # [p, N]
        self.v = nn.Parameter(_tensor(weights["V"].T))  # [p, N]
        self.w = nn.Parameter(_tensor(weights["W"]))  # [p, N]
        width = self.w.shape[1]
        self.norm: nn.BatchNorm1d | nn.LayerNorm | None = None
        if norm == "batch":
            self.norm = nn.BatchNorm1d(width)
            self.norm.running_mean = _tensor(weights["norm_mean"])
            self.norm.running_var = _tensor(weights["norm_variance"])
        elif norm == "layer":
            self.norm = nn.LayerNorm(width)
        if self.norm is not None:
            self.norm.weight = nn.Parameter(_tensor(weights["norm_scale"]))
            self.norm.bias = nn.Parameter(_tensor(weights["norm_shift"]))

    def forward(self, pairs: Tensor, dropout_mask: Tensor | None = None) -> Tensor:
        """Logits [B, p] of pairs [B, 2]. The mask [B, N] multiplies the pre-activations."""
        # index_select, not u[m]: the gradient of advanced indexing scatters row by row, twice as slowly.
        hidden = self.u.index_select(0, pairs[:, 0]) + self.v.index_select(0, pairs[:, 1])  # [B, N]
        if dropout_mask is not None:
            hidden = hidden * dropout_mask
        hidden = _ACTIVATIONS[self.activation](hidden)
        if self.norm is not None:
            hidden = self.norm(hidden)
        return F.linear(hidden, self.w)  # [B, p]

    def named_arrays(self) -> dict[str, Tensor]:
        """The live tensors under the engine-neutral names, each in its engine-neutral orientation (as a view)."""
        arrays = {"U": self.u.T, "V": self.v.T, "W": self.w}
        if self.norm is not None:
            arrays |= {"norm_scale": self.norm.weight, "norm_shift": self.norm.bias}
        if isinstance(self.norm, nn.BatchNorm1d):
            assert self.norm.running_mean is not None
            assert self.norm.running_var is not None
            arrays |= {"norm_mean": self.norm.running_mean, "norm_variance": self.norm.running_var}
        return arrays

    def weights(self) -> Weights:
        """A copy of the weights as numpy arrays."""
        return {name: to_numpy(tensor) for name, tensor in self.named_arrays().items()}


@torch.no_grad()
def evaluate(network: TwoLayerMLP, pairs: Int64Array, labels: Int64Array, loss: Loss) -> Evaluation:
    """Predicted labels and the loss of each example, in evaluation mode."""
    device = network.w.device
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


def _tensor(array: npt.NDArray[np.float32]) -> Tensor:
    return torch.tensor(np.ascontiguousarray(array))

"""A network as a torch module: its weights by name, and what a forward pass is given beside them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grokscope.arrays import Int64Array
from grokscope.extension import ExtensionError, explained, is_reference
from grokscope.models.evaluation import Evaluation, Loss
from grokscope.models.hooks import Hook, NamedHook, Places
from grokscope.models.mlp import Activation, Norm
from grokscope.models.network import Network, Neurons
from grokscope.models.weights import NORM_EPSILON, Weights, is_statistic
from grokscope.tasks import Inputs

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"quadratic": torch.square, "relu": F.relu, "gelu": F.gelu}
_STATISTICS_RATE = 0.1  # at which BatchNorm's running statistics follow those of the batches
_ROWS_AT_ONCE = 4096  # keeps the hidden layer of a full grid within a few MB at N = 500


class Layers:
    """What a forward pass uses beside weights and inputs: dropout, normalisation, and look-up tables.

    `dropout_masks` multiply what dropout acts on, one [B, width] for each place where it acts; none drops nothing.
    `example_weights` [B], which sum to 1, are what BatchNorm averages with; all the same if None.
    `places` are those where somebody looks at the pass, or changes it; None if nobody does.
    """

    def __init__(
        self,
        arrays: Mapping[str, Tensor],
        dropout_masks: Iterable[Tensor] = (),
        example_weights: Tensor | None = None,
        tables: Mapping[str, Tensor] | None = None,
        *,
        training: bool = False,
        places: Places | None = None,
    ) -> None:
        masks = list(dropout_masks)
        self.training, self.drops, self.places, self._tables = training, bool(masks), places, tables or {}
        self._arrays, self._masks, self._example_weights = arrays, iter(masks), example_weights

    def table(self, name: str) -> Tensor:
        """An array [N, symbols] as a table of symbols [symbols, N]: as it is kept, without turning it twice."""
        return self._tables[name] if name in self._tables else self._arrays[name].T

    def hook(self, name: str, x: Tensor) -> Tensor:
        """Give a place in the pass a name; x, unless somebody has replaced it there."""
        return x if self.places is None else self.places.at(name, x)

    def dropout(self, x: Tensor) -> Tensor:
        """Drop some values, if this pass drops any. Call it as often as the network's `dropout_widths` says."""
        mask = next(self._masks, None)
        return x if mask is None else x * mask.view(x.shape)

    def norm(self, x: Tensor, norm: Norm, prefix: str) -> Tensor:
        """Batch- or LayerNorm of x [B, N] with the arrays whose names begin with the prefix."""
        if norm == "none":
            return x
        scale, shift = self._arrays[f"{prefix}_scale"], self._arrays[f"{prefix}_shift"]
        if norm == "layer":
            return F.layer_norm(x, scale.shape, scale, shift, NORM_EPSILON)
        mean, variance = self._arrays[f"{prefix}_mean"], self._arrays[f"{prefix}_variance"]
        if self._example_weights is None or not self.training:
            return F.batch_norm(x, mean, variance, scale, shift, self.training, _STATISTICS_RATE, NORM_EPSILON)
        weights = self._example_weights
        own_mean = weights @ x  # [N]
        own_variance = weights @ (x - own_mean).square()  # [N]
        with torch.no_grad():
            unbiased = own_variance / (1 - weights.square().sum())  # n/(n − 1) for n equal weights
            mean.add_(_STATISTICS_RATE * (own_mean - mean))
            variance.add_(_STATISTICS_RATE * (unbiased - variance))
        return (x - own_mean) * torch.rsqrt(own_variance + NORM_EPSILON) * scale + shift


class NetworkModule(nn.Module):
    """Weights under their names as parameters, BatchNorm's statistics as buffers, and the network's `forward`.

    >>> from grokscope.models import MLP, analytic_weights
    >>> module = MLP().module(analytic_weights(modulus=97, width=500))
    >>> int(module(torch.tensor([[96, 4]])).argmax())
    3
    """

    def __init__(self, network: Network, weights: Weights) -> None:
        super().__init__()
        self.network = network
        self._hooks: tuple[NamedHook, ...] = ()
        self._kept: dict[str, Tensor] | None = None  # while somebody looks on
        for name, array in weights.items():
            tensor = torch.tensor(np.ascontiguousarray(array.T if name in network.transposed else array))
            if is_statistic(name):
                self.register_buffer(name, tensor)
            else:
                self.register_parameter(name, nn.Parameter(tensor))

    def forward(
        self, inputs: Tensor, dropout_masks: Iterable[Tensor] = (), example_weights: Tensor | None = None
    ) -> Tensor:
        """Logits [B, classes] of inputs [B, positions]; the rest is as `Layers` has it."""
        arrays = self.named_arrays()
        tables = {name: getattr(self, name) for name in self.network.transposed if name in arrays}
        if not self._hooks and self._kept is None:
            layers = Layers(arrays, dropout_masks, example_weights, tables, training=self.training)
            return self.network.forward(arrays, inputs, layers)
        places = Places(self._hooks, self._kept)
        layers = Layers(arrays, dropout_masks, example_weights, tables, training=self.training, places=places)
        logits = self.network.forward(arrays, places.at("inputs", inputs), layers)
        logits = places.at("logits", logits)
        places.check_passed()
        return logits

    @contextmanager
    def hooks(self, hooks: Mapping[str, Hook]) -> Iterator[None]:
        """Let functions look at what is computed at named places, and change it, in all passes inside `with`.

        A function changes the tensor that it is given in place, or returns another one. Several `with` can be nested;
        where they have a place in common, the outer one comes first. `activations` tells the names.

        >>> from grokscope.models import MLP, analytic_weights
        >>> module = MLP().module(analytic_weights(modulus=97, width=500)).eval()
        >>> with module.hooks({"post": torch.zeros_like}):
        ...     bool(module(torch.tensor([[96, 4]])).any())
        False
        """
        before = self._hooks
        self._hooks = (*before, *hooks.items())
        try:
            yield
        finally:
            self._hooks = before

    @torch.no_grad()
    def activations(self, inputs: npt.ArrayLike | Tensor) -> dict[str, Tensor]:
        """What is computed at each named place, in evaluation mode: "inputs", what the network names, and "logits".

        >>> from grokscope.models import MLP, analytic_weights
        >>> module = MLP().module(analytic_weights(modulus=97, width=500))
        >>> {name: tuple(value.shape) for name, value in module.activations([[96, 4], [1, 2]]).items()}
        {'inputs': (2, 2), 'pre': (2, 500), 'post': (2, 500), 'logits': (2, 97)}
        """
        given = inputs if isinstance(inputs, Tensor) else torch.tensor(np.ascontiguousarray(inputs))
        was_training, self._kept = self.training, {}
        try:
            self.eval()(given.to(next(self.parameters()).device))
            return self._kept
        finally:
            self.train(was_training)
            self._kept = None

    def dropout_widths(self) -> list[int]:
        """How many values of an example dropout acts on, at each place where it acts."""
        return self.network.dropout_widths(self.named_arrays())

    def extra_repr(self) -> str:
        """The arrays and their shapes, for print(module)."""
        return ", ".join(f"{name} {list(array.shape)}" for name, array in self.named_arrays().items())

    def oriented(self, name: str, tensor: Tensor) -> Tensor:
        """A tensor as it is kept here in its engine-neutral orientation, or the other way round (as a view)."""
        return tensor.transpose(-2, -1) if name in self.network.transposed else tensor

    def named_arrays(self) -> dict[str, Tensor]:
        """The live tensors under their names, each in its engine-neutral orientation (as a view)."""
        kept = dict(self.named_parameters()) | dict(self.named_buffers())
        return {name: self.oriented(name, tensor) for name, tensor in kept.items()}

    def weights(self) -> Weights:
        """A copy of the weights as numpy arrays."""
        return {name: to_numpy(tensor) for name, tensor in self.named_arrays().items()}


@torch.no_grad()
def logits_of(module: NetworkModule, inputs: Inputs) -> Tensor:
    """Logits [n, classes] of inputs [n, positions] in evaluation mode, on the module's device."""
    was_training = module.training
    logits: Tensor = module.eval()(torch.tensor(inputs, device=next(module.parameters()).device))
    module.train(was_training)
    return logits


def logits_in_parts(
    module: NetworkModule, inputs: Inputs, at_once: int = _ROWS_AT_ONCE
) -> Iterator[tuple[slice, Tensor]]:
    """The same for many inputs: some rows after others, each with their logits."""
    for start in range(0, len(inputs), at_once):
        rows = slice(start, min(start + at_once, len(inputs)))
        yield rows, logits_of(module, inputs[rows])


def evaluate(module: NetworkModule, inputs: Inputs, labels: Int64Array, loss: Loss) -> Evaluation:
    """Predicted labels and the loss of each example, in evaluation mode."""
    said = Evaluation(np.empty(len(inputs), np.int64), np.empty(len(inputs)))
    for rows, logits in logits_in_parts(module, inputs):  # [rows, classes]
        targets = torch.tensor(labels[rows], device=logits.device)
        said.predictions[rows] = logits.argmax(dim=1).cpu().numpy()
        said.losses[rows] = losses_per_example(logits, targets, loss).cpu().double().numpy()
    return said


def losses_per_example(logits: Tensor, labels: Tensor, loss: Loss) -> Tensor:
    """The loss of each row; MSE averages over the outputs, so that the all-zero network has loss 1/p."""
    if loss == "cross-entropy":
        return F.cross_entropy(logits, labels, reduction="none")
    return (logits - F.one_hot(labels, logits.shape[1])).square().mean(dim=1)


def check_forward(module: NetworkModule, inputs: Inputs, classes: int) -> None:
    """See that a user's network does what was promised, before it is trained."""
    network = module.network
    if not is_reference(network.kind):
        return
    try:
        logits = module.eval()(torch.tensor(inputs[:2], device=next(module.parameters()).device))
    except Exception as error:
        raise ExtensionError(
            f"{network.kind}: forward() failed on the first two examples: {explained(error)}"
        ) from error
    expected = [min(2, len(inputs)), classes]
    if not isinstance(logits, Tensor) or list(logits.shape) != expected or not logits.is_floating_point():
        came = f"{logits.dtype} of shape {list(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ExtensionError(f"{network.kind}: forward() must give float logits of shape {expected}, and gave {came}")
    if not logits.requires_grad:
        raise ExtensionError(f"{network.kind}: the logits of forward() do not depend on the weights")
    if network.dropout_probability and not module.dropout_widths():
        raise ExtensionError(f"{network.kind}: it has a dropout, and dropout_widths() names no place where it acts")
    neurons = network.input_neurons(module.weights())
    if neurons is not None and not isinstance(neurons, Neurons):
        raise ExtensionError(
            f"{network.kind}: input_neurons() must return grokscope.Neurons, and returned {type(neurons).__name__}"
        )


def to_numpy(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A contiguous float32 copy on the host."""
    array: npt.NDArray[np.float32] = tensor.detach().to("cpu", torch.float32).contiguous().numpy()
    return array.copy()

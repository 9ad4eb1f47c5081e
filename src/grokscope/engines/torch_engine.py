"""Plain modules and autograd: the slow, obvious engine that the fast ones are tested against."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from grokscope.arrays import Int64Array
from grokscope.engines.batches import BatchOrder
from grokscope.engines.state import TrainingState
from grokscope.errors import EngineError, did_you_mean
from grokscope.extension import ExtensionError, explained, is_reference
from grokscope.models import Evaluation, Weights, make_network
from grokscope.models.module import NetworkModule, check_forward, evaluate, to_numpy
from grokscope.optimizers import Optimizer
from grokscope.randomness import NEURONS_PER_BLOCK, dropout_scale, dropout_threshold, dropout_words
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset, Inputs


class TorchEngine:
    """Any network on any device that torch knows."""

    name = "torch"

    def __init__(self, spec: RunSpec, dataset: Dataset, state: TrainingState, device: str = "cpu") -> None:
        self.step = state.step
        self._spec = spec
        self._device = available_device(device)
        self._module = make_network(spec.model, state.weights).to(self._device)
        check_forward(self._module, dataset.train_inputs, dataset.classes)
        check_regularizer(spec, self._module, dataset)
        self._trained = dict(self._module.named_parameters())
        self._moments = {
            key: self._module.oriented(key.partition(".")[2], torch.tensor(value)).contiguous().to(self._device)
            for key, value in state.moments.items()
        }
        self._optimizers = {name: optimizer_of(spec, name) for name in self._trained}
        self._inputs = torch.tensor(dataset.train_inputs, device=self._device)  # [n, positions]
        self._labels = torch.tensor(dataset.train_labels, device=self._device)  # [n]
        self._examples = torch.tensor(dataset.train_examples, device=self._device)  # [n]
        size = spec.training.batch_size
        self._batches = BatchOrder(dataset.train_examples, size, spec.training.seed) if size else None

    def advance(self, steps: int) -> npt.NDArray[np.float64]:
        """Take `steps` steps; the loss of each, before its update."""
        losses = torch.empty(steps, device=self._device)
        self._module.train()
        with reproducible_arithmetic():
            for index in range(steps):
                losses[index] = self._take_step()
        return losses.cpu().double().numpy()

    def evaluate(self, inputs: Inputs, labels: Int64Array) -> Evaluation:
        """What the network says now."""
        with reproducible_arithmetic():
            return evaluate(self._module, inputs, labels, self._spec.training.loss)

    def weights(self) -> Weights:
        """A copy of the network's weights."""
        return self._module.weights()

    def state(self) -> TrainingState:
        """A copy of everything that the next step depends on."""
        moments = {
            key: to_numpy(self._module.oriented(key.partition(".")[2], value)) for key, value in self._moments.items()
        }
        return TrainingState(self.step, self.weights(), moments)

    def _take_step(self) -> Tensor:
        self.step += 1
        inputs, labels, examples = self._inputs, self._labels, self._examples
        if self._batches is not None:
            chosen = torch.tensor(self._batches.batch(self.step), device=self._device)  # [B]
            inputs, labels, examples = inputs[chosen], labels[chosen], examples[chosen]
        logits = self._module(inputs, self._dropout_masks(examples))  # [B, classes]
        regularizer = self._spec.regularizer
        loss = regularizer.example_losses(logits, labels, self._spec.training.loss).mean()
        loss = loss + regularizer.penalty(self._module.named_arrays())
        loss.backward()  # type: ignore[no-untyped-call]  # faster than autograd.grad by a tenth
        with torch.no_grad():
            for name, weight in self._trained.items():
                self._update(name, weight)
        return loss.detach()

    def _update(self, name: str, weight: nn.Parameter) -> None:
        gradient, weight.grad = weight.grad, None
        if gradient is None:
            raise ExtensionError(f"{self._spec.model.kind}: the loss does not depend on the weights {name!r}")
        turned = partial(self._module.oriented, name)
        moments = {moment: turned(self._moments[f"{moment}.{name}"]) for moment in self._spec.optimizer.moments}
        update(self._optimizers[name], turned(weight), turned(gradient), moments, self.step)

    def _dropout_masks(self, examples: Tensor) -> list[Tensor]:
        """For each place where dropout acts: 0 for a dropped value, the scale for a kept one [B, width]."""
        probability, seed = self._spec.model.dropout_probability, self._spec.training.seed
        if probability == 0:
            return []
        return [
            dropout_mask(dropout_bits(seed, self.step, examples, width, layer), probability)
            for layer, width in enumerate(self._module.dropout_widths())
        ]


def update(optimizer: Optimizer, weight: Tensor, gradient: Tensor, moments: dict[str, Tensor], step: int) -> None:
    """One step of an optimiser; what goes wrong in a user's is said with its name."""
    if not is_reference(optimizer.kind):
        optimizer.update(weight, gradient, moments, step)
        return
    try:
        optimizer.update(weight, gradient, MappingProxyType(moments), step)
    except Exception as error:
        kept = ", ".join(optimizer.moments) or "none"
        raise ExtensionError(f"{optimizer.kind}: update() failed (moments: {kept}): {explained(error)}") from error


def check_regularizer(spec: RunSpec, module: NetworkModule, dataset: Dataset) -> None:
    """See that a user's regulariser gives a loss for each example and one number for the weights."""
    regularizer = spec.regularizer
    if not is_reference(regularizer.kind):
        return
    device = next(module.parameters()).device
    labels = torch.tensor(dataset.train_labels[:2], device=device)
    try:
        logits = module.eval()(torch.tensor(dataset.train_inputs[:2], device=device))
        losses = regularizer.example_losses(logits, labels, spec.training.loss)
        penalty = torch.as_tensor(regularizer.penalty(module.named_arrays()))
    except Exception as error:
        raise ExtensionError(f"{regularizer.kind} failed on the first two examples: {explained(error)}") from error
    if losses.shape != labels.shape or penalty.dim():
        raise ExtensionError(
            f"{regularizer.kind}: example_losses() must give one loss for each example and penalty() one number; "
            f"they gave shapes {list(losses.shape)} for {len(labels)} examples and {list(penalty.shape)}"
        )


def optimizer_of(spec: RunSpec, name: str) -> Optimizer:
    """The optimiser of an array: without weight decay for embeddings that are spared, at the rate of its module."""
    optimizer, factor = spec.optimizer, spec.model.rate_factor(name)
    if factor != 1:
        optimizer = optimizer.with_numbers(learning_rate=factor * optimizer.learning_rate)
    if optimizer.decay_embeddings or name not in spec.model.embeddings:
        return optimizer
    return optimizer.with_numbers(weight_decay=0.0)


def dropout_bits(seed: int | Tensor, step: int, examples: Tensor, width: int, layer: int) -> Tensor:
    """16 random bits for each of the values that dropout acts on: examples [..., B] → [..., B, width]."""
    blocks = torch.arange(-(-width // NEURONS_PER_BLOCK), device=examples.device)
    words = dropout_words(seed, step, examples[..., None], blocks, layer)
    halves = [half for word in words for half in (word & 0xFFFF, word >> 16)]
    return torch.stack(halves, dim=-1).flatten(-2)[..., :width]


def dropout_mask(bits: Tensor, probability: float) -> Tensor:
    """0 for a dropped value, the scale for a kept one."""
    return (bits >= dropout_threshold(probability)).to(torch.float32) * dropout_scale(probability)


def available_device(name: str) -> torch.device:
    """The torch device of this name, or an error that says which there are."""
    kinds = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    kind = name.partition(":")[0]
    here = ", ".join(known for known, available in kinds.items() if available)
    if kind not in kinds:
        raise EngineError(f"device = {name!r} is not a device: must be one of {here}{did_you_mean(kind, kinds)}")
    if not kinds[kind]:
        build = "; a GPU also needs a build of torch for it" if kind == "cuda" else ""
        raise EngineError(f"device = {name!r} is not here: must be one of {here}{build}")
    try:
        return torch.device(name)
    except RuntimeError:
        raise EngineError(f"device = {name!r} is not a device: must be one of {here}") from None


@contextmanager
def reproducible_arithmetic() -> Iterator[None]:
    """One thread, so that rounding does not depend on the machine's load or cores; denormals flushed to zero.

    Under strong weight decay the weights of dying neurons shrink by a constant factor each step and would spend
    hundreds of steps as denormals, on which a CPU is up to eight times slower. Both settings are put back afterwards.
    """
    threads, flushing = torch.get_num_threads(), _denormals_are_flushed()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushing)
        torch.set_num_threads(threads)


def _denormals_are_flushed() -> bool:
    return bool((torch.tensor(1e-39) * torch.ones(())).item() == 0)

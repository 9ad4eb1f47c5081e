"""Plain modules, autograd and torch's optimisers: the slow, obvious engine that the fast ones are tested against."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from grokscope.engines.batches import BatchOrder
from grokscope.engines.state import TrainingState
from grokscope.errors import EngineError, did_you_mean
from grokscope.models import EMBEDDINGS, Evaluation, Weights, make_network
from grokscope.models.network import evaluate, losses_per_example, to_numpy
from grokscope.randomness import NEURONS_PER_BLOCK, Int64Array, dropout_scale, dropout_threshold, dropout_words
from grokscope.spec import OptimizerSpec, RunSpec
from grokscope.tasks import Dataset

# torch's names for what a TrainingState calls moments
_TORCH_MOMENTS = {
    "first_moment": "exp_avg",
    "second_moment": "exp_avg_sq",
    "momentum": "momentum_buffer",
}


class TorchEngine:
    """Any network on any device that torch knows."""

    name = "torch"

    def __init__(self, spec: RunSpec, dataset: Dataset, state: TrainingState, device: str = "cpu") -> None:
        self.step = state.step
        self._spec = spec
        self._device = available_device(device)
        self._network = make_network(spec.model, state.weights).to(self._device)
        self._trained = dict(self._network.named_parameters())
        self._optimizer = _make_optimizer(spec.optimizer, self._trained)
        self._restore(state)
        self._pairs = torch.tensor(dataset.train_pairs, device=self._device)  # [n, 2]
        self._labels = torch.tensor(dataset.train_labels, device=self._device)  # [n]
        self._examples = torch.tensor(dataset.train_examples, device=self._device)  # [n]
        size = spec.training.batch_size
        self._batches = BatchOrder(dataset.train_examples, size, spec.training.seed) if size else None

    def advance(self, steps: int) -> npt.NDArray[np.float64]:
        """Take `steps` steps; the loss of each, before its update."""
        losses = torch.empty(steps, device=self._device)
        self._network.train()
        with reproducible_arithmetic():
            for index in range(steps):
                losses[index] = self._take_step()
        return losses.cpu().double().numpy()

    def evaluate(self, pairs: Int64Array, labels: Int64Array) -> Evaluation:
        """What the network says now."""
        with reproducible_arithmetic():
            return evaluate(self._network, pairs, labels, self._spec.training.loss)

    def weights(self) -> Weights:
        """A copy of the network's weights."""
        return self._network.weights()

    def state(self) -> TrainingState:
        """A copy of everything that the next step depends on."""
        moments = {}
        for name, parameter in self._trained.items():
            for moment, torch_name in _TORCH_MOMENTS.items():
                if torch_name in self._optimizer.state[parameter]:
                    value = self._optimizer.state[parameter][torch_name]
                    moments[f"{moment}.{name}"] = to_numpy(value.T if name in self._network.transposed else value)
        return TrainingState(self.step, self.weights(), moments)

    def _take_step(self) -> Tensor:
        self.step += 1
        pairs, labels, examples = self._pairs, self._labels, self._examples
        if self._batches is not None:
            chosen = torch.tensor(self._batches.batch(self.step), device=self._device)  # [B]
            pairs, labels, examples = pairs[chosen], labels[chosen], examples[chosen]
        logits = self._network(pairs, self._dropout_masks(examples))  # [B, p]
        loss = losses_per_example(logits, labels, self._spec.training.loss).mean()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return loss.detach()

    def _dropout_masks(self, examples: Tensor) -> list[Tensor]:
        """For each place where dropout acts: 0 for a dropped value, the scale for a kept one [B, width]."""
        probability, seed = self._spec.model.dropout, self._spec.training.seed
        if probability == 0:
            return []
        return [
            dropout_mask(dropout_bits(seed, self.step, examples, width, layer), probability)
            for layer, width in enumerate(self._network.dropout_widths())
        ]

    def _restore(self, state: TrainingState) -> None:
        for key, value in state.moments.items():
            moment, name = key.split(".")
            parameter = self._trained[name]
            oriented = torch.tensor(np.ascontiguousarray(value.T if name in self._network.transposed else value))
            entry = self._optimizer.state[parameter]
            entry[_TORCH_MOMENTS[moment]] = oriented.to(self._device)
            if moment == "first_moment":
                entry["step"] = torch.tensor(float(state.step))


def dropout_bits(seed: int | Tensor, step: int, examples: Tensor, width: int, layer: int) -> Tensor:
    """16 random bits for each of the values that dropout acts on: examples [..., B] → [..., B, width]."""
    blocks = torch.arange(-(-width // NEURONS_PER_BLOCK), device=examples.device)
    words = dropout_words(seed, step, examples[..., None], blocks, layer)
    halves = [half for word in words for half in (word & 0xFFFF, word >> 16)]
    return torch.stack(halves, dim=-1).flatten(-2)[..., :width]


def dropout_mask(bits: Tensor, probability: float) -> Tensor:
    """0 for a dropped value, the scale for a kept one."""
    return (bits >= dropout_threshold(probability)).to(torch.float32) * dropout_scale(probability)


def _make_optimizer(spec: OptimizerSpec, trained: dict[str, nn.Parameter]) -> torch.optim.Optimizer:
    spared = [tensor for name, tensor in trained.items() if name in EMBEDDINGS and not spec.decay_embeddings]
    decayed = [tensor for tensor in trained.values() if not any(tensor is other for other in spared)]
    parameters: list[dict[str, Any]] = [{"params": decayed}]
    if spared:
        parameters.append({"params": spared, "weight_decay": 0.0})
    if spec.kind == "sgd":
        return torch.optim.SGD(parameters, spec.learning_rate, momentum=spec.momentum, weight_decay=spec.weight_decay)
    optimizer = torch.optim.AdamW if spec.kind == "adamw" else torch.optim.Adam
    return optimizer(
        parameters,
        spec.learning_rate,
        betas=(spec.beta1, spec.beta2),
        eps=spec.epsilon,
        weight_decay=spec.weight_decay,
    )


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
        raise EngineError(f"device = {name!r} is not here: must be one of {here}")
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

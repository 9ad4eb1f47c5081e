"""Many runs at once along a leading axis: one small network leaves a GPU idle, a hundred of them do not.

Runs differ in their training sets, so every step goes over the full p × p grid, with a mask for each run; that makes
all shapes equal. Mini-batches are of one size already. Each run has its own weights, moments, labels, learning rate,
weight decay, dropout and seed, and no number of one run enters another.
"""

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from grokscope.engines.batches import BatchOrder
from grokscope.engines.stacking import stack_key
from grokscope.engines.state import MOMENTS, TrainingState
from grokscope.engines.torch_engine import available_device, dropout_bits, reproducible_arithmetic
from grokscope.errors import EngineError
from grokscope.models import EMBEDDINGS, MLP_EXPANSION, Evaluation, Weights, is_statistic, make_network
from grokscope.models.network import losses_per_example, to_numpy
from grokscope.randomness import dropout_scale, dropout_threshold
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset

_EVALUATED_VALUES = 1 << 26  # of the widest layer of all runs together, at once: 256 MB


class StackedEngine:
    """The same runs as the torch engine's, within rounding, as one computation."""

    name = "stacked"

    def __init__(
        self,
        specs: Sequence[RunSpec],
        datasets: Sequence[Dataset],
        states: Sequence[TrainingState],
        device: str = "cpu",
    ) -> None:
        if len({stack_key(spec) for spec in specs}) != 1 or len({state.step for state in states}) != 1:
            raise EngineError("the runs of a stack must have the same shapes and be at the same step")
        self.step = states[0].step
        self._specs, self._datasets = list(specs), list(datasets)
        self._spec = specs[0]
        self._device = available_device(device)
        # Holds no weights of its own: every call is given those of the stack.
        self._network = make_network(self._spec.model, states[0].weights).to(self._device)
        self._arrays = {
            name: self._stacked([state.weights[name] for state in states], name) for name in states[0].weights
        }
        self._trained = {name: array for name, array in self._arrays.items() if not is_statistic(name)}
        self._moments = {
            key: self._stacked([state.moments[key] for state in states], key.partition(".")[2])
            for key in states[0].moments
        }
        for array in self._trained.values():
            array.requires_grad_()
        p = self._spec.task.modulus
        self._grid = torch.cartesian_prod(torch.arange(p), torch.arange(p)).to(self._device)  # [p², 2]
        self._labels = self._on_device(np.stack([_grid_labels(dataset) for dataset in datasets]))  # [R, p²]
        weights = np.stack([_grid_weights(dataset) for dataset in datasets])
        self._example_weights = self._on_device(weights)  # [R, p²]
        size = self._spec.training.batch_size
        self._orders = [
            BatchOrder(dataset.train_examples, size, spec.training.seed)
            for spec, dataset in zip(specs, datasets, strict=True)
            if size
        ]

    def advance(self, steps: int) -> npt.NDArray[np.float64]:
        """Take `steps` steps; the loss of each run at each, before its update [steps, R]."""
        losses = torch.empty(steps, len(self._specs), device=self._device)
        self._network.train()
        with reproducible_arithmetic():
            for index in range(steps):
                losses[index] = self._take_step()
        return losses.cpu().double().numpy()

    @torch.no_grad()
    def evaluate(self) -> list[tuple[Evaluation, Evaluation]]:
        """What each network says now about its training and its test set."""
        self._network.eval()
        widest = max(self._spec.task.modulus, MLP_EXPANSION * max(self._network.dropout_widths()))
        at_once = max(1, _EVALUATED_VALUES // (widest * len(self._specs)))
        predictions, losses = [], []
        with reproducible_arithmetic():
            for start in range(0, len(self._grid), at_once):
                rows = slice(start, start + at_once)
                logits = self._logits(self._grid[rows], [], self._example_weights[:, rows])  # [R, rows, p]
                predictions.append(logits.argmax(dim=-1).cpu())
                losses.append(self._losses(logits, self._labels[:, rows]).cpu().double())
        said, lost = torch.cat(predictions, dim=1).numpy(), torch.cat(losses, dim=1).numpy()  # [R, p²]
        p = self._spec.task.modulus
        return [
            (
                Evaluation(said[r, dataset.train_examples], lost[r, dataset.train_examples]),
                Evaluation(said[r, dataset.test_pairs @ [p, 1]], lost[r, dataset.test_pairs @ [p, 1]]),
            )
            for r, dataset in enumerate(self._datasets)
        ]

    def weights(self, run: int) -> Weights:
        """A copy of a network's weights."""
        return {name: self._unstacked(array, name, run) for name, array in self._arrays.items()}

    def state(self, run: int) -> TrainingState:
        """A copy of everything that the next step of a run depends on."""
        moments = {key: self._unstacked(array, key.partition(".")[2], run) for key, array in self._moments.items()}
        return TrainingState(self.step, self.weights(run), moments)

    # ---- a step -----------------------------------------------------------------------------------------------------

    def _take_step(self) -> Tensor:
        self.step += 1
        if self._orders:
            examples, labels, weights = self._batch()  # [R, B] each
        else:
            examples, labels, weights = None, self._labels, self._example_weights
        pairs = self._grid if examples is None else self._grid[examples]  # [p², 2] or [R, B, 2]
        logits = self._logits(pairs, self._dropout_masks(examples), weights)  # [R, B, p]
        losses = (weights * self._losses(logits, labels)).sum(dim=1)  # [R]
        # The sum's gradient in the weights of a run is that of the run's own loss.
        gradients = torch.autograd.grad(losses.sum(), list(self._trained.values()))
        with torch.no_grad():
            for (name, weight), gradient in zip(self._trained.items(), gradients, strict=True):
                self._update(name, weight, gradient)
        return losses.detach()

    def _logits(self, pairs: Tensor, masks: list[Tensor], weights: Tensor) -> Tensor:
        def of_one(arrays: dict[str, Tensor], pairs: Tensor, masks: list[Tensor], weights: Tensor) -> Tensor:
            logits: Tensor = functional_call(self._network, arrays, (pairs, masks, weights))
            return logits

        shared = None if pairs.dim() == 2 else 0
        stacked: Tensor = vmap(of_one, in_dims=(0, shared, 0, 0))(self._arrays, pairs, masks, weights)
        return stacked

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each example of each run [R, B]."""
        flat = losses_per_example(logits.flatten(0, 1), labels.flatten(), self._spec.training.loss)
        return flat.view(labels.shape)

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """The examples of this step as places in the grid, their labels, and equal weights."""
        places = [order.batch(self.step) for order in self._orders]
        chosen = [dataset.train_examples[rows] for dataset, rows in zip(self._datasets, places, strict=True)]
        examples = self._on_device(np.stack(chosen))  # [R, B]
        equal = torch.full(examples.shape, 1 / examples.shape[1], device=self._device)
        return examples, self._labels.gather(1, examples), equal

    def _dropout_masks(self, examples: Tensor | None) -> list[Tensor]:
        if not any(spec.model.dropout for spec in self._specs):
            return []
        if examples is None:
            examples = torch.arange(len(self._grid), device=self._device)[None]  # [1, p²]
        seeds = self._per_run([spec.training.seed for spec in self._specs], 3)
        thresholds = self._per_run([dropout_threshold(spec.model.dropout) for spec in self._specs], 3)
        scales = self._per_run([dropout_scale(spec.model.dropout) for spec in self._specs], 3)
        return [
            (dropout_bits(seeds, self.step, examples, width, layer) >= thresholds).to(torch.float32) * scales
            for layer, width in enumerate(self._network.dropout_widths())
        ]  # [R, B, width] each

    def _update(self, name: str, weight: Tensor, gradient: Tensor) -> None:
        """torch's optimisers, with numbers of its own for each run."""
        kind = self._spec.optimizer.kind
        decayed = self._spec.optimizer.decay_embeddings or name not in EMBEDDINGS
        dimensions = weight.dim()

        def of_runs(field: str) -> Tensor:
            return self._per_run([getattr(spec.optimizer, field) for spec in self._specs], dimensions)

        rate = of_runs("learning_rate")
        decay = of_runs("weight_decay") if decayed else torch.zeros_like(rate)
        first, *second = (self._moments[f"{moment}.{name}"] for moment in MOMENTS[kind])
        if kind == "adamw":
            weight.mul_(1 - rate * decay)
        else:
            gradient = gradient + decay * weight
        if kind == "sgd":
            first.mul_(of_runs("momentum")).add_(gradient)
            weight.sub_(rate * first)
            return
        beta1, beta2 = of_runs("beta1"), of_runs("beta2")
        first.lerp_(gradient, 1 - beta1)
        second[0].mul_(beta2).add_((1 - beta2) * gradient.square())
        root = second[0].sqrt() / (1 - beta2**self.step).sqrt() + of_runs("epsilon")
        weight.sub_(rate / (1 - beta1**self.step) * first / root)

    # ---- in and out -------------------------------------------------------------------------------------------------

    def _stacked(self, arrays: Sequence[npt.NDArray[np.float32]], name: str) -> Tensor:
        """[R, …], each as the network keeps it."""
        return self._on_device(np.stack([array.T if name in self._network.transposed else array for array in arrays]))

    def _unstacked(self, array: Tensor, name: str, run: int) -> npt.NDArray[np.float32]:
        return to_numpy(array[run].T if name in self._network.transposed else array[run])

    def _on_device(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.tensor(array, device=self._device)

    def _per_run(self, values: Sequence[float], dimensions: int) -> Tensor:
        """One number for each run, to broadcast against arrays with so many dimensions, the runs' included."""
        return torch.tensor(values, device=self._device).view(-1, *[1] * (dimensions - 1))


def _grid_labels(dataset: Dataset) -> npt.NDArray[np.int64]:
    """The label of each pair of the grid: the one trained on, or the true one in the test set [p²]."""
    p = dataset.modulus
    labels = np.zeros(p * p, np.int64)  # pairs without an answer have no weight and are in no set
    labels[dataset.train_examples] = dataset.train_labels
    labels[dataset.test_pairs @ [p, 1]] = dataset.test_labels
    return labels


def _grid_weights(dataset: Dataset) -> npt.NDArray[np.float32]:
    """1/n for each of the n training pairs, 0 for the others [p²]."""
    weights = np.zeros(dataset.modulus**2, np.float32)
    weights[dataset.train_examples] = 1 / len(dataset.train_examples)
    return weights


def free_bytes(device: str) -> int:
    """The memory that a device has left."""
    chosen = available_device(device)
    if chosen.type == "cuda":
        return int(torch.cuda.mem_get_info(chosen)[0])
    if chosen.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 1 << 30

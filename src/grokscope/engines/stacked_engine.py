"""Many runs at once along a leading axis: one small network leaves a GPU idle, a hundred of them do not.

Runs differ in their training sets, so every step goes over all examples of the task, with a mask for each run; that
makes all shapes equal. Mini-batches are of one size already. Each run has its own weights, moments, labels, learning
rate, weight decay, dropout and seed, and no number of one run enters another.
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
from grokscope.engines.state import TrainingState
from grokscope.engines.torch_engine import (
    available_device,
    check_regularizer,
    dropout_bits,
    optimizer_of,
    reproducible_arithmetic,
    update,
)
from grokscope.errors import EngineError
from grokscope.models import Evaluation, Weights, is_statistic, make_network
from grokscope.models.module import check_forward, to_numpy
from grokscope.optimizers import Optimizer
from grokscope.randomness import dropout_scale, dropout_threshold
from grokscope.section import field_info
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset, Inputs

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
        self._module = make_network(self._spec.model, states[0].weights).to(self._device)
        check_forward(self._module, datasets[0].train_inputs, datasets[0].classes)
        check_regularizer(self._spec, self._module, datasets[0])
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
        self._optimizers = {name: self._optimizers_of(name, array.dim()) for name, array in self._trained.items()}
        tables = [_all_inputs(dataset) for dataset in datasets]  # [G, positions] each
        alike = all(np.array_equal(table, tables[0]) for table in tables)
        self._grid = self._on_device(tables[0] if alike else np.stack(tables))  # [G, positions] or [R, G, positions]
        self._labels = self._on_device(np.stack([_all_labels(dataset) for dataset in datasets]))  # [R, G]
        weights = np.stack([_all_weights(dataset) for dataset in datasets])
        self._example_weights = self._on_device(weights)  # [R, G]
        size = self._spec.training.batch_size
        self._orders = [
            BatchOrder(dataset.train_examples, size, spec.training.seed)
            for spec, dataset in zip(specs, datasets, strict=True)
            if size
        ]

    def advance(self, steps: int) -> npt.NDArray[np.float64]:
        """Take `steps` steps; the loss of each run at each, before its update [steps, R]."""
        losses = torch.empty(steps, len(self._specs), device=self._device)
        self._module.train()
        with reproducible_arithmetic():
            for index in range(steps):
                losses[index] = self._take_step()
        return losses.cpu().double().numpy()

    @torch.no_grad()
    def evaluate(self) -> list[tuple[Evaluation, Evaluation]]:
        """What each network says now about its training and its test set."""
        self._module.eval()
        widest = max(self._spec.task.classes, self._spec.model.activation_count(self._spec.task) // 4)
        at_once = max(1, _EVALUATED_VALUES // (widest * len(self._specs)))
        predictions, losses = [], []
        with reproducible_arithmetic():
            for start in range(0, self._labels.shape[1], at_once):
                rows = slice(start, start + at_once)
                inputs = self._grid[rows] if self._grid.dim() == 2 else self._grid[:, rows]
                logits = self._logits(inputs, [], self._example_weights[:, rows])  # [R, rows, classes]
                predictions.append(logits.argmax(dim=-1).cpu())
                losses.append(self._losses(logits, self._labels[:, rows]).cpu().double())
        said, lost = torch.cat(predictions, dim=1).numpy(), torch.cat(losses, dim=1).numpy()  # [R, p²]
        return [
            (
                Evaluation(said[r, dataset.train_examples], lost[r, dataset.train_examples]),
                Evaluation(said[r, dataset.test_examples], lost[r, dataset.test_examples]),
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
        inputs = self._grid if examples is None else self._inputs_of(examples)  # [G, positions] or [R, B, positions]
        logits = self._logits(inputs, self._dropout_masks(examples), weights)  # [R, B, classes]
        losses = (weights * self._losses(logits, labels)).sum(dim=1) + self._penalties()  # [R]
        # The sum's gradient in the weights of a run is that of the run's own loss.
        gradients = torch.autograd.grad(losses.sum(), list(self._trained.values()))
        with torch.no_grad():
            for (name, weight), gradient in zip(self._trained.items(), gradients, strict=True):
                self._update(name, weight, gradient)
        return losses.detach()

    def _inputs_of(self, examples: Tensor) -> Tensor:
        if self._grid.dim() == 2:
            return self._grid[examples]
        return self._grid.gather(1, examples[..., None].expand(-1, -1, self._grid.shape[2]))

    def _logits(self, inputs: Tensor, masks: list[Tensor], weights: Tensor) -> Tensor:
        def of_one(arrays: dict[str, Tensor], inputs: Tensor, masks: list[Tensor], weights: Tensor) -> Tensor:
            logits: Tensor = functional_call(self._module, arrays, (inputs, masks, weights))
            return logits

        shared = None if inputs.dim() == 2 else 0
        stacked: Tensor = vmap(of_one, in_dims=(0, shared, 0, 0))(self._arrays, inputs, masks, weights)
        return stacked

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each example of each run [R, B], as it is trained on."""
        losses = self._spec.regularizer.example_losses
        return losses(logits.flatten(0, 1), labels.flatten(), self._spec.training.loss).view(labels.shape)

    def _penalties(self) -> Tensor | float:
        """What the weights of each run add to its loss [R]."""

        def of_one(arrays: dict[str, Tensor]) -> Tensor:
            turned = {name: self._module.oriented(name, array) for name, array in arrays.items()}
            return torch.as_tensor(self._spec.regularizer.penalty(turned))

        if not self._spec.regularizer.acts:
            return 0.0
        penalties: Tensor = vmap(of_one)(self._arrays)
        return penalties

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """The examples of this step as places in the grid, their labels, and equal weights."""
        places = [order.batch(self.step) for order in self._orders]
        chosen = [dataset.train_examples[rows] for dataset, rows in zip(self._datasets, places, strict=True)]
        examples = self._on_device(np.stack(chosen))  # [R, B]
        equal = torch.full(examples.shape, 1 / examples.shape[1], device=self._device)
        return examples, self._labels.gather(1, examples), equal

    def _dropout_masks(self, examples: Tensor | None) -> list[Tensor]:
        if not any(spec.model.dropout_probability for spec in self._specs):
            return []
        if examples is None:
            examples = torch.arange(self._labels.shape[1], device=self._device)[None]  # [1, G]
        seeds = self._per_run([spec.training.seed for spec in self._specs], 3)
        thresholds = self._per_run([dropout_threshold(spec.model.dropout_probability) for spec in self._specs], 3)
        scales = self._per_run([dropout_scale(spec.model.dropout_probability) for spec in self._specs], 3)
        return [
            (dropout_bits(seeds, self.step, examples, width, layer) >= thresholds).to(torch.float32) * scales
            for layer, width in enumerate(self._module.dropout_widths())
        ]  # [R, B, width] each

    def _optimizers_of(self, name: str, dimensions: int) -> list[Optimizer]:
        """One for each run; or a single one for all, whose numbers are arrays of those of the runs."""
        each = [optimizer_of(spec, name) for spec in self._specs]
        kind = type(each[0])
        if not each[0].updates_together():
            return each
        numbers = [name for name in kind.model_fields if field_info(kind, name).kind == "finite number"]
        stacked = {name: self._per_run([getattr(one, name) for one in each], dimensions) for name in numbers}
        return [each[0].with_numbers(**stacked)]

    def _update(self, name: str, weight: Tensor, gradient: Tensor) -> None:
        optimizers = self._optimizers[name]
        arrays = [weight, gradient, *(self._moments[f"{moment}.{name}"] for moment in self._spec.optimizer.moments)]
        turned = [self._module.oriented(name, array) for array in arrays]
        # Together if one optimiser has the numbers of all runs, else one run after another.
        groups = [turned] if optimizers[0].updates_together() else zip(*turned, strict=True)
        for optimizer, (own, slope, *kept) in zip(optimizers, groups, strict=True):
            update(optimizer, own, slope, dict(zip(optimizer.moments, kept, strict=True)), self.step)

    # ---- in and out -------------------------------------------------------------------------------------------------

    def _stacked(self, arrays: Sequence[npt.NDArray[np.float32]], name: str) -> Tensor:
        """[R, …], each as the module keeps it."""
        turned = [array.T if name in self._spec.model.transposed else array for array in arrays]
        return self._on_device(np.stack(turned))

    def _unstacked(self, array: Tensor, name: str, run: int) -> npt.NDArray[np.float32]:
        return to_numpy(self._module.oriented(name, array[run]))

    def _on_device(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.tensor(array, device=self._device)

    def _per_run(self, values: Sequence[float], dimensions: int) -> Tensor:
        """One number for each run, to broadcast against arrays with so many dimensions, the runs' included."""
        return torch.tensor(values, device=self._device).view(-1, *[1] * (dimensions - 1))


def _count(dataset: Dataset) -> int:
    """As many places as the names of the examples need. Some may have no example: nothing can be divided by 0."""
    return 1 + int(max(dataset.train_examples.max(), dataset.test_examples.max(initial=0)))


def _all_inputs(dataset: Dataset) -> Inputs:
    """The input of each example, at the place that is its name [G, positions]."""
    inputs = np.zeros((_count(dataset), dataset.train_inputs.shape[1]), dataset.train_inputs.dtype)
    inputs[dataset.train_examples] = dataset.train_inputs
    inputs[dataset.test_examples] = dataset.test_inputs
    return inputs


def _all_labels(dataset: Dataset) -> npt.NDArray[np.int64]:
    """The label of each example: the one trained on, or the true one in the test set [G]."""
    labels = np.zeros(_count(dataset), np.int64)  # places without an example have no weight and are in no set
    labels[dataset.train_examples] = dataset.train_labels
    labels[dataset.test_examples] = dataset.test_labels
    return labels


def _all_weights(dataset: Dataset) -> npt.NDArray[np.float32]:
    """1/n for each of the n training examples, 0 for the others [G]."""
    weights = np.zeros(_count(dataset), np.float32)
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

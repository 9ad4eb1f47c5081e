"""The C++ kernel: every two-layer network of the paper, and deeper ones without norms, on a CPU, without torch."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from grokscope.compiled import instruction_level, native_module
from grokscope.engines.state import TrainingState
from grokscope.errors import EngineError
from grokscope.models import Evaluation, Weights, is_statistic
from grokscope.randomness import Int64Array, dropout_scale, dropout_threshold
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset

__all__ = ["NativeEngine", "instruction_level", "native_module", "why_unsupported"]


def why_unsupported(spec: RunSpec, device: str) -> str | None:
    """What keeps the kernel from running this spec, in words; None if nothing does."""
    if native_module() is None:
        return "the kernel is not built here (installing grokscope with a C++ compiler builds it)"
    if device != "cpu":
        return f"it runs on the CPU, not on device = {device!r}"
    if spec.model.kind != "mlp":
        return f"it has no model.kind = {spec.model.kind!r}"
    if spec.model.depth > 2 and spec.model.norm != "none":
        return f"it has no model.norm = {spec.model.norm!r} in networks of more than two layers"
    if spec.model.activation not in ("quadratic", "relu"):
        return f"it has no model.activation = {spec.model.activation!r}"
    return None


class NativeEngine:
    """The same run as the torch engine's, within rounding, several times as fast.

    `form` is for tests: how the gradient of a full batch is put together (see native/full_grid.hpp).
    """

    name = "native"

    def __init__(
        self,
        spec: RunSpec,
        dataset: Dataset,
        state: TrainingState,
        form: Literal["automatic", "direct", "complement"] = "automatic",
    ) -> None:
        kernel = native_module()
        if kernel is None:
            raise EngineError("the native kernel is not built here; engine 'torch' runs everywhere")
        self._trainer = kernel.Trainer(
            level=instruction_level(),
            modulus=spec.task.modulus,
            width=spec.model.width,
            depth=spec.model.depth,
            activation=spec.model.activation,
            loss=spec.training.loss,
            norm=spec.model.norm,
            optimizer=spec.optimizer.kind,
            form=form,
            batch_size=spec.training.batch_size or 0,
            dropout_threshold=dropout_threshold(spec.model.dropout),
            dropout_scale=dropout_scale(spec.model.dropout),
            learning_rate=spec.optimizer.learning_rate,
            weight_decay=spec.optimizer.weight_decay,
            beta1=spec.optimizer.beta1,
            beta2=spec.optimizer.beta2,
            epsilon=spec.optimizer.epsilon,
            momentum=spec.optimizer.momentum,
            seed=spec.training.seed,
            pairs=np.ascontiguousarray(dataset.train_pairs),
            labels=np.ascontiguousarray(dataset.train_labels),
        )
        self._trainer.step = state.step
        for name, array in state.weights.items():
            self._trainer.set("weights", name, _oriented(name, array))
        for key, array in state.moments.items():
            moment, name = key.split(".")
            self._trainer.set(moment, name, _oriented(name, array))
        self._weights, self._moments = tuple(state.weights), tuple(state.moments)

    @property
    def step(self) -> int:
        """How many steps were taken."""
        return int(self._trainer.step)

    @property
    def uses_complement(self) -> bool:
        """Whether steps go over the pairs that are not in the training set."""
        return bool(self._trainer.uses_complement)

    def advance(self, steps: int) -> npt.NDArray[np.float64]:
        """Take `steps` steps; the loss of each, before its update."""
        losses: npt.NDArray[np.float64] = self._trainer.advance(steps)
        return losses

    def evaluate(self, pairs: Int64Array, labels: Int64Array) -> Evaluation:
        """What the network says now."""
        return Evaluation(*self._trainer.evaluate(np.ascontiguousarray(pairs), np.ascontiguousarray(labels)))

    def gradient(self) -> tuple[float, Weights]:
        """The loss and the gradient of the next step, without taking it."""
        loss = self._trainer.gradient()
        trained = [name for name in self._weights if not is_statistic(name)]
        return loss, {name: _oriented(name, self._trainer.get("gradient", name)) for name in trained}

    def weights(self) -> Weights:
        """A copy of the network's weights."""
        return {name: _oriented(name, self._trainer.get("weights", name)) for name in self._weights}

    def state(self) -> TrainingState:
        """A copy of everything that the next step depends on."""
        moments = {}
        for key in self._moments:
            moment, name = key.split(".")
            moments[key] = _oriented(name, self._trainer.get(moment, name))
        return TrainingState(self.step, self.weights(), moments)


def _oriented(name: str, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """U and V lie transposed in the kernel, as rows of neurons; the same operation leads there and back.

    W and H2, H3, … are rows of the neurons that they come from already.
    """
    return np.ascontiguousarray(array.T if name in ("U", "V") else array)

"""The C++ kernel: two-layer networks, deeper ones without norms, and Transformers, on a CPU, without torch."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from grokscope.arrays import Int64Array
from grokscope.compiled import instruction_level, native_module
from grokscope.engines.state import TrainingState
from grokscope.errors import EngineError
from grokscope.extension import is_reference
from grokscope.models import Evaluation, Weights, is_statistic
from grokscope.randomness import dropout_scale, dropout_threshold
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset, Inputs

__all__ = ["NativeEngine", "instruction_level", "native_module", "why_unsupported"]


def why_unsupported(spec: RunSpec, device: str) -> str | None:
    """What keeps the kernel from running this spec, in words; None if nothing does."""
    if native_module() is None:
        return "the kernel is not built here (installing grokscope with a C++ compiler builds it)"
    if device != "cpu":
        return f"it runs on the CPU, not on device = {device!r}"
    for section in (spec.model, spec.optimizer, spec.regularizer):
        if is_reference(section.kind):  # it may be a built-in's subclass, of whose changes the kernel knows nothing
            return f"it has no {section.section}.kind = {section.kind!r}"
    settings = spec.model.kernel_settings(spec.task)
    return settings if isinstance(settings, str) else None


class NativeEngine:
    """The same run as the torch engine's, within rounding, several times as fast.

    `form` is for tests: how the gradient of a full batch is put together (see native/full_grid.hpp and
    native/token_tables.hpp).
    """

    name = "native"

    def __init__(
        self,
        spec: RunSpec,
        dataset: Dataset,
        state: TrainingState,
        form: Literal["automatic", "direct", "complement", "tokens"] = "automatic",
    ) -> None:
        kernel = native_module()
        if kernel is None:
            raise EngineError("the native kernel is not built here; engine 'torch' runs everywhere")
        if reason := why_unsupported(spec, "cpu"):
            raise EngineError(f"engine = 'native' cannot run this: {reason}; engine 'torch' can")
        settings = spec.model.kernel_settings(spec.task)
        assert not isinstance(settings, str)
        _check_state(spec, state)
        optimizer = spec.optimizer
        self._turned = spec.model.transposed
        self._trainer = kernel.Trainer(
            level=instruction_level(),
            modulus=spec.task.classes,
            **settings,
            **({"decay_embeddings": optimizer.decay_embeddings} if spec.model.embeddings else {}),
            loss=spec.training.loss,
            optimizer=optimizer.kind,
            form=form,
            batch_size=spec.training.batch_size or 0,
            dropout_threshold=dropout_threshold(spec.model.dropout_probability),
            dropout_scale=dropout_scale(spec.model.dropout_probability),
            learning_rate=optimizer.learning_rate,
            weight_decay=optimizer.weight_decay,
            # The kernel takes the numbers of all its optimisers, and uses those of the one it is told.
            **{name: getattr(optimizer, name, default) for name, default in _NUMBERS.items()},
            seed=spec.training.seed,
            pairs=np.ascontiguousarray(dataset.train_inputs),
            labels=np.ascontiguousarray(dataset.train_labels),
        )
        self._trainer.step = state.step
        for name, array in state.weights.items():
            self._trainer.set("weights", name, self._oriented(name, array))
        for key, array in state.moments.items():
            moment, name = key.split(".")
            self._trainer.set(moment, name, self._oriented(name, array))
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

    def evaluate(self, inputs: Inputs, labels: Int64Array) -> Evaluation:
        """What the network says now."""
        return Evaluation(*self._trainer.evaluate(np.ascontiguousarray(inputs), np.ascontiguousarray(labels)))

    def gradient(self) -> tuple[float, Weights]:
        """The loss and the gradient of the next step, without taking it."""
        loss = self._trainer.gradient()
        trained = [name for name in self._weights if not is_statistic(name)]
        return loss, {name: self._oriented(name, self._trainer.get("gradient", name)) for name in trained}

    def weights(self) -> Weights:
        """A copy of the network's weights."""
        return {name: self._oriented(name, self._trainer.get("weights", name)) for name in self._weights}

    def state(self) -> TrainingState:
        """A copy of everything that the next step depends on."""
        moments = {}
        for key in self._moments:
            moment, name = key.split(".")
            moments[key] = self._oriented(name, self._trainer.get(moment, name))
        return TrainingState(self.step, self.weights(), moments)

    def _oriented(self, name: str, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """U and V lie transposed in the kernel, as rows of neurons; the same operation leads there and back.

        W and H2, H3, … are rows of the neurons that they come from already.
        """
        return np.ascontiguousarray(array.T if name in self._turned else array)


def _check_state(spec: RunSpec, state: TrainingState) -> None:
    """The kernel refuses an array that it has no place for; one that is missing it would take for zeros."""
    trained = [name for name in state.weights if not is_statistic(name)]
    moments = {f"{moment}.{name}" for moment in spec.optimizer.moments for name in trained}
    numbers = sum(array.size for array in state.weights.values())
    if numbers != spec.model.parameter_count(spec.task) or state.moments.keys() != moments:
        raise EngineError(
            f"the state is not one of this network and optimiser ({spec.model.describe()}, {spec.optimizer.kind}): "
            f"it has the weights {', '.join(state.weights)} and the moments {', '.join(state.moments)}"
        )


_NUMBERS = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8, "momentum": 0.0}

"""Engines advance a training state by some steps. Which one ran is not part of a run's identity.

engine = make_engine(spec, dataset, initial_state(spec))
losses = engine.advance(10)     # the training loss of each of the ten steps
engine.evaluate(inputs, labels)  # predictions and losses
engine.state()                  # weights, optimiser moments and the step: enough to go on exactly

"""

import warnings
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from grokscope.arrays import Int64Array
from grokscope.engines.native_engine import NativeEngine, native_module, why_unsupported
from grokscope.engines.stacking import is_out_of_memory, runs_that_fit, stack_key
from grokscope.engines.state import TrainingState, initial_state
from grokscope.errors import EngineError, did_you_mean
from grokscope.models import Evaluation, Weights
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset, Inputs

if TYPE_CHECKING:
    from grokscope.engines.stacked_engine import StackedEngine

__all__ = [
    "ENGINES",
    "Engine",
    "SteppingEngine",
    "TrainingState",
    "build_engine",
    "initial_state",
    "is_out_of_memory",
    "make_engine",
    "make_stacked_engine",
    "resolve_engine",
    "runs_that_fit",
    "stack_key",
]

ENGINES = ("auto", "native", "torch", "stacked")


class SteppingEngine(Protocol):
    """What engines for one run and for many have in common."""

    name: str

    @property
    def step(self) -> int:
        """How many steps were taken."""

    def advance(self, steps: int) -> npt.NDArray[np.float64]:
        """Take `steps` steps; the loss of each, before its update."""


class Engine(SteppingEngine, Protocol):
    """What every engine for one run can do."""

    def evaluate(self, inputs: Inputs, labels: Int64Array) -> Evaluation:
        """What the network says now."""

    def weights(self) -> Weights:
        """A copy of the network's weights."""

    def state(self) -> TrainingState:
        """A copy of everything that the next step depends on."""


def resolve_engine(name: str, device: str, spec: RunSpec) -> str:
    """The engine that will run: the named one, or with "auto" the fastest that can; raises if it cannot be had."""
    if name not in ENGINES:
        raise EngineError(
            f"engine = {name!r} is not allowed: must be one of {', '.join(ENGINES)}{did_you_mean(name, ENGINES)}"
        )
    if device != "cpu":
        from grokscope.engines.torch_engine import available_device

        available_device(device)
    reason = why_unsupported(spec, device)
    if name == "native" and reason:
        raise EngineError(f"engine = 'native' cannot run this: {reason}; engine 'torch' can")
    if name == "auto" and native_module() is None and not isinstance(spec.model.kernel_settings(spec.task), str):
        _say_once_that_there_is_no_kernel()
    if name == "stacked":
        return name
    return "native" if name != "torch" and not reason else "torch"


@cache
def _say_once_that_there_is_no_kernel() -> None:
    warnings.warn(
        "the native kernel is not built, so torch trains, several times as slowly; "
        "install grokscope again where there is a C++ compiler",
        RuntimeWarning,
        stacklevel=3,
    )


def make_engine(
    spec: RunSpec, dataset: Dataset, state: TrainingState, name: str = "auto", device: str = "cpu"
) -> Engine:
    """The engine that `resolve_engine` chooses, at this state."""
    return build_engine(resolve_engine(name, device, spec), spec, dataset, state, device)


def build_engine(resolved: str, spec: RunSpec, dataset: Dataset, state: TrainingState, device: str) -> Engine:
    """The engine for one run that `resolve_engine` has chosen, at this state."""
    if resolved == "native":
        return NativeEngine(spec, dataset, state)
    from grokscope.engines.torch_engine import TorchEngine

    return TorchEngine(spec, dataset, state, device)


def make_stacked_engine(
    specs: Sequence[RunSpec], datasets: Sequence[Dataset], states: Sequence[TrainingState], device: str = "cpu"
) -> "StackedEngine":
    """All runs of the specs, which have the same `stack_key`, as one engine."""
    from grokscope.engines.stacked_engine import StackedEngine

    return StackedEngine(specs, datasets, states, device)

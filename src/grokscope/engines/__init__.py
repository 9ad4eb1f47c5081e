"""Engines advance a training state by some steps. Which one ran is not part of a run's identity.

engine = make_engine(spec, dataset, initial_state(spec))
losses = engine.advance(10)     # the training loss of each of the ten steps
engine.evaluate(pairs, labels)  # predictions and losses
engine.state()                  # weights, optimiser moments and the step: enough to go on exactly

"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from grokscope.engines.state import TrainingState, initial_state
from grokscope.errors import EngineError, did_you_mean
from grokscope.models import Evaluation, Weights
from grokscope.randomness import Int64Array
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset

__all__ = ["ENGINES", "Engine", "TrainingState", "check_engine", "initial_state", "make_engine"]

ENGINES = ("auto", "torch")


class Engine(Protocol):
    """What every engine can do."""

    name: str
    step: int

    def advance(self, steps: int) -> npt.NDArray[np.float64]:
        """Take `steps` steps; the loss of each, before its update."""

    def evaluate(self, pairs: Int64Array, labels: Int64Array) -> Evaluation:
        """What the network says now."""

    def weights(self) -> Weights:
        """A copy of the network's weights."""

    def state(self) -> TrainingState:
        """A copy of everything that the next step depends on."""


def check_engine(name: str, device: str) -> None:
    """Raise if there is no such engine or device here, before any work is done."""
    if name not in ENGINES:
        raise EngineError(
            f"engine = {name!r} is not allowed: must be one of {', '.join(ENGINES)}{did_you_mean(name, ENGINES)}"
        )
    if device != "cpu":
        from grokscope.engines.torch_engine import available_device

        available_device(device)


def make_engine(
    spec: RunSpec, dataset: Dataset, state: TrainingState, name: str = "auto", device: str = "cpu"
) -> Engine:
    """The named engine, or with "auto" the fastest that can run this spec on this device."""
    check_engine(name, device)
    from grokscope.engines.torch_engine import TorchEngine

    return TorchEngine(spec, dataset, state, device)

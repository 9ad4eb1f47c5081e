"""One interface for a group of runs that advance together, of which a single run is the smallest.

engine = make_group_engine("native", [spec], [dataset], [initial_state(spec)])
losses = engine.advance(10)      # [steps, runs]
engine.evaluate()                # of each run, its training and its test set
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from grokscope.engines import Engine, SteppingEngine, TrainingState, build_engine, make_stacked_engine
from grokscope.errors import EngineError
from grokscope.models import Evaluation, Weights
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset


class GroupEngine(SteppingEngine, Protocol):
    """What an engine for a group of runs can do; `advance` returns losses [steps, runs]."""

    def evaluate(self) -> list[tuple[Evaluation, Evaluation]]:
        """What each network says now about its training and its test set."""

    def weights(self, run: int) -> Weights:
        """A copy of a network's weights."""

    def state(self, run: int) -> TrainingState:
        """A copy of everything that the next step of a run depends on."""


def make_group_engine(
    name: str,
    specs: Sequence[RunSpec],
    datasets: Sequence[Dataset],
    states: Sequence[TrainingState],
    device: str = "cpu",
) -> GroupEngine:
    """The engine of this name, which `resolve_engine` has chosen. Only the stacked one trains several runs."""
    if name == "stacked":
        return make_stacked_engine(specs, datasets, states, device)
    if len(specs) > 1:
        raise EngineError(f"engine = {name!r} trains one run at a time; engine 'stacked' trains several together")
    return _GroupOfOne(build_engine(name, specs[0], datasets[0], states[0], device), datasets[0])


class _GroupOfOne:
    """An engine for one run, seen as one for a group."""

    def __init__(self, engine: Engine, dataset: Dataset) -> None:
        self.name = engine.name
        self._engine, self._dataset = engine, dataset

    @property
    def step(self) -> int:
        return self._engine.step

    def advance(self, steps: int) -> npt.NDArray[np.float64]:
        return self._engine.advance(steps)[:, np.newaxis]

    def evaluate(self) -> list[tuple[Evaluation, Evaluation]]:
        data = self._dataset
        train_set = self._engine.evaluate(data.train_inputs, data.train_labels)
        return [(train_set, self._engine.evaluate(data.test_inputs, data.test_labels))]

    def weights(self, run: int) -> Weights:
        return self._engine.weights()

    def state(self, run: int) -> TrainingState:
        return self._engine.state()

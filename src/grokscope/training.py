"""One run, from spec to result. Read this file first: it is the architecture.

    spec → dataset → model → training → measurements → result

>>> from grokscope.spec import ModelSpec, RunSpec, TaskSpec, TrainingSpec
>>> spec = RunSpec(task=TaskSpec(modulus=11), model=ModelSpec(width=32), training=TrainingSpec(steps=5))
>>> result = execute(spec)
>>> result.status, len(result.curve), result.weights["U"].shape
('finished', 5, (32, 11))
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from grokscope.engines import (
    Engine,
    SteppingEngine,
    TrainingState,
    check_engine,
    initial_state,
    make_engine,
    make_stacked_engine,
)
from grokscope.measure import Moment, NeuronSpectra, Row, measurements_called, output_spectra, take_row
from grokscope.models import Evaluation, Weights
from grokscope.phases import Phase, classify
from grokscope.result import Checkpoint, RunResult
from grokscope.spec import RunSpec, TrainingSpec

PAUSE_SECONDS = 0.5  # the longest that training goes on before somebody may look at it, if a step is not longer


def execute(
    spec: RunSpec,
    *,
    engine: str = "auto",
    device: str = "cpu",
    on_measurement: Callable[[Row, NeuronSpectra | None], None] | None = None,
    on_evaluation: Callable[[int, Evaluation, Evaluation], None] | None = None,
    start: Checkpoint | None = None,
    on_pause: Callable[[Callable[[], Checkpoint]], None] | None = None,
) -> RunResult:
    """Train the network that `spec` describes, measure it on the way, and name its phase.

    `on_measurement` sees every row of the curve when it is taken, and with it the spectra of all neurons, of which
    the result keeps only the last. `on_evaluation` sees the step and what the network says about each example of the
    training and the test set, of which a row has only means. `on_pause` is called several times a second, unless a
    single step takes longer, with a function that makes a checkpoint; `start` goes on from one, to the same result as
    without the interruption. One of another engine, which rounds otherwise, is not used.
    """
    if check_engine(engine, device, spec) == "stacked":
        return execute_stack(
            [spec],
            device=device,
            on_measurement=on_measurement and (lambda _, row, spectra: on_measurement(row, spectra)),
            on_evaluation=on_evaluation and (lambda _, *evaluations: on_evaluation(*evaluations)),
            starts=[start],
            on_pause=on_pause and (lambda checkpoint: on_pause(lambda: checkpoint(0))),
        )[0]
    if start and start.engine != check_engine(engine, device, spec):
        start = None
    started = time.perf_counter() - (start.seconds if start else 0)
    record = _Record(spec, start)
    trainer: Engine = make_engine(spec, record.dataset, start.state if start else initial_state(spec), engine, device)
    for losses in train(trainer, spec.training):
        record.watch(losses, trainer.step)
        if record.diverged_step is not None:
            break
        if record.is_due(trainer.step):
            train_set = trainer.evaluate(record.dataset.train_inputs, record.dataset.train_labels)
            test_set = trainer.evaluate(record.dataset.test_inputs, record.dataset.test_labels)
            if on_evaluation is not None:
                on_evaluation(trainer.step, train_set, test_set)
            record.measure(trainer.step, float(losses[-1]), trainer.weights(), train_set, test_set)
            if on_measurement is not None:
                on_measurement(record.curve[-1], record.spectra)
        if on_pause is not None and trainer.step < spec.training.steps:
            on_pause(lambda: record.checkpoint(trainer.state(), time.perf_counter() - started, trainer.name))
    return record.result(trainer.weights(), time.perf_counter() - started, trainer.name)


def execute_stack(
    specs: Sequence[RunSpec],
    *,
    device: str = "cpu",
    on_measurement: Callable[[int, Row, NeuronSpectra | None], None] | None = None,
    on_evaluation: Callable[[int, int, Evaluation, Evaluation], None] | None = None,
    starts: Sequence[Checkpoint | None] | None = None,
    on_pause: Callable[[Callable[[int], Checkpoint]], None] | None = None,
) -> list[RunResult]:
    """The same for many runs that advance together on one device, see `grokscope.engines.stack_key`.

    Their checkpoints in `starts` are used if they are all of this engine and of the same step. A run's seconds are its
    share of the time of all.
    """
    used = list(starts or ())
    if any(start is None or start.engine != "stacked" for start in used) or len({s.state.step for s in used if s}) > 1:
        used = []
    records = [_Record(spec, used[i] if used else None) for i, spec in enumerate(specs)]
    started = time.perf_counter() - sum(start.seconds for start in used if start)
    states = [start.state for start in used if start] or [initial_state(spec) for spec in specs]
    trainer = make_stacked_engine(specs, [record.dataset for record in records], states, device)

    def share() -> float:
        return (time.perf_counter() - started) / len(specs)

    for losses in train(trainer, specs[0].training):  # [steps, R]
        for record, own in zip(records, losses.T, strict=True):
            record.watch(own, trainer.step)
        if all(record.diverged_step is not None for record in records):
            break
        if records[0].is_due(trainer.step):
            for i, (train_set, test_set) in enumerate(trainer.evaluate()):
                if records[i].diverged_step is not None:
                    continue
                if on_evaluation is not None:
                    on_evaluation(i, trainer.step, train_set, test_set)
                records[i].measure(trainer.step, float(losses[-1, i]), trainer.weights(i), train_set, test_set)
                if on_measurement is not None:
                    on_measurement(i, records[i].curve[-1], records[i].spectra)
        if on_pause is not None and trainer.step < specs[0].training.steps:
            on_pause(lambda i: records[i].checkpoint(trainer.state(i), share(), trainer.name))
    return [record.result(trainer.weights(i), share(), trainer.name) for i, record in enumerate(records)]


class _Record:
    """What is known of a run under way: its data, its curve so far, and whether it went wrong."""

    def __init__(self, spec: RunSpec, start: Checkpoint | None) -> None:
        self.spec = spec
        self.dataset = spec.dataset()
        self.curve: list[Row] = list(start.curve) if start else []
        self._measurements = measurements_called(spec.training.measurements)
        self.spectra: NeuronSpectra | None = None
        self.diverged_step: int | None = None
        self._measured_steps = set(spec.training.measured_steps())

    def watch(self, losses: npt.NDArray[np.float64], last_step: int) -> None:
        """Note the first loss that is not a number."""
        if self.diverged_step is None:
            self.diverged_step = _first_bad_step(losses, last_step)

    def is_due(self, step: int) -> bool:
        return step in self._measured_steps

    def measure(
        self, step: int, train_loss: float, weights: Weights, train_set: Evaluation, test_set: Evaluation
    ) -> None:
        """Add a row to the curve."""
        moment = Moment(step, train_loss, self.spec.model, weights, train_set, test_set, self.dataset)
        self.curve.append(take_row(moment, self._measurements))
        self.spectra = moment.spectra

    def checkpoint(self, state: TrainingState, seconds: float, engine: str) -> Checkpoint:
        return Checkpoint(state, tuple(self.curve), seconds, engine)

    def result(self, weights: Weights, seconds: float, engine: str) -> RunResult:
        """The run, now that it has ended."""
        if self.diverged_step is None and not math.isfinite(self.curve[-1].test_loss):
            self.diverged_step = self.curve[-1].step  # there was no further step whose loss would have shown it
        finished = self.diverged_step is None
        return RunResult(
            spec=self.spec,
            engine=engine,
            seconds=seconds,
            status="finished" if finished else "diverged",
            diverged_step=self.diverged_step,
            weights=weights,
            curve=tuple(self.curve),
            neurons=self.spectra if finished else None,
            outputs=output_spectra(self.spec.model, weights, self.spec.task) if finished else None,
            phase=self._phase() if finished else None,
        )

    def _phase(self) -> Phase:
        return classify(
            train_accuracy=self.curve[-1].train_accuracy,
            test_accuracy=self.curve[-1].test_accuracy,
            corruption=self.dataset.corruption,
            best_test_accuracy=max(row.test_accuracy for row in self.curve),
        )


def train(trainer: SteppingEngine, training: TrainingSpec) -> Iterator[npt.NDArray[np.float64]]:
    """Advance to the last step, pausing at every measured one and where the time is up; yields the losses since."""
    at_once = 1  # steps between pauses; what a step costs shows only when it is taken
    for goal in training.measured_steps():
        while trainer.step < goal:
            count = min(goal - trainer.step, at_once)
            started = time.perf_counter()
            losses = trainer.advance(count)
            elapsed = time.perf_counter() - started
            if elapsed < PAUSE_SECONDS / 2:
                at_once = max(at_once, 2 * count)
            elif elapsed > PAUSE_SECONDS:
                at_once = max(1, count // 2)
            yield losses


def _first_bad_step(losses: npt.NDArray[np.float64], last_step: int) -> int | None:
    bad = np.flatnonzero(~np.isfinite(losses))
    return int(last_step - len(losses) + 1 + bad[0]) if len(bad) else None

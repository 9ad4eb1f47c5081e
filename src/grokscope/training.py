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
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from grokscope.engines import SteppingEngine, initial_state, resolve_engine
from grokscope.engines.group import make_group_engine
from grokscope.measure import Moment, NeuronSpectra, Row, measurements_called, output_spectra, phases_along, take_row
from grokscope.models import Evaluation, Weights
from grokscope.phases import Phase
from grokscope.result import Checkpoint, RunResult
from grokscope.settling import has_settled
from grokscope.snapshots import Snapshots, snapshot_steps, snapshots_from
from grokscope.spec import RunSpec, TrainingSpec

PAUSE_SECONDS = 0.5  # the longest time between two pauses, unless a single step takes longer

OnMeasurement = Callable[[Row, Moment], None]
OnEvaluation = Callable[[int, Evaluation, Evaluation], None]


class Stop(Exception):  # noqa: N818 (not an error)
    """Raise it in a callback to end the run at this step and keep what there is.

    def until_it_groks(row, moment):
        if row.test_accuracy > 0.99:
            raise gs.Stop

    result = gs.run(spec, on_measurement=until_it_groks)
    result.status, result.final.step
    """


def execute(
    spec: RunSpec,
    *,
    engine: str = "auto",
    device: str = "cpu",
    on_measurement: OnMeasurement | None = None,
    on_evaluation: OnEvaluation | None = None,
    start: Checkpoint | None = None,
    on_pause: Callable[[Callable[[], Checkpoint]], None] | None = None,
    snapshots: Snapshots | bool = None,
) -> RunResult:
    """Train the network that `spec` describes, measure it on the way, and name its phase.

    `on_measurement` gets every row of the curve when it is taken, and the moment that it was taken of: the network's
    weights, the spectra of its neurons, and what it says about each example. The result keeps only the last of them.
    If the callback raises `Stop`, the run ends there: its result has the status "stopped", the curve and the network so
    far, and a `checkpoint` to go on from. `on_evaluation` gets the step and what the network says about the training
    and the test set, before the row is taken.

    `snapshots` keeps the weights too: "all", at every measured step, or a number, at so many of them.

    `on_pause` is called several times a second, unless a single step takes longer, with a function that makes a
    checkpoint. `start` continues from a checkpoint, to the same result as without the interruption; one of another
    engine, which rounds differently, or without the snapshots that are wanted, is not used.
    """
    kept = snapshot_steps(spec.training, snapshots_from(snapshots))
    start = start if start and start.has_snapshots(kept) else None
    job = Job(spec.resolved(), start, on_measurement, on_evaluation, kept)
    group = RunGroup([job], engine=engine, device=device)
    for _ in group.train():
        if on_pause is not None:
            on_pause(lambda: group.checkpoints()[0])
    (result,) = group.results()
    return result


@dataclass(frozen=True)
class Job:
    """One run to execute: its spec, the checkpoint it continues from, callbacks, and the steps to keep weights at."""

    spec: RunSpec
    start: Checkpoint | None = None
    on_measurement: OnMeasurement | None = None
    on_evaluation: OnEvaluation | None = None
    snapshots: Collection[int] = ()


class RunGroup:
    """Runs that advance together on one device, often just one; `grokscope.engines.stack_key` says which can.

    group = RunGroup([Job(first), Job(second)])
    for _ in group.train():     # pauses several times a second
        group.checkpoints()
    group.results()

    Checkpoints to start from are used if all runs have one of this engine at the same step.
    """

    def __init__(self, jobs: Sequence[Job], *, engine: str = "stacked", device: str = "cpu") -> None:
        engine = resolve_engine(engine, device, jobs[0].spec)
        if not _can_go_on(jobs, engine):
            jobs = [replace(job, start=None) for job in jobs]
        self._began = time.perf_counter() - sum(job.start.seconds for job in jobs if job.start)
        self._records = [_Record(job) for job in jobs]
        specs, datasets = [job.spec for job in jobs], [record.dataset for record in self._records]
        states = [job.start.state if job.start else initial_state(job.spec) for job in jobs]
        self._trainer = make_group_engine(engine, specs, datasets, states, device)
        self._training = specs[0].training

    def train(self) -> Iterator[None]:
        """Train to the last step and measure on the way; yields where the caller may make checkpoints, or stop."""
        measured_steps = set(self._training.measured_steps())
        for losses in train(self._trainer, self._training):  # [steps, runs]
            step = self._trainer.step
            for record, own in zip(self._records, losses.T, strict=True):
                record.watch(own, step)
            if all(record.ended for record in self._records):
                return
            if step in measured_steps:
                self._measure(step, losses[-1])
                if all(record.ended for record in self._records):
                    return
            if step < self._training.steps:
                yield

    def _measure(self, step: int, train_losses: npt.NDArray[np.float64]) -> None:
        for i, (train_set, test_set) in enumerate(self._trainer.evaluate()):
            record = self._records[i]
            if record.ended:
                continue
            enough = record.measure(step, float(train_losses[i]), self._trainer.weights(i), train_set, test_set)
            if enough and step < self._training.steps:
                record.stopped = self._checkpoint(i)

    def checkpoints(self) -> dict[int, Checkpoint]:
        """Where the runs stand, by their places.

        A diverged one is left out, because going on would misdate its divergence, and so is one that has settled.
        """
        return {
            i: record.stopped or self._checkpoint(i)
            for i, record in enumerate(self._records)
            if not record.diverged and not record.settled
        }

    def _checkpoint(self, run: int) -> Checkpoint:
        record = self._records[run]
        return Checkpoint(
            self._trainer.state(run),
            tuple(record.curve),
            self._seconds(),
            self._trainer.name,
            record.ipr_history(),
            dict(record.weights_at),
        )

    def results(self) -> list[RunResult]:
        """The runs, after the last step, or where a callback stopped them."""
        seconds, engine = self._seconds(), self._trainer.name
        return [
            record.result(record.stopped.state.weights if record.stopped else self._trainer.weights(i), seconds, engine)
            for i, record in enumerate(self._records)
        ]

    def _seconds(self) -> float:
        """A run's share of the time of all."""
        return (time.perf_counter() - self._began) / len(self._records)


def _can_go_on(jobs: Sequence[Job], engine: str) -> bool:
    starts = [job.start for job in jobs if job.start and job.start.engine == engine]
    return len(starts) == len(jobs) and len({start.state.step for start in starts}) == 1


class _Record:
    """What is known of a run under way: its data, its curve so far, and whether it went wrong."""

    def __init__(self, job: Job) -> None:
        self._job, self.spec = job, job.spec
        self.dataset = job.spec.dataset()
        self.curve: list[Row] = list(job.start.curve) if job.start else []
        self._measurements = measurements_called(job.spec.training.measurements)
        self._histograms = list(job.start.ipr_history) if job.start and job.start.ipr_history is not None else []
        self.spectra: NeuronSpectra | None = None
        earlier = job.start.weights_at if job.start else {}
        self.weights_at: dict[int, Weights] = {step: earlier[step] for step in earlier if step in job.snapshots}
        self.diverged_step: int | None = None
        self.stopped: Checkpoint | None = None  # where a callback stopped it, or where it settled
        self.settled = False

    @property
    def diverged(self) -> bool:
        return self.diverged_step is not None

    @property
    def ended(self) -> bool:
        """Before its last step."""
        return self.diverged or self.stopped is not None

    def watch(self, losses: npt.NDArray[np.float64], last_step: int) -> None:
        """Note the first loss that is not a number."""
        if not self.ended:
            self.diverged_step = _first_bad_step(losses, last_step)

    def measure(
        self, step: int, train_loss: float, weights: Weights, train_set: Evaluation, test_set: Evaluation
    ) -> bool:
        """Add a row to the curve, and pass it to the callbacks; whether the run stops here."""
        if self._job.on_evaluation is not None:
            self._job.on_evaluation(step, train_set, test_set)
        moment = Moment(step, train_loss, self.spec.model, weights, train_set, test_set, self.dataset)
        self.curve.append(take_row(moment, self._measurements))
        self.spectra = moment.spectra
        if self.spectra is not None:
            self._histograms.append(self.spectra.histogram())
        if step in self._job.snapshots:
            self.weights_at[step] = {name: array.copy() for name, array in weights.items()}  # callbacks get the others
        try:
            if self._job.on_measurement is not None:
                self._job.on_measurement(self.curve[-1], moment)
        except Stop:
            return True
        self.settled = has_settled(self.curve, self.spec.training, self.dataset.corruption)
        return self.settled

    def ipr_history(self) -> npt.NDArray[np.unsignedinteger] | None:
        """A histogram for each row of the curve; None if there are no waves, or if an older release began the run."""
        return np.stack(self._histograms) if self.curve and len(self._histograms) == len(self.curve) else None

    def result(self, weights: Weights, seconds: float, engine: str) -> RunResult:
        """The run, now that it has ended."""
        if not self.diverged and not math.isfinite(self.curve[-1].test_loss):
            self.diverged_step = self.curve[-1].step  # there was no further step whose loss would have shown it
        finished = not self.diverged
        stopped = finished and self.stopped is not None and not self.settled
        return RunResult(
            spec=self.spec,
            engine=engine,
            seconds=seconds,
            status="diverged" if not finished else "stopped" if stopped else "finished",
            diverged_step=self.diverged_step,
            weights=weights,
            curve=tuple(self.curve),
            neurons=self.spectra if finished else None,
            outputs=output_spectra(self.spec.model, weights, self.spec.task) if finished else None,
            phase=self._phase() if finished else None,
            ipr_history=self.ipr_history(),
            weights_at=self.weights_at,
            checkpoint=self.stopped if stopped else None,
        )

    def _phase(self) -> Phase:
        return phases_along(self.curve, self.dataset.corruption)[-1]


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

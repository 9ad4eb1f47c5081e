"""What a sweep will take, from a short measurement on this machine.

estimate = estimate_sweep(list(plan.specs()), Running())
estimate.seconds, estimate.bytes
"""

import heapq
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from grokscope.engines import (
    SteppingEngine,
    initial_state,
    make_engine,
    make_stacked_engine,
    runs_that_fit,
    stack_key,
)
from grokscope.measure import COLUMNS, neuron_spectra
from grokscope.snapshots import Snapshots, snapshot_bytes
from grokscope.spec import RunSpec, TrainingSpec
from grokscope.store import Store
from grokscope.sweeps.dispatch import run_all
from grokscope.sweeps.recorded import NOTHING_RECORDED, Recorded, completed
from grokscope.sweeps.running import MOST_STACKED, Running

LONG_SECONDS = 600.0  # of training, against which starting processes and storing runs does not show
SAMPLES = 12
SAMPLE_SECONDS = 0.15
INDEX_BYTES = 2600  # of a run in the index: its spec and its last measurement as text
FILE_BYTES = 3000  # of names and sizes in a run's file


@dataclass(frozen=True)
class Estimate:
    """What there is to do, and what it takes."""

    runs: int  # of the whole sweep
    done: int
    failed: int
    left: int
    seconds: float  # for those that are left, with all workers
    bytes: int  # that they will take in the store


def estimate_sweep(
    specs: Sequence[RunSpec],
    running: Running,
    store: Store | None = None,
    limit: int | None = None,
    recorded: Recorded = NOTHING_RECORDED,
) -> Estimate:
    """Of the runs that the store and the tables of cells lack, at most `limit`.

    If weights are kept, those that are known without them are lacking too.
    """
    unique = {spec.run_id: spec for spec in specs}
    left, failed = [spec for run_id, spec in unique.items() if running.weights or run_id not in recorded], 0
    if store:
        cells = completed(store.outcomes(unique), recorded)
        lacking = {cell.run_id for cell in cells if cell.outcome is None}
        if running.weights:
            lacking |= running.lacking(store, (unique[cell.run_id] for cell in cells if cell.outcome != "failed"))
        left = [spec for run_id, spec in unique.items() if run_id in lacking]
        failed = sum(cell.outcome == "failed" for cell in cells)
    chosen = [spec for spec in left[:limit] if relative_cost(spec)]
    seconds = estimated_seconds(chosen, running)
    size = estimated_bytes(chosen, weights=running.weights, snapshots=running.snapshots)
    return Estimate(len(unique), len(unique) - len(left) - failed, failed, len(left), seconds, size)


def relative_cost(spec: RunSpec) -> float:
    """Proportional to what a run takes, roughly: its multiplications. For dividing up the time that is left.

    A run whose user's code fails already here takes nothing: it fails again when it is trained, and is noted then.
    """
    try:
        rows = spec.training.batch_size or spec.task.training_size
        return float(spec.training.steps * rows * spec.model.parameter_count(spec.task))
    except Exception:
        if not spec.code():
            raise
        return 0.0


def estimated_seconds(specs: Sequence[RunSpec], running: Running) -> float:
    """Of all these runs, with all workers. Those of a cluster are taken to be as fast as this machine's cores."""
    if running.cluster is None:
        workers = max(running.processes, 1)
        durations = estimated_durations(specs, running.engine_used, running.device)
        seconds = makespan(durations, workers)
        if 0 < seconds < LONG_SECONDS and running.engine_used != "stacked":  # else what is around the runs is nothing
            around = seconds_around_a_run()
            seconds = makespan((each + around for each in durations), workers)
            seconds += seconds_to_start() if running.processes else 0
        return seconds
    engine = running.engine if running.device == "cpu" else "auto"  # which GPUs there are is not known here
    return makespan(estimated_durations(specs, engine), running.processes)


@cache
def seconds_to_start() -> float:
    """That a worker process takes before it can do anything."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import grokscope.sweeps.worker"], check=True, capture_output=True)
    return time.perf_counter() - started


@cache
def seconds_around_a_run() -> float:
    """That a run takes beside its steps: to be leased, set up and stored. Measured on one of a single step."""
    spec = RunSpec().updated({"training.steps": 1})
    with tempfile.TemporaryDirectory(prefix="grokscope-") as directory:
        Store(directory, create=True).close()
        started = time.perf_counter()
        deque(run_all([spec], directory, Running(workers=0)), maxlen=0)
        return time.perf_counter() - started


def makespan(durations: Iterable[float], workers: int) -> float:
    """How long workers take together if each takes the next run when it is done with one.

    >>> makespan([3, 1, 1, 1], workers=2), makespan([5, 1], workers=100), makespan([], workers=2)
    (3.0, 5.0, 0.0)
    """
    free_at = [0.0] * workers
    for seconds in durations:
        heapq.heapreplace(free_at, free_at[0] + seconds)
    return max(free_at)


def estimated_durations(specs: Sequence[RunSpec], engine: str, device: str = "cpu") -> list[float]:
    """Of each run in seconds (with the stacked engine its share of a stack's), from some steps of a few of them."""
    if engine == "stacked":
        stacks = {stack_key(spec): spec for spec in _spread(specs, SAMPLES)}
        seconds = sum(_seconds_in_stack(spec, specs, device) for spec in stacks.values())
        return [seconds / len(stacks)] * len(specs) if stacks else []
    alike: dict[object, list[RunSpec]] = {}  # of one wide network among many narrow ones a sample would know nothing
    for spec in specs:
        alike.setdefault((spec.model, spec.training.batch_size), []).append(spec)
    rates: dict[object, float] = {}
    for key, group in alike.items():
        samples = _spread(group, max(2, SAMPLES // len(alike)))
        seconds = sum(_seconds_of(spec, engine, device) for spec in samples)
        rates[key] = seconds / sum(map(relative_cost, samples))
    return [rates[spec.model, spec.training.batch_size] * relative_cost(spec) for spec in specs]


def _spread(specs: Sequence[RunSpec], most: int) -> list[RunSpec]:
    """At most `most` of them. Multiples of the golden ratio spread evenly and never fall into step with an axis."""
    chosen = {int(len(specs) * (i * 0.6180339887 % 1)) for i in range(min(most, len(specs)))}
    return [specs[index] for index in sorted(chosen)]


def _seconds_of(spec: RunSpec, engine: str, device: str) -> float:
    dataset = spec.dataset()
    trainer = make_engine(spec, dataset, initial_state(spec), engine, device)

    def measure() -> None:
        trainer.evaluate(dataset.train_inputs, dataset.train_labels)
        trainer.evaluate(dataset.test_inputs, dataset.test_labels)
        neuron_spectra(spec.model, trainer.weights(), spec.task)

    return _timed(trainer, measure, spec.training)


def _seconds_in_stack(spec: RunSpec, specs: Sequence[RunSpec], device: str) -> float:
    """Of a run, in a stack of as many like it as there are and fit."""
    key, most = stack_key(spec), min(runs_that_fit(spec, device), MOST_STACKED)
    alike = list(islice((other for other in specs if stack_key(other) == key), most))
    datasets = [other.dataset() for other in alike]
    trainer = make_stacked_engine(alike, datasets, [initial_state(other) for other in alike], device)

    def measure() -> None:
        trainer.evaluate()
        for run in range(len(alike)):
            neuron_spectra(spec.model, trainer.weights(run), spec.task)

    return _timed(trainer, measure, spec.training) / len(alike)


def _timed(trainer: SteppingEngine, measure: Callable[[], None], training: TrainingSpec) -> float:
    """Seconds of all steps and measurements, from one measurement and some steps."""
    trainer.advance(1)  # buffers and caches
    started = time.perf_counter()
    measure()
    measuring = time.perf_counter() - started
    steps, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < SAMPLE_SECONDS or not steps:
        trainer.advance(max(1, steps))
        steps += max(1, steps)
    return elapsed / steps * training.steps + measuring * len(training.measured_steps())


def estimated_bytes(specs: Sequence[RunSpec], *, weights: bool, snapshots: Snapshots = None) -> int:
    """That these runs will take in a store."""
    return sum(_bytes_of(spec, weights=weights) + snapshot_bytes(spec, snapshots) for spec in specs)


def _bytes_of(spec: RunSpec, *, weights: bool) -> int:
    curve = 8 * len(COLUMNS) * len(spec.training.measured_steps())
    spectra = 3 * spec.model.neuron_count * (4 + 4 + 2)  # for each neuron at most three vectors
    network = 4 * spec.model.parameter_count(spec.task) if weights else 0
    return INDEX_BYTES + FILE_BYTES + curve + spectra + network

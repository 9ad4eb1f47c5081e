"""What a worker does: lease runs in the store, go on from their checkpoints, and save the results itself.

worker = Worker(store, Running(), should_stop)
for message in worker.take([(0, spec)]):
    ...
"""

import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby

from grokscope.engines import is_out_of_memory, runs_that_fit
from grokscope.errors import StoreError, in_one_line
from grokscope.extension import explained
from grokscope.measure import Moment, Row
from grokscope.result import Checkpoint, RunResult
from grokscope.snapshots import snapshot_bytes
from grokscope.spec import RunSpec
from grokscope.store import LeaseAnswer, Store
from grokscope.sweeps.executor import Assignment
from grokscope.sweeps.messages import Failed, Finished, Measured, Progress, Started, Stopped, Waiting
from grokscope.sweeps.running import Running
from grokscope.sweeps.tracking import Tracker
from grokscope.training import Job, RunGroup

CHECKPOINT_SECONDS = 30.0
RENEW_SECONDS = 20.0  # well within what a lease lasts
MOST_SNAPSHOT_BYTES = 1 << 31  # of all runs that advance together; their snapshots are in memory until they are saved
REPORT_SECONDS = 0.25  # between two measurements of a run that are reported; nobody looks faster

Said = Iterator[Progress | Stopped]


class _StopRequested(Exception):  # noqa: N818 (not an error)
    """Raised inside runs whose worker was asked to stop, after the checkpoint."""


class Worker:
    """Does the runs that it is given, and says how they go."""

    def __init__(
        self, store: Store, running: Running, should_stop: Callable[[], bool], *, raise_errors: bool = False
    ) -> None:
        """With `raise_errors` an exception in a run is for the caller; otherwise it is stored, and the others go on."""
        self._store, self._running, self._should_stop = store, running, should_stop
        self._engine, self._raise_errors = running.engine_used, raise_errors
        self._leased: list[Assignment] = []
        self._tracker = Tracker(running.track)
        self._unsaid: list[Measured] = []
        self._reported: dict[int, float] = {}  # when a run's measurement was reported last
        self._saved = self._renewed = 0.0

    def take(self, tasks: list[Assignment]) -> Said:
        """Do these runs, as many at once as the engine can. However it ends, no lease is left."""
        at_once, left = self._at_once(tasks[0][1]), tasks
        try:
            while left:
                chosen, left = left[:at_once], left[at_once:]
                starts = yield from self._lease(chosen)
                # Together they have to be at the same step.
                ordered = sorted(self._leased, key=lambda task: _step(starts[task[0]]))
                for _, group in groupby(ordered, key=lambda task: _step(starts[task[0]])):
                    yield from self._run_together(list(group), starts)
        except _StopRequested:
            given_back = [*self._leased, *left]
            self._release_all()
            yield from (Stopped(index) for index, _ in given_back)
        finally:
            self._tracker.close()
            with suppress(StoreError):  # there may be another on its way, which says more
                self._release_all()

    def _at_once(self, spec: RunSpec) -> int:
        if self._engine != "stacked":
            return 1
        try:
            fitting = runs_that_fit(spec.resolved(), self._running.device)
            kept = snapshot_bytes(spec.resolved(), self._running.snapshots)  # of each run, until it is saved
            return max(1, min(fitting, MOST_SNAPSHOT_BYTES // kept)) if kept else fitting
        except Exception:
            return 1  # a user's code that fails fails again when it is trained, and is noted then

    def _lease(self, tasks: list[Assignment]) -> Generator[Progress | Stopped, None, dict[int, Checkpoint | None]]:
        """Ask for these runs; where those that were granted stand."""
        starts: dict[int, Checkpoint | None] = {}
        for index, spec in tasks:
            running, kept = self._running, self._running.snapshots_of(spec)
            match self._store.lease(spec.run_id, weights=running.weights, snapshots=kept, again=running.again):
                case LeaseAnswer.HELD:
                    yield Waiting(index, self._store.holder(spec.run_id) or "another process")
                case LeaseAnswer.DONE if run := self._store.find(spec.run_id):
                    yield Finished(index, run.phase, run.seconds)
                case _:
                    self._leased.append((index, spec))
                    yield Started(index)
                    start = self._store.load_checkpoint(spec)
                    starts[index] = start if start and start.has_snapshots(kept) else None
        self._saved = self._renewed = time.monotonic()
        return starts

    def _release_all(self) -> None:
        while self._leased:
            self._store.release(self._leased.pop()[1].run_id)

    def _run_together(self, tasks: list[Assignment], starts: dict[int, Checkpoint | None]) -> Said:
        try:
            results = yield from self._train(tasks, starts)
        except (_StopRequested, StoreError):
            raise
        except Exception as error:
            if len(tasks) > 1 and is_out_of_memory(error):
                error.__traceback__ = None  # it holds on to the arrays of the stack
                half = len(tasks) // 2
                yield from self._run_together(tasks[:half], starts)
                yield from self._run_together(tasks[half:], starts)
                return
            if self._raise_errors:
                raise
            for index, spec in tasks:
                yield self._failed(index, spec, error)
            return
        for (index, spec), result in zip(tasks, results, strict=True):
            self._store.save(result, weights=self._running.weights)
            self._tracker.end(spec, result.status)
            yield self._answered(Finished(index, result.phase, result.seconds))

    def _train(
        self, tasks: list[Assignment], starts: dict[int, Checkpoint | None]
    ) -> Generator[Progress | Stopped, None, list[RunResult]]:
        # A user's code is imported here, where what goes wrong is a failure of the run.
        jobs = [
            Job(
                spec.resolved(),
                starts[index],
                partial(self._note, index, spec),
                snapshots=self._running.snapshots_of(spec),
            )
            for index, spec in tasks
        ]
        for index, spec in tasks:
            start = starts[index]
            self._tracker.begin(spec, start.curve if start else ())
        group = RunGroup(jobs, engine=self._engine, device=self._running.device)
        for _ in group.train():
            yield from self._news()
            self._keep([spec.run_id for _, spec in tasks], group)
        yield from self._news()
        return group.results()

    def _failed(self, index: int, spec: RunSpec, error: Exception) -> Finished | Failed:
        reason = in_one_line(explained(error))
        self._store.save_failure(spec, reason, "".join(traceback.format_exception(error)))
        self._tracker.end(spec, "failed")
        return self._answered(Failed(index, reason))

    def _answered(self, message: Finished | Failed) -> Finished | Failed:
        self._leased = [task for task in self._leased if task[0] != message.index]
        return message

    def _note(self, index: int, spec: RunSpec, measurement: Row, _: Moment) -> None:
        self._tracker.add(spec, measurement)
        now, before = time.monotonic(), self._reported.get(index, -REPORT_SECONDS)
        if now - before >= REPORT_SECONDS or measurement.step == spec.training.steps:
            self._unsaid.append(Measured(index, measurement))
            self._reported[index] = now

    def _news(self) -> Iterator[Measured]:
        news, self._unsaid = self._unsaid, []
        yield from news

    def _keep(self, run_ids: list[str], group: RunGroup) -> None:
        """Save checkpoints and renew leases where it is time; stop if asked to."""
        now, stopping = time.monotonic(), self._should_stop()
        if stopping or now - self._saved >= CHECKPOINT_SECONDS:
            for i, checkpoint in group.checkpoints().items():
                self._store.save_checkpoint(run_ids[i], checkpoint)
            self._saved = now
        if stopping:
            raise _StopRequested
        if now - self._renewed >= RENEW_SECONDS:
            self._store.renew(*(spec.run_id for _, spec in self._leased))
            self._renewed = now


def _step(start: Checkpoint | None) -> int:
    return start.state.step if start and start.engine == "stacked" else 0

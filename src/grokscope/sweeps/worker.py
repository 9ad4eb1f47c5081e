"""What a worker process does: lease runs in the store, go on from their checkpoints, and save the results itself."""

import ctypes
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from itertools import groupby
from multiprocessing.connection import Connection
from pathlib import Path

from grokscope.engines import is_out_of_memory, runs_that_fit
from grokscope.errors import StoreError
from grokscope.measure import NeuronSpectra, Row
from grokscope.result import Checkpoint, RunResult
from grokscope.spec import RunSpec
from grokscope.store import LeaseAnswer, Store
from grokscope.sweeps.messages import (
    Failed,
    Finished,
    Held,
    Internal,
    Measured,
    Progress,
    Ready,
    Started,
    Stopped,
    StoreBroken,
)
from grokscope.training import Job, execute_together

CHECKPOINT_SECONDS = 30.0
RENEW_SECONDS = 20.0  # well within what a lease lasts
REPORT_SECONDS = 0.25  # between two measurements of a run that are reported; nobody looks faster
PARENTS_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Task = tuple[int, RunSpec]  # a run and its place among all of the sweep


class _StopRequested(Exception):  # noqa: N818 (not an error)
    """Raised inside runs whose worker was asked to stop, after the checkpoint."""


def work(
    pipe: "Connection[object, object]", stop: ctypes.c_bool, store: Path, engine: str, device: str, weights: bool
) -> None:
    """Take lists of runs from the pipe until it is closed."""
    for ignored in PARENTS_SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)  # the parent decides; it asks for a checkpoint first
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        worker = Worker(pipe, stop, Store(store), engine, device, weights)
    except StoreError as error:
        _say(pipe, StoreBroken(str(error)))
        return
    _say(pipe, Ready())
    while True:
        try:
            tasks: list[Task] = pipe.recv()  # type: ignore[assignment]
        except (EOFError, OSError):
            return
        try:
            worker.take(tasks)
        except StoreError as error:
            _say(pipe, StoreBroken(str(error)))


def _say(pipe: "Connection[object, object]", message: Progress | Internal) -> None:
    try:
        pipe.send(message)
    except OSError:
        raise SystemExit(1) from None  # nobody listens any more; that is no failure of the run


def _end_with_parent() -> None:
    """A worker whose parent was killed works for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Worker:
    """Does what it is given, and says how it goes."""

    def __init__(
        self,
        pipe: "Connection[object, object]",
        stop: ctypes.c_bool,
        store: Store,
        engine: str,
        device: str,
        weights: bool,
    ) -> None:
        self._pipe, self._stop, self._store = pipe, stop, store
        self._engine, self._device, self._weights = engine, device, weights
        self._reported: dict[int, float] = {}  # when a run's measurement was reported last
        self._leased: list[Task] = []
        self._saved = self._renewed = 0.0

    def take(self, tasks: list[Task]) -> None:
        """Do these runs, as many at once as the engine can."""
        at_once = runs_that_fit(tasks[0][1], self._device) if self._engine == "stacked" else 1
        for first in range(0, len(tasks), at_once):
            self._lease(tasks[first : first + at_once])
            try:
                # Together they have to be at the same step.
                starts = {index: self._store.load_checkpoint(spec.run_id) for index, spec in self._leased}
                ordered = sorted(self._leased, key=lambda task: _step(starts[task[0]]))
                for _, group in groupby(ordered, key=lambda task: _step(starts[task[0]])):
                    self._run_together(list(group), starts)
            except _StopRequested:
                for index, spec in self._leased:
                    self._store.release(spec.run_id)
                    _say(self._pipe, Stopped(index))
                for index, _ in tasks[first + at_once :]:
                    _say(self._pipe, Stopped(index))
                return

    def _lease(self, tasks: list[Task]) -> None:
        self._leased = []
        for index, spec in tasks:
            match self._store.lease(spec.run_id, weights=self._weights):
                case LeaseAnswer.HELD:
                    _say(self._pipe, Held(index))
                case LeaseAnswer.DONE if run := self._store.find(spec.run_id):
                    _say(self._pipe, Finished(index, run.phase, run.seconds))
                case _:
                    self._leased.append((index, spec))
                    _say(self._pipe, Started(index))
        self._saved = self._renewed = time.monotonic()

    def _run_together(self, tasks: list[Task], starts: dict[int, Checkpoint | None]) -> None:
        try:
            results = self._execute(tasks, starts)
        except (_StopRequested, StoreError):
            raise
        except Exception as error:
            if len(tasks) > 1 and is_out_of_memory(error):
                error.__traceback__ = None  # it holds on to the arrays of the stack
                half = len(tasks) // 2
                self._run_together(tasks[:half], starts)
                self._run_together(tasks[half:], starts)
                return
            reason = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
            for index, spec in tasks:
                self._store.save_failure(spec, reason, traceback.format_exc())
                self._answer(Failed(index, reason))
            return
        for (index, _), result in zip(tasks, results, strict=True):
            self._store.save(result, weights=self._weights)
            self._answer(Finished(index, result.phase, result.seconds))

    def _answer(self, event: Finished | Failed) -> None:
        self._leased = [task for task in self._leased if task[0] != event.index]
        _say(self._pipe, event)

    def _execute(self, tasks: list[Task], starts: dict[int, Checkpoint | None]) -> list[RunResult]:
        jobs = [Job(spec, starts[index], partial(self._report, index, spec)) for index, spec in tasks]
        run_ids = [spec.run_id for _, spec in tasks]
        return execute_together(jobs, engine=self._engine, device=self._device, on_pause=partial(self._keep, run_ids))

    def _report(self, index: int, spec: RunSpec, measurement: Row, _: NeuronSpectra | None) -> None:
        now, before = time.monotonic(), self._reported.get(index, -REPORT_SECONDS)
        if now - before >= REPORT_SECONDS or measurement.step == spec.training.steps:
            _say(self._pipe, Measured(index, measurement))
            self._reported[index] = now

    def _keep(self, run_ids: list[str], checkpoints: Callable[[], dict[int, Checkpoint]]) -> None:
        """Save checkpoints and renew leases where it is time; stop if the parent asks for it."""
        now = time.monotonic()
        if self._stop.value or now - self._saved >= CHECKPOINT_SECONDS:
            for i, checkpoint in checkpoints().items():
                self._store.save_checkpoint(run_ids[i], checkpoint)
            self._saved = now
        if now - self._renewed >= RENEW_SECONDS:
            for _, spec in self._leased:
                self._store.renew(spec.run_id)
            self._renewed = now
        if self._stop.value:
            raise _StopRequested


def _step(start: Checkpoint | None) -> int:
    return start.state.step if start and start.engine == "stacked" else 0

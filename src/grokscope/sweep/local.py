"""Many runs at once in processes of this machine, one thread each.

for event in run_all(specs):
    match event:
        case Measured(index, measurement): ...
        case Finished(index, result): ...
"""

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event

from grokscope.measure import Measurement, NeuronSpectra
from grokscope.result import RunResult
from grokscope.run import execute
from grokscope.spec import RunSpec


@dataclass(frozen=True)
class Measured:
    """A run under way took a measurement."""

    index: int
    measurement: Measurement


@dataclass(frozen=True)
class Finished:
    """A run is done."""

    index: int
    result: RunResult


class _StoppedError(Exception):
    """Raised in a worker when its results are no longer wanted."""


def run_all(
    specs: Sequence[RunSpec], *, workers: int | None = None, engine: str = "auto"
) -> Iterator[Measured | Finished]:
    """Execute all specs, `workers` at a time (one per core if None), and report as they go.

    Results do not depend on the number of workers. A run's exception is raised here. Leaving the loop early, by
    Ctrl-C or otherwise, stops the workers at their next measurement.
    """
    context = multiprocessing.get_context("spawn")
    measurements: Queue[Measured] = context.Queue()
    stop = context.Event()
    with ProcessPoolExecutor(
        max_workers=min(workers or available_cores(), max(len(specs), 1)),
        mp_context=context,
        initializer=_start_worker,
        initargs=(measurements, stop),
    ) as executor:
        pending: dict[Future[RunResult], int] = {
            executor.submit(_run_in_worker, index, spec, engine): index for index, spec in enumerate(specs)
        }
        try:
            while pending:
                done, _ = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                yield from _drain(measurements)
                for future in done:
                    yield Finished(pending.pop(future), future.result())
        finally:
            stop.set()
            executor.shutdown(wait=False, cancel_futures=True)
            # A process does not end before what it has put into a queue is taken out.
            for _ in _drain(measurements):
                pass


def available_cores() -> int:
    """Cores this process may use, which on a shared machine can be fewer than it has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _drain(measurements: "Queue[Measured]") -> Iterator[Measured]:
    while True:
        try:
            yield measurements.get_nowait()
        except queue.Empty:
            return


_measurements: "Queue[Measured]"
_stop: Event


def _start_worker(measurements: "Queue[Measured]", stop: Event) -> None:
    """In each worker: leave Ctrl-C to the parent, do not outlive it, and keep the channels to it."""
    global _measurements, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _measurements, _stop = measurements, stop


def _end_with_parent() -> None:
    """A worker whose parent was killed works for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_in_worker(index: int, spec: RunSpec, engine: str) -> RunResult:
    def report(measurement: Measurement, _: NeuronSpectra) -> None:
        if _stop.is_set():
            raise _StoppedError
        _measurements.put(Measured(index, measurement))

    return execute(spec, engine=engine, on_measurement=report)

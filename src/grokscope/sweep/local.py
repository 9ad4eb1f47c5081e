"""Many runs at once in processes of this machine, one thread each, on a store that survives all of them.

for event in run_all(specs, store):
    match event:
        case Measured(index, measurement): ...
        case Finished(index, phase, seconds): ...
        case Failed(index, error): ...

A worker claims a run in the store, goes on from its checkpoint if there is one, and saves the result itself: what
it has saved is safe whatever happens to this process. Processes that share a store never do the same run twice.
"""

import ctypes
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from grokscope.errors import GrokscopeError, StoreError
from grokscope.measure import Measurement, NeuronSpectra
from grokscope.phases import Phase
from grokscope.result import Checkpoint
from grokscope.run import execute
from grokscope.spec import RunSpec
from grokscope.store import Claim, Store

CHECKPOINT_SECONDS = 30.0
RENEW_SECONDS = 20.0  # well within what a lease lasts
REPORT_SECONDS = 0.25  # between two measurements of a run that are reported; nobody looks faster
MOST_FUTILE_STARTS = 10  # workers in a row that are killed before they have done anything
RETRY_SECONDS = 1.0  # how often to ask for a run that another process holds


_PARENTS_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Started:
    """A worker has taken up a run."""

    index: int


@dataclass(frozen=True)
class Measured:
    """A run took a measurement: the first, the last, and between them not more than a few each second."""

    index: int
    measurement: Measurement


@dataclass(frozen=True)
class Finished:
    """A run is done and stored, here or by another process."""

    index: int
    phase: Phase | None  # None if it diverged
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A run ended with an exception, or its worker was killed. The store has the traceback."""

    index: int
    error: str


@dataclass(frozen=True)
class _Ready:
    """A worker has started."""


@dataclass(frozen=True)
class _Held:
    """Another process is at work on the run."""

    index: int


@dataclass(frozen=True)
class _Stopped:
    """The run was given back, with a checkpoint if there was work to save."""

    index: int


@dataclass(frozen=True)
class _StoreBroken:
    """The store could not be written: nothing that goes on would be kept."""

    error: str


class _StopRequested(Exception):  # noqa: N818 (not an error)
    """Raised inside a run whose worker was asked to stop, after the checkpoint."""


Progress = Started | Measured | Finished | Failed


def run_all(
    specs: Sequence[RunSpec],
    store: Path,
    *,
    workers: int | None = None,
    engine: str = "auto",
    weights: bool = False,
    batches: Iterable[Sequence[int]] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Progress]:
    """Execute all specs, `workers` at a time (one per core if None), and report as they go.

    Results do not depend on the number of workers. Runs that are in the store already are not done again. `batches`
    are places in `specs`: the next batch is asked for when all runs of the one before are done, so it may depend on
    how they ended. Once `should_stop()` is true the runs under way are checkpointed and given back. Leaving the loop
    ends the workers at once, and so does the end of this process, however it comes.
    """
    remaining = iter([range(len(specs))] if batches is None else batches)
    todo = deque(next(remaining, ()))
    if not todo:
        return
    held: deque[tuple[float, int]] = deque()  # when to ask again for which run
    broken: str | None = None
    with _pool(min(workers or available_cores(), max(len(specs), 1)), store, engine, weights) as pool:
        while True:
            stopping = broken is not None or should_stop()
            if stopping:
                pool.stop()
            while held and held[0][0] <= time.monotonic():
                todo.append(held.popleft()[1])
            if not stopping:
                pool.assign(todo, specs)
            if not pool.busy and (stopping or not (todo or held)):
                batch = None if stopping else next(remaining, None)
                if batch is None:
                    break
                todo.extend(batch)
                continue
            for message in pool.messages(timeout=0.2):
                match message:
                    case _Held(index):
                        held.append((time.monotonic() + RETRY_SECONDS, index))
                    case _StoreBroken(error):
                        broken = error
                    case _Stopped():
                        pass
                    case _:
                        yield message
    if broken:
        raise StoreError(broken)


def available_cores() -> int:
    """Cores this process may use, which on a shared machine can be fewer than it has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- the parent's side ----------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: "Connection[object, object]"
    ready: bool = False
    task: tuple[int, RunSpec] | None = None


class _Pool:
    """A fixed number of processes. One that dies is replaced, and its run noted as failed."""

    def __init__(self, size: int, store: Path, engine: str, weights: bool) -> None:
        self._context = multiprocessing.get_context("spawn")
        # Without a lock: a worker that is killed while it holds one would stop all others.
        self._stop = self._context.RawValue(ctypes.c_bool, False)
        self._arguments = (self._stop, store, engine, weights)
        self._store = store
        self._futile_starts = 0  # in a row
        with _for_new_processes():
            self._workers = [self._start() for _ in range(size)]

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, *self._arguments), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def stop(self) -> None:
        self._stop.value = True

    @property
    def busy(self) -> bool:
        return any(worker.task for worker in self._workers)

    def assign(self, todo: deque[int], specs: Sequence[RunSpec]) -> None:
        for worker in self._workers:
            if worker.ready and worker.task is None and todo:
                index = todo.popleft()
                try:
                    worker.pipe.send((index, specs[index]))
                except OSError:  # it was killed; `messages` will see that
                    todo.appendleft(index)
                    worker.ready = False
                else:
                    worker.task = (index, specs[index])

    def messages(self, timeout: float) -> Iterator[Progress | _Held | _Stopped | _StoreBroken]:
        """What the workers have to say, at most `timeout` seconds from now."""
        pipes = {worker.pipe: place for place, worker in enumerate(self._workers)}
        for pipe in wait(list(pipes), timeout):
            place = pipes[pipe]  # type: ignore[index]
            worker = self._workers[place]
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                yield from self._replace(place)
                continue
            if isinstance(message, _Ready):
                worker.ready, self._futile_starts = True, 0
                continue
            if not isinstance(message, Started | Measured):
                worker.task = None
            yield message  # type: ignore[misc]

    def _replace(self, place: int) -> Iterator[Finished | Failed]:
        worker = self._workers[place]
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
        self._futile_starts += not worker.ready
        if not worker.ready and (code > 0 or self._futile_starts > MOST_FUTILE_STARTS):
            raise GrokscopeError(f"a worker process {how}; its own messages, above, say why")
        with _for_new_processes():
            self._workers[place] = self._start()
        if worker.task is None:
            return
        index, spec = worker.task
        store = Store(self._store)
        if run := store.find(spec.run_id):  # it died between saving and saying so
            yield Finished(index, run.phase, run.seconds)
            return
        reason = f"the worker process {how}" + (", as happens when memory runs out" if code == -signal.SIGKILL else "")
        store.save_failure(spec, reason, f"{reason}\n")
        yield Failed(index, reason)

    def close(self) -> None:
        """Idle workers see the end of their pipe; one that is still at work is not waited for."""
        for worker in self._workers:
            worker.pipe.close()
            if worker.task:
                worker.process.kill()
        for worker in self._workers:
            worker.process.join(timeout=10)
            if worker.process.is_alive():
                worker.process.kill()


@contextmanager
def _pool(size: int, store: Path, engine: str, weights: bool) -> Iterator[_Pool]:
    pool = _Pool(size, store, engine, weights)
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def _for_new_processes() -> Iterator[None]:
    """What a process inherits when it starts: one thread, and no ear for signals, which the parent hears for all.

    Libraries read the variables when they are loaded; more threads than cores only wait for each other.
    """
    main = threading.current_thread() is threading.main_thread()  # Python allows no other to set handlers
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _PARENTS_SIGNALS if main}
    wanted = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# ---- the worker's side ----------------------------------------------------------------------------------------------


def _work(pipe: "Connection[object, object]", stop: ctypes.c_bool, store: Path, engine: str, weights: bool) -> None:
    """Take runs from the pipe until it is closed."""
    for ignored in _PARENTS_SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)  # the parent decides; it asks for a checkpoint first
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        opened = Store(store)
    except StoreError as error:
        _say(pipe, _StoreBroken(str(error)))
        return
    _say(pipe, _Ready())
    while True:
        try:
            task: tuple[int, RunSpec] = pipe.recv()  # type: ignore[assignment]
        except (EOFError, OSError):
            return
        index, spec = task
        try:
            _say(pipe, _run_stored(pipe, stop, opened, index, spec, engine, weights))
        except StoreError as error:
            _say(pipe, _StoreBroken(str(error)))


def _say(pipe: "Connection[object, object]", message: object) -> None:
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


def _run_stored(
    pipe: "Connection[object, object]",
    stop: ctypes.c_bool,
    store: Store,
    index: int,
    spec: RunSpec,
    engine: str,
    weights: bool,
) -> Finished | Failed | _Held | _Stopped:
    """One run from claim to save."""
    match store.claim(spec.run_id):
        case Claim.HELD:
            return _Held(index)
        case Claim.DONE if run := store.find(spec.run_id):
            return Finished(index, run.phase, run.seconds)
    _say(pipe, Started(index))
    saved = renewed = time.monotonic()
    reported = -REPORT_SECONDS

    def keep(checkpoint: Callable[[], Checkpoint]) -> None:
        nonlocal saved, renewed
        now = time.monotonic()
        if stop.value or now - saved >= CHECKPOINT_SECONDS:
            store.save_checkpoint(spec.run_id, checkpoint())
            saved = now
        if now - renewed >= RENEW_SECONDS:
            store.renew(spec.run_id)
            renewed = now
        if stop.value:
            raise _StopRequested

    def report(measurement: Measurement, _: NeuronSpectra) -> None:
        nonlocal reported
        if time.monotonic() - reported >= REPORT_SECONDS or measurement.step == spec.training.steps:
            _say(pipe, Measured(index, measurement))
            reported = time.monotonic()

    try:
        start = store.load_checkpoint(spec.run_id)
        result = execute(spec, engine=engine, on_measurement=report, start=start, on_pause=keep)
    except _StopRequested:
        store.release(spec.run_id)
        return _Stopped(index)
    except StoreError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        store.save_failure(spec, " ".join(reason.split()), traceback.format_exc())
        return Failed(index, reason)
    store.save(result, weights=weights)
    return Finished(index, result.phase, result.seconds)

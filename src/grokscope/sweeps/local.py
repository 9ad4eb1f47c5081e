"""Many runs at once in processes of this machine, one thread each, on a store that survives all of them.

for event in run_all(specs, store):
    match event:
        case Measured(index, measurement): ...
        case Finished(index, phase, seconds): ...
        case Failed(index, error): ...

A worker leases a run in the store, goes on from its checkpoint if there is one, and saves the result itself: what
it has saved is safe whatever happens to this process. Processes that share a store never do the same run twice.
"""

import ctypes
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from grokscope.engines import stack_key
from grokscope.errors import GrokscopeError, StoreError
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps.messages import Failed, Finished, Held, Progress, Ready, Started, Stopped, StoreBroken
from grokscope.sweeps.worker import PARENTS_SIGNALS, work

MOST_FUTILE_STARTS = 10  # workers in a row that are killed before they have done anything
RETRY_SECONDS = 1.0  # how often to ask for a run that another process holds
MOST_STACKED = 256  # runs that a worker with the stacked engine is given together


def run_all(
    specs: Sequence[RunSpec],
    store: Path,
    *,
    workers: int | None = None,
    engine: str = "auto",
    device: str = "cpu",
    weights: bool = False,
    batches: Iterable[Sequence[int]] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Progress]:
    """Execute all specs, `workers` at a time (by default one per core), and report as they go.

    On a device other than the CPU one worker advances as many runs together as have the same shape and fit into
    the device's memory: the engine is then "stacked" unless another one is named.

    Results do not depend on the number of workers. Runs that are in the store already are not done again. `batches`
    are places in `specs`: the next batch is asked for when all runs of the one before are done, so it may depend on
    how they ended. Once `should_stop()` is true the runs under way are checkpointed and given back. Leaving the loop
    ends the workers at once, and so does the end of this process, however it comes.
    """
    engine = sweep_engine(engine, device)
    most = workers or (1 if engine == "stacked" else available_cores())
    remaining = iter([range(len(specs))] if batches is None else batches)
    todo = deque(next(remaining, ()))
    if not todo:
        return
    held: deque[tuple[float, int]] = deque()  # when to ask again for which run
    broken: str | None = None
    with _pool(min(most, max(len(specs), 1)), store, engine, device, weights) as pool:
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
                    case Held(index):
                        held.append((time.monotonic() + RETRY_SECONDS, index))
                    case StoreBroken(error):
                        broken = error
                    case Stopped():
                        pass
                    case _:
                        yield message
    if broken:
        raise StoreError(broken)


def sweep_engine(engine: str, device: str) -> str:
    """The engine that a sweep uses on this device."""
    return "stacked" if engine == "auto" and device != "cpu" else engine


def available_cores() -> int:
    """Cores this process may use, which on a shared machine can be fewer than it has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: "Connection[object, object]"
    ready: bool = False
    tasks: dict[int, RunSpec] = field(default_factory=dict)  # that it was given and has not answered
    started: set[int] = field(default_factory=set)  # of these, those that it is at work on


class _Pool:
    """A fixed number of processes. One that dies is replaced, and its run noted as failed."""

    def __init__(self, size: int, store: Path, engine: str, device: str, weights: bool) -> None:
        self._context = multiprocessing.get_context("spawn")
        # Without a lock: a worker that is killed while it holds one would stop all others.
        self._stop = self._context.RawValue(ctypes.c_bool, False)
        self._arguments = (self._stop, store, engine, device, weights)
        self._store, self._engine, self._weights = store, engine, weights
        self._futile_starts = 0  # in a row
        with _for_new_processes():
            self._workers = [self._start() for _ in range(size)]

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=work, args=(theirs, *self._arguments), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def stop(self) -> None:
        self._stop.value = True

    @property
    def busy(self) -> bool:
        return any(worker.tasks for worker in self._workers)

    def assign(self, todo: deque[int], specs: Sequence[RunSpec]) -> None:
        for worker in self._workers:
            if worker.ready and not worker.tasks and todo:
                chosen = self._choose(todo, specs)
                try:
                    worker.pipe.send([(index, specs[index]) for index in chosen])
                except OSError:  # it was killed; `messages` will see that
                    worker.ready = False
                else:
                    worker.tasks, worker.started = {index: specs[index] for index in chosen}, set()
                    for index in chosen:
                        todo.remove(index)

    def _choose(self, todo: deque[int], specs: Sequence[RunSpec]) -> list[int]:
        """The next run, and with the stacked engine those soon after it that can advance together with it."""
        if self._engine != "stacked":
            return [todo[0]]
        key = stack_key(specs[todo[0]])
        near = islice(todo, 4 * MOST_STACKED)
        return [index for index in near if stack_key(specs[index]) == key][:MOST_STACKED]

    def messages(self, timeout: float) -> Iterator[Progress | Held | Stopped | StoreBroken]:
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
            match message:
                case Ready():
                    worker.ready, self._futile_starts = True, 0
                    continue
                case Started(index):
                    worker.started.add(index)
                case Finished(index) | Failed(index) | Held(index) | Stopped(index):
                    del worker.tasks[index]
                case StoreBroken():
                    worker.tasks = {}
            yield message  # type: ignore[misc]

    def _replace(self, place: int) -> Iterator[Finished | Failed | Held]:
        worker = self._workers[place]
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
        self._futile_starts += not worker.ready
        if not worker.ready and (code > 0 or self._futile_starts > MOST_FUTILE_STARTS):
            raise GrokscopeError(f"a worker process {how}; its own messages, above, say why")
        with _for_new_processes():
            self._workers[place] = self._start()
        reason = f"the worker process {how}" + (", as happens when memory runs out" if code == -signal.SIGKILL else "")
        store = Store(self._store)
        to_do = set(store.without_weights(spec.run_id for spec in worker.tasks.values())) if self._weights else set()
        for index, spec in worker.tasks.items():
            run = store.find(spec.run_id)
            if run and spec.run_id not in to_do:  # it died between saving and saying so
                yield Finished(index, run.phase, run.seconds)
            elif index in worker.started:
                store.save_failure(spec, reason, f"{reason}\n")
                yield Failed(index, reason)
            else:
                yield Held(index)  # by nobody now; it is asked for again

    def close(self) -> None:
        """Idle workers see the end of their pipe; one that is still at work is not waited for."""
        for worker in self._workers:
            worker.pipe.close()
            if worker.tasks:
                worker.process.kill()
        for worker in self._workers:
            worker.process.join(timeout=10)
            if worker.process.is_alive():
                worker.process.kill()


@contextmanager
def _pool(size: int, store: Path, engine: str, device: str, weights: bool) -> Iterator[_Pool]:
    pool = _Pool(size, store, engine, device, weights)
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
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in PARENTS_SIGNALS if main}
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

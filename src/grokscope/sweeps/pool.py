"""Worker processes of this machine, one thread each, on a store that survives all of them.

A worker leases a run in the store, goes on from its checkpoint if there is one, and saves the result itself: what
it has saved is safe whatever happens to this process. Processes that share a store never do the same run twice.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from grokscope.errors import GrokscopeError, StoreError, in_one_line
from grokscope.notes import note
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps.executor import Assignment, Choose
from grokscope.sweeps.messages import (
    Failed,
    Finished,
    Internal,
    LastWords,
    Progress,
    Ready,
    Started,
    Stopped,
    StoreBroken,
    Unstarted,
    Waiting,
)
from grokscope.sweeps.running import Running
from grokscope.sweeps.stopping import STOPPING
from grokscope.sweeps.worker import Worker

MOST_FUTILE_STARTS = 6  # workers in a row that end before they have begun with a run
MOST_ATTEMPTS = 3  # at a run before which worker after worker ends


def work(pipe: "Connection[object, object]", stop: ctypes.c_bool, store: Path, running: Running) -> None:
    """What a process does: take lists of runs from the pipe until it is closed."""
    for ignored in STOPPING:
        signal.signal(ignored, signal.SIG_IGN)  # the parent decides; it asks for a checkpoint first
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _work(pipe, Worker(Store(store, create=False), running, lambda: stop.value))
    except StoreError as error:
        _say(pipe, StoreBroken(str(error)))
    except Exception:
        _say(pipe, LastWords(traceback.format_exc()))
        raise SystemExit(1) from None


def _work(pipe: "Connection[object, object]", worker: Worker) -> None:
    _say(pipe, Ready())
    while True:
        try:
            tasks: list[Assignment] = pipe.recv()  # type: ignore[assignment]
        except (EOFError, OSError):
            return
        try:
            for message in worker.take(tasks):
                _say(pipe, message)
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


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    pipe: "Connection[object, object]"
    before: int = 0  # workers in a row that died in its place before they were ready
    ready: bool = False
    last_words: str = ""  # the traceback of what ends it
    tasks: dict[int, RunSpec] = field(default_factory=dict)  # that it was given and has not answered
    started: set[int] = field(default_factory=set)  # of these, those that it is at work on


class Pool:
    """As many processes as there is work for. One that dies is replaced, and its run noted as failed."""

    def __init__(self, running: Running, store: Path) -> None:
        self._context = multiprocessing.get_context("spawn")
        # Without a lock: a worker that is killed while it holds one would stop all others.
        self._stop = self._context.RawValue(ctypes.c_bool, False)
        self._arguments = (self._stop, store, running)
        self._store, self._running = store, running
        self._futile_starts = 0  # in a row
        self._attempts: Counter[int] = Counter()  # at runs that no worker has begun with
        self._workers: list[_Worker] = []

    def prepare(self, pieces: int) -> None:
        """Start the processes that so many pieces of work can use."""
        with _for_new_processes():
            while len(self._workers) < min(pieces, self._running.processes):
                self._workers.append(self._start())

    def _start(self, before: int = 0) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=work, args=(theirs, *self._arguments), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, before)

    def stop(self) -> None:
        """Ask all workers to checkpoint their runs and to give them back."""
        self._stop.value = True

    @property
    def busy(self) -> bool:
        """Whether a worker has runs that it has not answered for."""
        return any(worker.tasks for worker in self._workers)

    def assign(self, choose: Choose) -> None:
        """Give every idle worker what `choose` returns, as long as it returns something."""
        for worker in self._workers:
            if worker.ready and not worker.tasks and (chosen := choose(self._running.at_once)):
                worker.tasks, worker.started = dict(chosen), set()
                with suppress(OSError):  # it was killed; `messages` will see that, and give back what it had
                    worker.pipe.send(chosen)

    def messages(self, timeout: float) -> Iterator[Progress | Internal]:
        """What the workers have to say, at most `timeout` seconds from now."""
        workers = {worker.pipe: worker for worker in self._workers}
        for pipe in wait(list(workers), timeout):
            worker = workers[pipe]  # type: ignore[index]
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                yield from self._replace(worker)
                continue
            match message:
                case Ready():
                    worker.ready = True
                    continue
                case LastWords(trace):
                    worker.last_words = trace
                    continue
                case Started(index):
                    worker.started.add(index)
                    self._futile_starts = 0
                case Finished(index) | Failed(index) | Waiting(index) | Stopped(index):
                    del worker.tasks[index]
                case StoreBroken():
                    worker.tasks = {}
            yield message  # type: ignore[misc]

    def _replace(self, worker: _Worker) -> Iterator[Finished | Failed | Unstarted]:
        worker.process.join()
        self._workers.remove(worker)
        code = worker.process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
        why = _last_line(worker.last_words)
        self._futile_starts += not worker.started
        if self._futile_starts > MOST_FUTILE_STARTS:
            if worker.last_words:
                note(worker.last_words.rstrip())
            raise GrokscopeError(
                f"a worker process {how}, as did {MOST_FUTILE_STARTS} before it, and none has begun with a run: "
                + (why or "their own messages, above, say why")
            )
        before = 0 if worker.ready else worker.before + 1
        if before < MOST_FUTILE_STARTS or not self._workers:  # else there may be room for the others only
            with _for_new_processes():
                self._workers.append(self._start(before))
        reason = f"the worker process {how}" + (", as happens when memory runs out" if code == -signal.SIGKILL else "")
        reason += f": {why}" if why else ""
        store = Store(self._store, create=False)
        to_do = self._running.lacking(store, worker.tasks.values())
        for index, spec in worker.tasks.items():
            run = store.find(spec.run_id)
            if run and spec.run_id not in to_do and not self._running.again:  # it died between saving and saying so
                yield Finished(index, run.phase, run.seconds)
            elif index in worker.started or self._attempts[index] + 1 >= MOST_ATTEMPTS:
                store.save_failure(spec, reason, worker.last_words or f"{reason}\n")
                yield Failed(index, reason)
            else:
                self._attempts[index] += 1
                yield Unstarted(index)

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


def _last_line(trace: str) -> str:
    """The line of a traceback that names the error, short."""
    return in_one_line(trace.rstrip().rpartition("\n")[2])


@contextmanager
def _for_new_processes() -> Iterator[None]:
    """Prepare what a worker process inherits: one thread, ignored signals, and an empty `__main__`.

    Libraries read the variables when they are loaded; more threads than cores only wait for each other. The parent
    handles signals for all. A spawned process imports the parent's `__main__` again. Workers need nothing of it, and a
    script without `if __name__ == "__main__"` would start itself for ever.
    """
    main = threading.current_thread() is threading.main_thread()  # Python allows no other to set handlers
    resource_tracker.ensure_running()  # which unblocks signals when it starts
    # A Ctrl-C that comes while they are ignored would be lost: blocked, it waits until the handlers are back.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING if main else ())
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING if main}
    wanted = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    program = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

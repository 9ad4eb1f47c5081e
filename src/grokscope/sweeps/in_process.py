"""A worker without a process of its own, for a single run, and for a debugger: an exception comes out as it is."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from grokscope.store import Store
from grokscope.sweeps.executor import Assignment, Choose
from grokscope.sweeps.messages import Progress, Stopped
from grokscope.sweeps.running import Running
from grokscope.sweeps.worker import Worker


class InProcess:
    """Does one run, or one stack of them, after the other in this thread."""

    def __init__(self, store: Path, running: Running, should_stop: Callable[[], bool]) -> None:
        self._store = Store(store, create=False)
        self._worker = Worker(self._store, running, should_stop, raise_errors=True)
        self._at_once = running.at_once
        self._tasks: list[Assignment] = []

    @property
    def busy(self) -> bool:
        """Whether there are runs that `messages` has not done yet."""
        return bool(self._tasks)

    def prepare(self, pieces: int) -> None:
        """Nothing: it does one piece after the other."""

    def assign(self, choose: Choose) -> None:
        """Take what `choose` returns."""
        self._tasks = self._tasks or choose(self._at_once)

    def messages(self, timeout: float) -> Iterator[Progress | Stopped]:
        """Do the runs; without any, wait."""
        tasks, self._tasks = self._tasks, []
        if not tasks:
            time.sleep(timeout)
        yield from self._worker.take(tasks) if tasks else ()

    def stop(self) -> None:
        """Nothing to pass on: the worker asks by itself."""

    def close(self) -> None:
        """Close the store."""
        self._store.close()

"""Many runs, divided up among whoever does them: this process, processes of this machine, or a cluster.

for event in run_all(specs, store):
    match event:
        case Measured(index, measurement): ...
        case Finished(index, phase, seconds): ...
        case Failed(index, error): ...
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

from grokscope.engines import stack_key
from grokscope.errors import StoreError
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps.executor import Assignment, Executor
from grokscope.sweeps.in_process import InProcess
from grokscope.sweeps.messages import (
    LastWords,
    Progress,
    Ready,
    StillWaiting,
    Stopped,
    StoreBroken,
    Unstarted,
    Waiting,
)
from grokscope.sweeps.pool import Pool
from grokscope.sweeps.running import Running

RETRY_SECONDS = 1.0  # how often to ask for a run that another process holds
REMIND_SECONDS = 10.0  # of nothing but waiting, before that is said again; then after twice as long, and so on


def run_all(
    specs: Iterable[RunSpec],
    store: Path | str,
    running: Running = Running(),  # noqa: B008 (it is frozen)
    *,
    batches: Iterable[Sequence[int]] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Generator[Progress, None, None]:
    """Execute all specs and report as they go.

    Results do not depend on the number of workers. Runs that are in the store already are not done again. `batches`
    are places in `specs`: the next batch is asked for when all runs of the one before are done, so it may depend on
    how they ended. Once `should_stop()` is true the runs under way are checkpointed and given back. Closing the
    generator ends the workers at once, and so does the end of this process, however it comes. Nothing is written down
    about a sweep; `phase_diagram(store, plan)` shows the runs of a plan all the same.
    """
    specs, store = list(specs), Path(store)
    remaining = iter([range(len(specs))] if batches is None else batches)
    todo = deque(next(remaining, ()))
    if not todo:
        return
    Store(store, create=True).close()  # made here, once: whoever opens it later must find it
    held: deque[tuple[float, int]] = deque()  # when to ask again for which run
    waits = _Waits()
    broken: str | None = None
    with closing(_executor(running, store, should_stop)) as executor:
        executor.prepare(_pieces(todo, specs, running.at_once))
        while True:
            stopping = broken is not None or should_stop()
            if stopping:
                executor.stop()
            while held and held[0][0] <= time.monotonic():
                todo.append(held.popleft()[1])
            if not stopping:
                executor.assign(partial(_next_tasks, todo, specs))
            if not executor.busy and (stopping or not (todo or held)):
                batch = None if stopping else next(remaining, None)
                if batch is None:
                    break
                todo.extend(batch)
                executor.prepare(_pieces(todo, specs, running.at_once))
                continue
            yield from waits.reminders()
            for message in executor.messages(timeout=0.2):
                match message:
                    case Waiting(index):
                        held.append((time.monotonic() + RETRY_SECONDS, index))
                        if waits.are_news(message):
                            yield message
                    case StoreBroken(error):
                        broken = error
                    case Unstarted(index):
                        todo.append(index)
                    case Stopped() | Ready() | LastWords():
                        pass
                    case _:
                        waits.end(message)
                        yield message
    if broken:
        raise StoreError(broken)


class _Waits:
    """Which runs wait for whom, and when that is worth saying."""

    def __init__(self) -> None:
        self._announced: set[Waiting] = set()
        self._owners: dict[int, str] = {}  # of the runs that wait now
        self._quiet_since, self._patience = time.monotonic(), REMIND_SECONDS

    def are_news(self, message: Waiting) -> bool:
        """Take note of a run that has to wait; whether that was not said before."""
        self._owners[message.index] = message.owner
        new = message not in self._announced
        self._announced.add(message)
        return new

    def end(self, message: Progress) -> None:
        """Take note of something else that has happened."""
        if not isinstance(message, StillWaiting):
            self._owners.pop(message.index, None)
        self._quiet_since, self._patience = time.monotonic(), REMIND_SECONDS

    def reminders(self) -> Iterator[StillWaiting]:
        """What there is to say of a long silence."""
        seconds = time.monotonic() - self._quiet_since
        if self._owners and seconds >= self._patience:
            self._patience *= 2
            yield StillWaiting(tuple(sorted(set(self._owners.values()))), len(self._owners), seconds)


def _executor(running: Running, store: Path, should_stop: Callable[[], bool]) -> Executor:
    if running.cluster is not None:
        return running.cluster.executor(store, running)
    return Pool(running, store) if running.processes else InProcess(store, running, should_stop)


def _pieces(todo: Iterable[int], specs: Sequence[RunSpec], at_once: int) -> int:
    """Into how many parts the work can be divided: runs, or stacks of runs."""
    if at_once == 1:
        return len(list(todo))
    alike = Counter(stack_key(specs[index]) for index in todo)
    return sum(-(-count // at_once) for count in alike.values())


def _next_tasks(todo: deque[int], specs: Sequence[RunSpec], at_once: int) -> list[Assignment]:
    """The next run, and with `at_once` above 1 those soon after it that can advance together with it."""
    if not todo:
        return []
    if at_once == 1:
        chosen = [todo[0]]
    else:
        key = stack_key(specs[todo[0]])
        near = islice(todo, 4 * at_once)
        chosen = [index for index in near if stack_key(specs[index]) == key][:at_once]
    for index in chosen:
        todo.remove(index)
    return [(index, specs[index]) for index in chosen]

"""Where runs are done: in this process, in processes of this machine, or on a cluster.

with closing(Pool(running, store)) as executor:
    executor.assign(choose)
    for message in executor.messages(timeout=0.2):
        ...

`InProcess`, `Pool` and, in `grokscope.cluster`, `DaskExecutor` are executors. `dispatch.py` divides up the work without
knowing which of them it is.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from grokscope.spec import RunSpec
from grokscope.sweeps.messages import Internal, Progress

if TYPE_CHECKING:
    from grokscope.sweeps.running import Running

Assignment = tuple[int, RunSpec]  # a run and its place among all of the sweep
Choose = Callable[[int], list[Assignment]]  # the next runs, at most so many, all of which can advance together


class Executor(Protocol):
    """What all executors can do."""

    @property
    def busy(self) -> bool:
        """Whether runs are under way."""

    def prepare(self, pieces: int) -> None:
        """Expect so many pieces of work that can be done side by side."""

    def assign(self, choose: Choose) -> None:
        """Take what `choose` returns, as often as there is somebody idle."""

    def messages(self, timeout: float) -> Iterator[Progress | Internal]:
        """What there is to say; waits for it at most `timeout` seconds."""

    def stop(self) -> None:
        """Checkpoint the runs under way and give them back."""

    def close(self) -> None:
        """End at once."""


class Cluster(Protocol):
    """Machines that runs are done on, beside this one."""

    def slots(self, device: str) -> int:
        """How many runs, or stacks of runs, are done at the same time on machines that have this device."""

    def check(self, specs: Iterable[RunSpec]) -> None:
        """Refuse runs that cannot be done there."""

    def connect(self) -> None:
        """Ask for the machines now; an error if nobody answers."""

    def executor(self, store: Path, running: "Running") -> Executor:
        """An executor on them; the machines are asked for when the first one is needed."""

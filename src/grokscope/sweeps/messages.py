"""What workers report: to whoever follows a sweep, and to the process that divides up the work."""

from dataclasses import dataclass

from grokscope.measure import Row
from grokscope.phases import Phase


@dataclass(frozen=True)
class Started:
    """A worker has taken up a run."""

    index: int


@dataclass(frozen=True)
class Measured:
    """A run took a measurement: the first, the last, and at most a few a second in between."""

    index: int
    measurement: Row


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
class Waiting:
    """The run has to wait: another process is working on it."""

    index: int
    owner: str  # that process, in words


@dataclass(frozen=True)
class StillWaiting:
    """For a long time nothing has happened but waiting."""

    owners: tuple[str, ...]  # the processes that have the runs, in words
    runs: int
    seconds: float

    def __str__(self) -> str:
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return (
            f"Waiting for {', '.join(self.owners)}, with {runs}, for {self.seconds:.0f} s now. "
            "A run is free as soon as its process ends."
        )


@dataclass(frozen=True)
class Expected:
    """More runs are going to be done: in a refined sweep that shows only on the way."""

    places: tuple[int, ...]


Progress = Started | Measured | Finished | Failed | Waiting | StillWaiting


@dataclass(frozen=True)
class Ready:
    """A worker process has come up."""


@dataclass(frozen=True)
class Stopped:
    """The run was given back, with a checkpoint if there was work to save."""

    index: int


@dataclass(frozen=True)
class Unstarted:
    """A worker process died before it began with the run, which has to be done by another."""

    index: int


@dataclass(frozen=True)
class StoreBroken:
    """The store could not be written: nothing that goes on would be kept."""

    error: str


@dataclass(frozen=True)
class LastWords:
    """Why a worker process ends that should not: an error that belongs to no run."""

    traceback: str


Internal = Ready | Stopped | Unstarted | StoreBroken | LastWords

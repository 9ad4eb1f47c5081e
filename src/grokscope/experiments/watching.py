"""Who watches long work: is told how it goes, and may ask it to stop."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from grokscope.spec import RunSpec
from grokscope.store import CellOutcome
from grokscope.sweeps import Failed, Finished
from grokscope.sweeps.messages import Progress
from grokscope.sweeps.plan import Plan


class Display(Protocol):
    """Shows some runs while they are done."""

    def expect(self, places: Sequence[int]) -> None:
        """These runs are next."""

    def update(self, event: Progress) -> None:
        """Something happened to one of them."""


class Watcher(Protocol):
    """The command line has one that draws in the terminal; Python functions use `Lines`."""

    def say(self, message: str) -> None:
        """What comes next, or what the reader should know."""

    def saved(self, path: Path) -> None:
        """A picture was written."""

    def checking(self, claim_id: str, place: int, count: int) -> None:
        """A claim is about to be measured."""

    def networks(self, specs: Sequence[RunSpec], names: Sequence[str]) -> AbstractContextManager[Display]:
        """Single networks are about to be trained."""

    def diagram(
        self, plan: Plan, specs: Sequence[RunSpec], cells: Sequence[CellOutcome]
    ) -> AbstractContextManager[Display]:
        """The cells of a diagram are about to be run."""

    def stopping(self) -> AbstractContextManager[Callable[[], bool]]:
        """While it is open, its function says whether the work should stop."""


class Lines:
    """A line on standard error for every network, and for every tenth of a diagram."""

    def say(self, message: str) -> None:
        """As it is."""
        sys.stderr.write(f"{message}\n")

    def saved(self, path: Path) -> None:
        """Its path."""
        self.say(f"Figure: {path}")

    def checking(self, claim_id: str, place: int, count: int) -> None:
        """Nothing: most claims take less than a second."""

    @contextmanager
    def networks(self, specs: Sequence[RunSpec], names: Sequence[str]) -> Iterator[Display]:
        """A line for each that is done."""
        yield _Counting(self, every=1)

    @contextmanager
    def diagram(self, plan: Plan, specs: Sequence[RunSpec], cells: Sequence[CellOutcome]) -> Iterator[Display]:
        """A line for each tenth."""
        yield _Counting(self, every=max(1, len(specs) // 10))

    @contextmanager
    def stopping(self) -> Iterator[Callable[[], bool]]:
        """Never: Ctrl-C raises KeyboardInterrupt, and the runs under way go on from their last checkpoints."""
        yield lambda: False


class _Counting:
    def __init__(self, lines: Lines, every: int) -> None:
        self._lines, self._every, self._expected, self._done = lines, every, 0, 0

    def expect(self, places: Sequence[int]) -> None:
        self._expected += len(places)

    def update(self, event: Progress) -> None:
        match event:
            case Failed(_, error):
                self._done += 1
                self._lines.say(f"FAILED: {error}")
            case Finished():
                self._done += 1
                if self._done % self._every == 0 or self._done == self._expected:
                    self._lines.say(f"{self._done} of {self._expected} runs done")

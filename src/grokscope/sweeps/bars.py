"""Progress on standard error: bars in a terminal, a line now and then in a log."""

from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grokscope.measure import Row
from grokscope.notes import note, shows_bars
from grokscope.spec import RunSpec
from grokscope.sweeps.messages import Expected, Failed, Finished, Measured, StillWaiting, Waiting
from grokscope.sweeps.messages import Progress as Event

_LOG_LINES = 10  # per run, without a terminal
_MANY = 8  # with more runs, only those under way have a bar, and a log has a line only when a run ends


class RunsProgress:
    """Bars for several runs at once."""

    def __init__(self, specs: list[RunSpec], names: list[str], *, hidden: bool = False) -> None:
        """With `hidden`, a bar appears only when something is shown in it."""
        self._specs, self._names = specs, names
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[accuracies]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not shows_bars(),
        )
        self._tasks = [
            self._bars.add_task(
                name, total=spec.training.steps, accuracies="", visible=len(specs) <= _MANY and not hidden
            )
            for spec, name in zip(specs, names, strict=True)
        ]
        self._logged = [0] * len(specs)
        self._done = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # the terminal may be closed
            self._bars.stop()

    def show(self, event: Event | Expected) -> None:
        """Show what a worker reports."""
        match event:
            case Measured(index, measurement):
                self.update(index, measurement)
            case Finished(index, phase, seconds):
                self.finish(index, f"{phase.label if phase else 'Diverged'} ({seconds:.1f} s)")
            case Failed(index, error):
                self.finish(index, f"FAILED: {error}")
            case Waiting(index, owner):
                note(f"{self._names[index]} is being trained by {owner}: waiting for it.")
            case StillWaiting():
                note(str(event))

    def update(self, index: int, row: Row) -> None:
        """Show the newest measurement of a run."""
        accuracies = f"train {row.train_accuracy:4.0%} test {row.test_accuracy:4.0%}"
        if not self._bars.disable:
            self._bars.update(self._tasks[index], completed=row.step, accuracies=accuracies, visible=True)
            return
        if len(self._specs) > _MANY:
            return
        steps = self._specs[index].training.steps
        tenth = _LOG_LINES * row.step // steps
        if tenth > self._logged[index]:
            self._logged[index] = tenth
            note(f"{self._names[index]}: step {row.step} of {steps}, {accuracies}")

    def finish(self, index: int, how: str) -> None:
        """Say how a run ended."""
        self._done += 1
        line = f"{self._done} of {len(self._specs)}: {self._names[index]}: {how}"
        if self._bars.disable:
            note(line)
            return
        self._bars.update(self._tasks[index], visible=len(self._specs) <= _MANY)
        with suppress(OSError):
            self._bars.console.print(line, highlight=False, soft_wrap=True)

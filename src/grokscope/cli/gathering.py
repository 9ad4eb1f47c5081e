"""What `figure`, `reproduce` and `claims` share: their options, and the display of long work in a terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grokscope.cli.options import note
from grokscope.cli.progress import RunsProgress
from grokscope.cli.running import FEWER_WITH_REFINE
from grokscope.experiments.gathering import StoppedError, Work, jobs
from grokscope.experiments.watching import Display
from grokscope.spec import RunSpec
from grokscope.store import CellOutcome
from grokscope.sweeps import Failed, Finished, Measured
from grokscope.sweeps.display import SweepDisplay, duration
from grokscope.sweeps.messages import Progress
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.stopping import stop_on_request

_HOW_MUCH = "How much"
ScaleOption = Annotated[
    str,
    typer.Option(
        "--scale",
        help="quick (coarse grids of smaller networks, one seed), mixed (quick, but single networks have the paper's "
        "size), paper (its grids, steps and seeds), best (the largest scale that is complete in the store, or quick), "
        "or tiny (a toy, to try the commands).",
        rich_help_panel=_HOW_MUCH,
    ),
]
GridOption = Annotated[
    str | None,
    typer.Option("--grid", metavar="AxB", help="At most A data fractions × B corruptions.", rich_help_panel=_HOW_MUCH),
]
SeedsOption = Annotated[
    int | None, typer.Option("--seeds", min=1, help="At most this many seeds.", rich_help_panel=_HOW_MUCH)
]
RefineOption = Annotated[
    bool,
    typer.Option("--refine", help="Run only cells near a phase boundary; infer the others.", rich_help_panel=_HOW_MUCH),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be run, and how long it takes.")]


def describe_work(work: Work) -> None:
    """Print what would be run, and how long it would take."""
    total = size = 0.0
    found = jobs(work)
    for job in found:
        total += job.seconds
        size += job.size
        known = f"{job.done} in the store"
        if job.inferred:
            known += f", {job.inferred} inferred"
        if job.shared:
            known += f", {job.shared} in lines above"
        took = f", about {duration(job.seconds)}" if job.to_do else ""
        typer.echo(f"{job.name:20} {job.runs:5} runs, {known}, {job.to_do} to do{took}")
    typer.echo(f"In all about {duration(total)} with {work.running.processes} workers, and {size / 1e6:.3g} MB")
    if work.amount.refine and any(job.diagram and job.to_do + job.shared for job in found):
        typer.echo(FEWER_WITH_REFINE)


class Terminal:
    """Watches long work for the person at the terminal: bars and diagrams that fill in, or lines in a log."""

    def say(self, message: str) -> None:
        """On standard error."""
        note(message)

    def saved(self, path: Path) -> None:
        """On standard output."""
        typer.echo(f"Figure: {path}")

    def checking(self, claim_id: str, place: int, count: int) -> None:
        """Only where somebody waits."""
        if Console(stderr=True).is_terminal:
            note(f"Checking {claim_id} ({place} of {count})")

    @contextmanager
    def networks(self, specs: Sequence[RunSpec], names: Sequence[str]) -> Iterator[Display]:
        """A bar for each."""
        with RunsProgress(list(specs), list(names)) as progress:
            yield _Bars(progress)

    def diagram(
        self, plan: Plan, specs: Sequence[RunSpec], cells: Sequence[CellOutcome]
    ) -> AbstractContextManager[Display]:
        """The diagram as it fills in."""
        return SweepDisplay(plan, specs, cells)

    def stopping(self) -> AbstractContextManager[Callable[[], bool]]:
        """At the first Ctrl-C."""
        return stop_on_request()


class _Bars:
    def __init__(self, progress: RunsProgress) -> None:
        self._progress = progress

    def expect(self, places: Sequence[int]) -> None:
        """The bars are there already."""

    def update(self, event: Progress) -> None:
        match event:
            case Measured(index, measurement):
                self._progress.update(index, measurement)
            case Finished(index, phase, seconds):
                self._progress.finish(index, f"{phase.label if phase else 'Diverged'} ({seconds:.1f} s)")
            case Failed(index, error):
                self._progress.finish(index, f"FAILED: {error}")


@contextmanager
def ending_when_stopped() -> Iterator[None]:
    """End the program if the work in here was asked to stop."""
    try:
        yield
    except StoppedError:
        note("Stopped. The same command goes on.")
        sys.exit(130)

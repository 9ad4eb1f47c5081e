"""What `figure`, `reproduce` and `claims` share: their options, and the display of long work in a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from grokscope.cli.options import note, store_flag
from grokscope.cli.running import FEWER_WITH_REFINE, workers_in_words
from grokscope.errors import FailedRunsError
from grokscope.experiments.gathering import StoppedError, Work, failed_runs, jobs
from grokscope.experiments.scale import Amount
from grokscope.sweeps.display import duration

_HOW_MUCH = "How much"
ScaleOption = Annotated[
    str | None,
    typer.Option(
        "--scale",
        help="quick (coarse grids of smaller networks, one seed), mixed (quick, but single networks have the paper's "
        "size), paper (its grids, steps and seeds), best (the largest scale that is complete in the store, or quick), "
        "or tiny (a toy, to try the commands).",
        show_default="quick; a file of your own is trained as it is written",
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
    typer.echo(f"In all about {duration(total)} with {workers_in_words(work.running)}, and {size / 1e6:.3g} MB")
    if work.amount.refine and any(job.diagram and job.to_do + job.shared for job in found):
        typer.echo(FEWER_WITH_REFINE)


def check_failures(work: Work) -> None:
    """End with an error if runs failed that were to be done."""
    if failed := failed_runs(work):
        flag = store_flag(work.store)
        raise FailedRunsError(
            f"{failed} runs failed: `grokscope status{flag}` says why, and the same command tries them again"
        )


def say_what_toys_mean(amount: Amount) -> None:
    """Keep anybody from believing what networks of the scale tiny show."""
    if amount.scale == "tiny":
        note(
            "--scale tiny trains toy networks, to try the commands: what they show, and whether a claim holds for "
            "them, says nothing about the paper. --scale quick does."
        )


@contextmanager
def ending_when_stopped() -> Iterator[None]:
    """End the program if the work in here was asked to stop."""
    try:
        yield
    except StoppedError:
        note("Stopped. The same command goes on.")
        sys.exit(130)

"""What figures and claims share: the scale, and doing the runs that are missing."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grokscope.cli.live import duration
from grokscope.cli.options import note
from grokscope.cli.progress import RunsProgress
from grokscope.cli.running import run_plan
from grokscope.cli.stopping import stop_on_request
from grokscope.engines import check_engine
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweep import Failed, Finished, Measured, run_all
from grokscope.sweep.estimate import estimated_bytes, estimated_seconds
from grokscope.sweep.local import sweep_engine
from grokscope.sweep.plan import Plan

if TYPE_CHECKING:
    from grokscope.experiments.evidence import Needs
    from grokscope.experiments.scale import Scale

_HOW_MUCH = "How much"
ScaleOption = Annotated[
    str,
    typer.Option(
        "--scale",
        help="quick (coarse grids of smaller networks, one seed), paper (its grids, steps and seeds), best (the "
        "paper's where the store has all of it, else quick), or tiny (a toy, to try the commands).",
        rich_help_panel=_HOW_MUCH,
    ),
]
GridOption = Annotated[
    str | None,
    typer.Option("--grid", metavar="AxB", help="At most A data fractions × B corruptions.", rich_help_panel=_HOW_MUCH),
]
SeedsOption = Annotated[
    int | None, typer.Option("--seeds", min=1, help="At most so many seeds.", rich_help_panel=_HOW_MUCH)
]
RefineOption = Annotated[
    bool,
    typer.Option(
        "--refine", help="Of diagrams run only cells near a boundary; infer the others.", rich_help_panel=_HOW_MUCH
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what there is to do and what it takes.")]


Wanted = Sequence[tuple["Needs", "Scale"]]  # runs, each at the scale that was chosen for them


def describe_work(wanted: Wanted, path: Path, workers: int, engine: str, device: str) -> None:
    """What would be run, and how long it would take, as measured now on a few steps."""
    from grokscope.experiments.evidence import missing_networks, together

    store = open_if_there(path)
    specs, plans = together(wanted)
    jobs: list[tuple[str, int, list[RunSpec], bool]] = []
    if specs:
        jobs.append(("networks", len(specs), missing_networks(store, specs) if store else specs, True))
    for plan in plans:
        unique = {spec.run_id: spec for spec in plan.specs()}
        left = [cell.run_id for cell in store.outcomes(unique) if cell.outcome is None] if store else list(unique)
        jobs.append((plan.name, len(unique), [unique[run_id] for run_id in left], False))
    total = size = 0.0
    for name, count, missing, weights in jobs:
        seconds = estimated_seconds(missing, sweep_engine(engine, device), device) / workers
        total += seconds
        size += estimated_bytes(missing, weights=weights)
        took = f", about {duration(seconds)}" if missing else ""
        typer.echo(f"{name:20} {count:5} runs, {count - len(missing)} in the store, {len(missing)} to do{took}")
    typer.echo(f"In all about {duration(total)} with {workers} workers, and {size / 1e6:.3g} MB")


def check_engines(wanted: Wanted, engine: str, device: str) -> None:
    """Refuse an engine or a device that cannot do some of the runs, before anything is made."""
    from grokscope.experiments.evidence import together

    specs, plans = together(wanted)
    models = {spec.model: spec for spec in [*specs, *(spec for plan in plans for spec in plan.specs())]}
    for spec in models.values():
        check_engine(sweep_engine(engine, device), device, spec)


def open_if_there(path: Path) -> Store | None:
    """The store, if there is one: looking at what is to be done should not make one."""
    return Store(path, create=False) if (path / "index.sqlite").exists() else None


def gather(
    wanted: Wanted,
    store: Store,
    workers: int,
    engine: str = "auto",
    device: str = "cpu",
    *,
    refine: bool = False,
) -> None:
    """Do the runs that are missing: single networks first, then one diagram after another. Ends the program if asked
    to stop; the same command goes on.
    """
    from grokscope.experiments.evidence import missing_networks, together

    specs, plans = together(wanted)
    if missing := missing_networks(store, specs):
        _run_networks(missing, store, workers, engine, device)
    for place, plan in enumerate(plans, start=1):
        _run_diagram(
            plan, f"{plan.name}, diagram {place} of {len(plans)}", store, workers, engine, device, refine=refine
        )


def _run_networks(specs: list[RunSpec], store: Store, workers: int, engine: str, device: str) -> None:
    from grokscope.experiments.captions import settings

    note(f"Training {len(specs)} networks")
    names = [f"{spec.run_id[:6]} {settings(spec)}" for spec in specs]
    with stop_on_request() as should_stop, RunsProgress(specs, names) as progress:
        for event in run_all(
            specs,
            store.path,
            workers=workers,
            engine=engine,
            device=device,
            weights=True,
            should_stop=should_stop,
        ):
            match event:
                case Measured(index, measurement):
                    progress.update(index, measurement)
                case Finished(index, phase, seconds):
                    progress.finish(index, f"{phase.label if phase else 'Diverged'} ({seconds:.1f} s)")
                case Failed(index, error):
                    progress.finish(index, f"FAILED: {error}")
        _end_if(should_stop())


def _run_diagram(plan: Plan, title: str, store: Store, workers: int, engine: str, device: str, *, refine: bool) -> None:
    from grokscope.experiments.evidence import missing_places

    specs = list(plan.specs())
    run_ids = [spec.run_id for spec in specs]
    store.record_sweep(plan.name, plan.to_dict(), run_ids, refined=refine)
    store.forget_failures(plan.name)  # what failed before is tried again, as single networks are
    if missing_places(store, plan) if refine else any(cell.outcome is None for cell in store.outcomes(run_ids)):
        note(title)
        _end_if(run_plan(store, plan, specs, workers, engine, device, refined=refine))


def _end_if(stopped: bool) -> None:
    if stopped:
        note("Stopped. The same command goes on.")
        sys.exit(130)

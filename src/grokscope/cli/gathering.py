"""What figures and claims share: the scale, and doing the runs that are missing."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from grokscope.cli.options import note
from grokscope.cli.progress import RunsProgress
from grokscope.cli.running import FEWER_WITH_REFINE, record_plan, run_plan, worker_count
from grokscope.engines import resolve_engine
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps import Failed, Finished, Measured, run_all
from grokscope.sweeps.display import duration
from grokscope.sweeps.estimate import estimated_bytes, estimated_seconds
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.running import sweep_engine
from grokscope.sweeps.stopping import stop_on_request

if TYPE_CHECKING:
    from grokscope.experiments.evidence import Needs
    from grokscope.experiments.scale import Scale

_HOW_MUCH = "How much"
ScaleOption = Annotated[
    str,
    typer.Option(
        "--scale",
        help="quick (coarse grids of smaller networks, one seed), mixed (the same, but networks that stand alone as in "
        "the paper), paper (its grids, steps and seeds), best (of paper, mixed and quick the first of which the store "
        "has all, else quick), or tiny (a toy, to try the commands).",
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


@dataclass(frozen=True)
class Work:
    """The runs that some figures and claims need, and how to do those that the store does not have."""

    scales: "list[Scale]"  # at which each of them is wanted, in their order
    specs: list[RunSpec]  # single networks
    plans: list[Plan]  # diagrams
    path: Path  # of the store
    workers: int
    engine: str
    device: str
    refine: bool
    best: bool  # of what is there: a diagram that is complete but for cells that can be inferred stays as it is


def plan_work(
    needs: "Sequence[Callable[[Scale], Needs]]",
    scale: str,
    grid: str | None,
    seeds: int | None,
    path: Path,
    workers: str,
    engine: str,
    device: str,
    *,
    refine: bool,
) -> Work:
    """What the command line asks for; an engine or a device that cannot do it is refused before anything is made."""
    from grokscope.experiments.evidence import best_scale, together
    from grokscope.experiments.scale import BEST, scales_of

    engine = sweep_engine(engine, device)
    scales = scales_of(scale, grid=grid, seeds=seeds)
    count = worker_count(workers, engine)
    store = open_if_there(path)
    chosen = [best_scale(need, scales, store) for need in needs]
    specs, plans = together([(need(its_scale), its_scale) for need, its_scale in zip(needs, chosen, strict=True)])
    models = {spec.model: spec for spec in [*specs, *(spec for plan in plans for spec in plan.specs())]}
    for spec in models.values():
        resolve_engine(engine, device, spec)
    return Work(chosen, specs, plans, path, count, engine, device, refine, scale == BEST)


def describe_work(work: Work) -> None:
    """What would be run, and how long it would take, as measured now on a few steps."""
    from grokscope.experiments.evidence import cells_to_run, missing_networks

    store = open_if_there(work.path)
    jobs: list[_Job] = []
    if work.specs:
        missing = missing_networks(store, work.specs) if store else work.specs
        jobs.append(_Job("networks", len(work.specs), len(work.specs) - len(missing), missing, weights=True))
    for plan in work.plans:
        runs = {spec.run_id: spec for spec in plan.specs()}
        done = sum(cell.outcome not in (None, "failed") for cell in store.outcomes(runs)) if store else 0
        missing = cells_to_run(store, plan, inferring=work.refine or work.best) if store else list(runs.values())
        jobs.append(_Job(plan.name, len(runs), done, missing, weights=False))
    total = size = 0.0
    planned: set[str] = set()  # what one of them trains the others use
    for job in jobs:
        to_do = [spec for spec in job.missing if spec.run_id not in planned]
        planned.update(spec.run_id for spec in to_do)
        seconds = estimated_seconds(to_do, work.engine, work.device) / work.workers
        total += seconds
        size += estimated_bytes(to_do, weights=job.weights)
        known = f"{job.done} in the store"
        if inferred := job.runs - job.done - len(job.missing):
            known += f", {inferred} inferred"
        if shared := len(job.missing) - len(to_do):
            known += f", {shared} in lines above"
        took = f", about {duration(seconds)}" if to_do else ""
        typer.echo(f"{job.name:20} {job.runs:5} runs, {known}, {len(to_do)} to do{took}")
    typer.echo(f"In all about {duration(total)} with {work.workers} workers, and {size / 1e6:.3g} MB")
    if work.refine and any(job.missing and not job.weights for job in jobs):
        typer.echo(FEWER_WITH_REFINE)


class _Job(NamedTuple):
    name: str
    runs: int
    done: int
    missing: list[RunSpec]
    weights: bool  # whether they are kept: those of single networks


def open_if_there(path: Path) -> Store | None:
    """The store, if there is one: looking at what is to be done should not make one."""
    return Store(path, create=False) if (path / "index.sqlite").exists() else None


def gather(work: Work) -> Store:
    """The store, after doing the runs that it lacked: single networks first, then one diagram after another. Ends the
    program if asked to stop; the same command goes on.
    """
    from grokscope.experiments.evidence import missing_networks

    store = Store(work.path)
    if missing := missing_networks(store, work.specs):
        _run_networks(missing, store, work)
    for place, plan in enumerate(work.plans, start=1):
        _run_diagram(plan, f"{plan.name}, diagram {place} of {len(work.plans)}", store, work)
    return store


def _run_networks(specs: list[RunSpec], store: Store, work: Work) -> None:
    from grokscope.experiments.captions import settings

    note(f"Training {len(specs)} network{'' if len(specs) == 1 else 's'}")
    names = [f"{spec.run_id[:6]} {settings(spec)}" for spec in specs]
    with stop_on_request() as should_stop, RunsProgress(specs, names) as progress:
        for event in run_all(
            specs,
            store.path,
            workers=work.workers,
            engine=work.engine,
            device=work.device,
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


def _run_diagram(plan: Plan, title: str, store: Store, work: Work) -> None:
    from grokscope.experiments.evidence import cells_to_run, missing_places

    if work.best and not missing_places(store, plan):
        return
    specs = list(plan.specs())
    # A diagram that was refined before stays one: until the last cell is run, what is missing can be inferred.
    refined = work.refine or any(sweep.refined for sweep in store.sweeps() if sweep.name == plan.name)
    record_plan(store, plan, specs, refined=refined, keep_both="another --store keeps both")
    store.forget_failures(plan.name)  # what failed before is tried again, as single networks are
    if cells_to_run(store, plan, inferring=work.refine):
        note(title)
        _end_if(run_plan(store, plan, specs, work.workers, work.engine, work.device, refined=work.refine))


def _end_if(stopped: bool) -> None:
    if stopped:
        note("Stopped. The same command goes on.")
        sys.exit(130)

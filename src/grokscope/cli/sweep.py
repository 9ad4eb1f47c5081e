"""`grokscope sweep`: many runs, as many at once as there are cores."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.live import duration
from grokscope.cli.options import (
    DEFAULT_STORE,
    DeviceOption,
    EngineOption,
    StoreOption,
    WorkersOption,
    note,
    store_flag,
)
from grokscope.cli.running import FEWER_WITH_REFINE, record_plan, run_plan, worker_count
from grokscope.engines import resolve_engine
from grokscope.errors import SpecError, did_you_mean
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps.diagram import wanted_places
from grokscope.sweeps.estimate import estimated_bytes, estimated_seconds
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.running import sweep_engine

_WHAT = "What to run"
_HOW = "Running"


def sweep(
    what: Annotated[str, typer.Argument(metavar="SWEEP", help="A sweep of the paper, such as fig3a, or a .toml file.")],
    fields: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Set a field of every run.", rich_help_panel=_WHAT),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(metavar="AxB", help="Only A data fractions × B corruption fractions.", rich_help_panel=_WHAT),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Run every cell with so many seeds.", rich_help_panel=_WHAT)
    ] = None,
    refining: Annotated[
        bool,
        typer.Option("--refine", help="Run only cells near a boundary; infer the others.", rich_help_panel=_WHAT),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            help="What to call it in the store.", show_default="the sweep's or the file's name", rich_help_panel=_WHAT
        ),
    ] = None,
    workers: WorkersOption = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many runs.", rich_help_panel=_HOW)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what there is to do and what it takes.", rich_help_panel=_HOW)
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try the failed runs again.", rich_help_panel=_HOW)
    ] = False,
    save_weights: Annotated[
        bool, typer.Option("--save-weights", help="Keep the networks that it trains.", rich_help_panel=_HOW)
    ] = False,
    engine: EngineOption = "auto",
    device: DeviceOption = "cpu",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Train a whole diagram of networks, and go on where an earlier sweep stopped.

    Runs that are in the store are not done again, so the same command goes on after Ctrl-C, a crash or a power cut, to
    exactly the results that it would have had without. A sweep file has a base spec and axes; see docs/sweeps.md.

    [bold]Examples[/bold]

    grokscope sweep fig3a --grid 5x5 --set task.modulus=31 --set model.width=128

    grokscope sweep fig3a --dry-run

    grokscope sweep my.toml --seeds 3 --refine --workers 8

    grokscope sweep fig3a --device cuda
    """
    engine = sweep_engine(engine, device)
    count = worker_count(workers, engine)
    plan = _plan(what)
    if name is not None:
        plan = Plan(name, plan.base, plan.axes, plan.derived)
    plan = plan.with_fields(_assignments(fields or []))
    if grid is not None:
        plan = plan.with_grid(grid)
    if seeds is not None:
        plan = plan.with_seeds(seeds)
    specs = list(plan.specs())
    for spec in {spec.model: spec for spec in specs}.values():
        resolve_engine(engine, device, spec)

    if dry_run:
        _describe(plan, specs, store, count, engine, device, limit, refining=refining, weights=save_weights)
        return
    opened = Store(store)
    record_plan(opened, plan, specs, refined=refining, keep_both="--name keeps both")
    if retry_failed:
        note(f"{opened.forget_failures(plan.name)} failed runs will be tried again.")
    _run(opened, plan, specs, count, engine, device, limit, refined=refining, weights=save_weights)


def _plan(what: str) -> Plan:
    from grokscope.experiments.catalogue import SWEEPS

    if what in SWEEPS:
        return SWEEPS[what]
    if what.endswith(".toml") or Path(what).exists():
        return Plan.from_file(Path(what))
    raise SpecError(
        f"there is no sweep {what!r}: name one of {', '.join(SWEEPS)}, or a .toml file{did_you_mean(what, SWEEPS)}"
    )


def _assignments(texts: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for text in texts:
        path, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise SpecError(f"--set = {text!r} is not allowed: must be a field and its value, such as task.modulus=31")
        if path in fields:
            raise SpecError(f"--set names {path} twice")
        fields[path] = value
    return fields


def _describe(
    plan: Plan,
    specs: list[RunSpec],
    path: Path,
    workers: int,
    engine: str,
    device: str,
    limit: int | None,
    *,
    refining: bool,
    weights: bool,
) -> None:
    unique = {spec.run_id: spec for spec in specs}
    left, failed = list(unique.values()), 0
    if (path / "index.sqlite").exists():
        cells = Store(path, create=False).outcomes(unique)
        left = [unique[cell.run_id] for cell in cells if cell.outcome is None]
        failed = sum(cell.outcome == "failed" for cell in cells)
    typer.echo(f"Sweep {plan.name}: {len(unique)} runs")
    for axis in plan.axes:
        values = [point[0] if len(point) == 1 else point for point in axis.points]
        shown = ", ".join(map(str, values)) if len(values) <= 5 else f"{values[0]} … {values[-1]}"
        typer.echo(f"  {', '.join(axis.fields):24} {len(axis):4}: {shown}")
    typer.echo(f"In the store {path}: {len(unique) - len(left) - failed} done, {failed} failed, {len(left)} to do")
    left = left[:limit]
    if left:
        seconds = estimated_seconds(left, engine, device) / workers
        size = estimated_bytes(left, weights=weights)
        typer.echo(f"Time: about {duration(seconds)} with {workers} workers, as measured now on a few steps")
        typer.echo(f"Disk: about {size / 1e6:.3g} MB")
    if refining:
        typer.echo(FEWER_WITH_REFINE)


def _run(
    store: Store,
    plan: Plan,
    specs: list[RunSpec],
    workers: int,
    engine: str,
    device: str,
    limit: int | None,
    *,
    refined: bool,
    weights: bool,
) -> None:
    stopped = run_plan(store, plan, specs, workers, engine, device, limit, refined=refined, weights=weights)
    run_ids = [spec.run_id for spec in specs]
    cells = store.outcomes(run_ids)
    failed, missing = (sum(cell.outcome == outcome for cell in cells) for outcome in ("failed", None))
    if refined and not stopped and not wanted_places(plan, cells):
        note(f"Done: {plan.size - missing} of {plan.size} cells were run, the others are inferred.")
    else:
        note(f"{'Stopped' if stopped else 'Done'}: {missing} of {plan.size} runs are left to do.")
    if failed:
        note(f"{failed} runs failed: `grokscope status {plan.name}` says why, --retry-failed tries them again.")
    typer.echo(f"Look at it with: grokscope phase-diagram {plan.name}{store_flag(store.path)}")
    if stopped:
        note("The same command goes on.")
        sys.exit(130)

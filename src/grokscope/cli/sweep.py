"""`grokscope sweep`: many runs, as many at once as there are cores."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.completion import offered_sweeps
from grokscope.cli.options import (
    DEFAULT_STORE,
    CellsOption,
    ClusterConfigOption,
    ClusterOption,
    DataDirOption,
    DeviceOption,
    EngineOption,
    HostsOption,
    SnapshotsOption,
    StoreOption,
    TrackDirOption,
    TrackOption,
    WorkersOption,
    note,
    store_flag,
)
from grokscope.cli.running import FEWER_WITH_REFINE, running_from, workers_in_words
from grokscope.cli.values import assignments, print_json
from grokscope.store import Store
from grokscope.sweeping import named_sweep, specs_to_run, start_sweep
from grokscope.sweeps.display import duration
from grokscope.sweeps.estimate import estimate_sweep
from grokscope.sweeps.labels import said, short_value
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.recorded import NOTHING_RECORDED, Recorded, read_outcomes
from grokscope.sweeps.running import Running
from grokscope.sweeps.sweep import Sweep
from grokscope.sweeps.tracking import track_directory

_WHAT = "What to run"
_HOW = "Running"


def sweep(
    what: Annotated[
        str,
        typer.Argument(
            metavar="SWEEP",
            autocompletion=offered_sweeps,
            help="A sweep of the paper, such as fig3a, a .toml file, or a sweep of the store by name.",
        ),
    ],
    fields: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Set a field of every run.", rich_help_panel=_WHAT),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(metavar="AxB", help="Only A data fractions × B corruption fractions.", rich_help_panel=_WHAT),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds to run for every cell.", rich_help_panel=_WHAT)
    ] = None,
    refining: Annotated[
        bool,
        typer.Option("--refine", help="Run only cells near a boundary; infer the others.", rich_help_panel=_WHAT),
    ] = False,
    settle: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="STEPS",
            help="End a run once its phase has been the same, and clear, for so many steps. Such runs have ids of "
            "their own; docs/sweeps.md says how often the phase would have changed.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="What to call it in the store.", show_default="the sweep's or the file's name", rich_help_panel=_WHAT
        ),
    ] = None,
    workers: WorkersOption = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many runs.", rich_help_panel=_HOW)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what is left to do and how long it takes.", rich_help_panel=_HOW)
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try the failed runs again.", rich_help_panel=_HOW)
    ] = False,
    cells: CellsOption = None,
    save_weights: Annotated[
        bool, typer.Option("--save-weights", help="Store the trained networks too.", rich_help_panel=_HOW)
    ] = False,
    snapshots: SnapshotsOption = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "cpu",
    cluster: ClusterOption = None,
    cluster_config: ClusterConfigOption = None,
    hosts: HostsOption = "",
    data_dir: DataDirOption = None,
    track: TrackOption = None,
    track_dir: TrackDirOption = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print what came out, or with --dry-run the estimate, as JSON.", rich_help_panel=_HOW
        ),
    ] = False,
) -> None:
    """Train a whole diagram of networks, and go on where an earlier sweep stopped.

    Runs that are in the store are not done again: after Ctrl-C, a crash or a power cut the same command goes on, and
    gives exactly the same results. A sweep file has a base spec and axes; see docs/sweeps.md. The exit status is 1 if
    runs of the sweep failed, and 130 if it was stopped.

    [bold]Examples[/bold]

    grokscope sweep fig3a --grid 5x5 --set task.modulus=31 --set model.width=128

    grokscope sweep fig3a --dry-run

    grokscope sweep my.toml --seeds 3 --refine --workers 8

    grokscope sweep my            (goes on with the sweep that my.toml started)

    grokscope sweep fig3a --settle 400 --name fig3a-settled

    grokscope sweep fig3b --refine --cells docs/data    (goes on from a table of cells)

    grokscope sweep fig3a --track tensorboard

    grokscope sweep fig3a --device cuda

    grokscope sweep fig3a --cluster tcp://login:8786
    """
    plan, refined_before = named_sweep(what, store)
    changes = assignments(fields or []) | ({} if settle is None else {"training.settle": str(settle)})
    plan = plan.changed(name=name).with_fields(changes).changed(grid=grid, seeds=seeds)
    refining = refining or refined_before
    recorded = read_outcomes(cells) if cells else NOTHING_RECORDED
    tracked = None if dry_run else track_directory(track, track_dir, store)
    with running_from(
        workers,
        engine,
        device,
        cluster,
        cluster_config,
        hosts,
        weights=save_weights,
        snapshots=snapshots,
        track=tracked,
    ) as running:
        if dry_run:
            _describe(plan, running, store, limit, recorded, refining=refining, as_json=as_json)
            return
        started = start_sweep(
            plan,
            running,
            store,
            refined=refining,
            recorded=recorded,
            retry_failed=retry_failed,
            keep_both="--name keeps both",
        )
        stopped = started.carry_out(running, limit=limit)
    _conclude(started, cells, stopped=stopped, as_json=as_json)


def _describe(
    plan: Plan, running: Running, path: Path, limit: int | None, recorded: Recorded, *, refining: bool, as_json: bool
) -> None:
    specs = specs_to_run(plan, running)
    store = Store(path, create=False) if (path / "index.sqlite").exists() else None
    estimate = estimate_sweep(specs, running, store, limit, recorded)
    if as_json:
        print_json({"name": plan.name, "refined": refining, **vars(estimate)})
        return
    typer.echo(f"Sweep {plan.name}: {estimate.runs} runs")
    for axis in plan.axes:
        values = [" and ".join(short_value(*each) for each in said(axis.at(i)).items()) for i in range(len(axis))]
        shown = ", ".join(values) if len(values) <= 5 else f"{values[0]} … {values[-1]}"
        typer.echo(f"  {', '.join(axis.fields):24} {len(axis):4}: {shown}")
    where = f"the store {path}" + (" and the tables" if recorded else "")
    typer.echo(f"In {where}: {estimate.done} done, {estimate.failed} failed, {estimate.left} to do")
    if estimate.left:
        took = duration(estimate.seconds)
        typer.echo(f"Time: about {took} with {workers_in_words(running)}, as measured now on a few steps")
        typer.echo(f"Disk: about {estimate.bytes / 1e6:.3g} MB")
    if refining:
        typer.echo(FEWER_WITH_REFINE)


def _conclude(sweep: Sweep, cells: Path | None, *, stopped: bool, as_json: bool) -> None:
    plan, standing = sweep.plan, sweep.standing()
    where = "the store or the tables" if sweep.recorded else "the store"
    if sweep.refined and not stopped and standing.complete:
        run = standing.cells - standing.missing
        note(f"Done: {run} of {standing.cells} cells were run, the others are inferred.")
    elif stopped or standing.missing:
        note(f"{'Stopped' if stopped else 'Done'}: {standing.missing} of {standing.cells} runs are left to do.")
    else:
        note(f"Done: {standing.cells - standing.failed} of {standing.cells} runs are in {where}.")
    if standing.failed:
        note(
            f"{standing.failed} runs failed: `grokscope status {plan.name}{store_flag(sweep.store.path)}` says why, "
            "--retry-failed tries them again.",
            always=True,
        )
    if as_json:
        print_json({"name": plan.name, "refined": sweep.refined, "stopped": stopped, **vars(standing)})
    else:
        tables = f" --cells {shlex.quote(str(cells))}" if cells else ""
        typer.echo(f"Look at it with: grokscope phase-diagram {plan.name}{store_flag(sweep.store.path)}{tables}")
    if stopped:
        note("The same command goes on.")
        sys.exit(130)
    if standing.failed:
        sys.exit(1)

"""`grokscope figure`, `figures list` and `reproduce`: the paper's figures by name."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from grokscope.cli.claims import print_findings
from grokscope.cli.gathering import (
    DryRunOption,
    GridOption,
    RefineOption,
    ScaleOption,
    SeedsOption,
    check_failures,
    describe_work,
    ending_when_stopped,
    say_what_toys_mean,
)
from grokscope.cli.options import (
    DEFAULT_STORE,
    ClusterConfigOption,
    ClusterOption,
    DataDirOption,
    DeviceOption,
    EngineOption,
    HostsOption,
    StoreOption,
    WorkersOption,
    help_without_command,
    note,
)
from grokscope.cli.running import running_from
from grokscope.experiments.gathering import plan_work
from grokscope.experiments.reproduction import DEFAULT_OUT, check_report_path, make
from grokscope.experiments.scale import Amount
from grokscope.sweeps import Running

if TYPE_CHECKING:
    from grokscope.experiments.claim import Claim
    from grokscope.experiments.experiment import Experiment

OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="The directory to write to.")]

figures = typer.Typer(invoke_without_command=True, help="The paper's figures and tables, and experiments beyond it.")


@figures.callback()
def _figures(context: typer.Context) -> None:
    help_without_command(context)


@figures.command("list")
def list_figures(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the figures that `grokscope figure` draws, each with its claims for `grokscope claims --only`.

    [bold]Example[/bold]

    grokscope figures list
    """
    from grokscope.experiments.catalogue import EXPERIMENTS

    if as_json:
        content = [
            {"name": each.name, "title": each.title, "claims": [claim.id for claim in each.claims]}
            for each in EXPERIMENTS.values()
        ]
        typer.echo(json.dumps(content))
        return
    table = RichTable(box=None)
    table.add_column("name", no_wrap=True)
    table.add_column("what it shows, and its claims")
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.name, experiment.title)
        if experiment.claims:
            table.add_row("", f"[dim]{', '.join(claim.id for claim in experiment.claims)}[/dim]")
    Console().print(table)


def figure(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Such as fig01 or table2, or a file of your own.", show_default=False),
    ],
    scale: ScaleOption = None,
    grid: GridOption = None,
    seeds: SeedsOption = None,
    refine: RefineOption = False,
    out: OutOption = DEFAULT_OUT,
    dry_run: DryRunOption = False,
    workers: WorkersOption = "auto",
    engine: EngineOption = "auto",
    device: DeviceOption = "cpu",
    cluster: ClusterOption = None,
    cluster_config: ClusterConfigOption = None,
    hosts: HostsOption = "",
    data_dir: DataDirOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Draw figures of the paper, after doing the runs that they need and the store does not have.

    Each figure is written as .png, .svg and .pdf, its data as .csv, and its caption, with all settings and run ids, as
    .txt. Ctrl-C is safe: the same command goes on. The exit status is 1 if runs failed.

    [bold]Examples[/bold]

    grokscope figure fig01

    grokscope figure fig03 --scale paper --refine --dry-run

    grokscope figure fig05 fig06 --out pictures

    grokscope figure my_figure.py --scale tiny
    """
    from grokscope.experiments.catalogue import experiments_called

    chosen, amount = experiments_called(names), Amount(scale, grid, seeds, refine)
    with running_from(workers, engine, device, cluster, cluster_config, hosts) as running:
        _make(chosen, [], amount, running, store, out, dry_run=dry_run)


def reproduce(
    what: Annotated[
        list[str], typer.Argument(metavar="all|NAME...", help="all, or names of figures.", show_default=False)
    ],
    scale: ScaleOption = None,
    grid: GridOption = None,
    seeds: SeedsOption = None,
    refine: RefineOption = False,
    out: OutOption = DEFAULT_OUT,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.pdf", help="Write figures and verdicts as a PDF, too.")
    ] = None,
    dry_run: DryRunOption = False,
    workers: WorkersOption = "auto",
    engine: EngineOption = "auto",
    device: DeviceOption = "cpu",
    cluster: ClusterOption = None,
    cluster_config: ClusterConfigOption = None,
    hosts: HostsOption = "",
    data_dir: DataDirOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Make all figures, then check all claims: the whole paper from one command. The exit status is 1 if runs failed.

    [bold]Examples[/bold]

    grokscope reproduce all --dry-run

    grokscope reproduce all --scale paper --refine

    grokscope reproduce fig01 fig06 --report report.pdf
    """
    from grokscope.experiments.catalogue import claims_about, experiments_called

    if report is not None:
        check_report_path(report)
    chosen = experiments_called(what, all_allowed=True)
    amount = Amount(scale, grid, seeds, refine)
    with running_from(workers, engine, device, cluster, cluster_config, hosts) as running:
        _make(chosen, claims_about(chosen), amount, running, store, out, dry_run=dry_run, report=report)


def _make(
    chosen: "Sequence[Experiment]",
    claims: "Sequence[Claim]",
    amount: Amount,
    running: Running,
    store: Path,
    out: Path,
    *,
    dry_run: bool,
    report: Path | None = None,
) -> None:
    work = plan_work(chosen, claims, amount, running, store)
    if dry_run:
        describe_work(work)
        return
    with ending_when_stopped():
        made = make(work, out, on_saved=lambda picture: typer.echo(f"Figure: {picture}"), report=report)
    if claims:
        print_findings(made.findings)
    say_what_toys_mean(amount)
    for name, reason in made.not_drawn.items():
        note(f"grokscope: not drawn: {name}, because {reason}", always=True)
    check_failures(work)
    if made.not_drawn:
        sys.exit(2)

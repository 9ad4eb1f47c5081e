"""`grokscope figure`, `figures list` and `reproduce`: the paper's figures by name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from grokscope.cli.analysis import write_table
from grokscope.cli.gathering import (
    DryRunOption,
    GridOption,
    RefineOption,
    ScaleOption,
    SeedsOption,
    describe_work,
    gather,
    plan_work,
)
from grokscope.cli.options import (
    DEFAULT_STORE,
    DeviceOption,
    EngineOption,
    StoreOption,
    WorkersOption,
    help_without_command,
    store_flag,
)
from grokscope.cli.outputs import check_writable, write_text
from grokscope.errors import GrokscopeError
from grokscope.store import Store

if TYPE_CHECKING:
    from grokscope.experiments.claim import Claim
    from grokscope.experiments.experiment import Experiment
    from grokscope.experiments.scale import Scale

OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="The directory to write to.")]
DEFAULT_OUT = Path("grokscope-figures")

figures = typer.Typer(invoke_without_command=True, help="The paper's figures and tables, and experiments beyond it.")


@figures.callback()
def _figures(context: typer.Context) -> None:
    help_without_command(context)


@figures.command("list")
def list_figures() -> None:
    """All names that `grokscope figure` knows, and below each those of its claims, for `grokscope claims --only`.

    [bold]Example[/bold]

    grokscope figures list
    """
    from grokscope.experiments.catalogue import EXPERIMENTS

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
        typer.Argument(metavar="NAME...", help="Such as fig01, table2 or beyond-modulus.", show_default=False),
    ],
    scale: ScaleOption = "quick",
    grid: GridOption = None,
    seeds: SeedsOption = None,
    refine: RefineOption = False,
    out: OutOption = DEFAULT_OUT,
    dry_run: DryRunOption = False,
    workers: WorkersOption = "auto",
    engine: EngineOption = "auto",
    device: DeviceOption = "cpu",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Draw figures of the paper, after doing the runs that they need and the store does not have.

    Writes for each a .png, a .pdf, the plotted data as .csv, and a caption with the exact settings and run ids as .txt.
    Ctrl-C is safe: the same command goes on.

    [bold]Examples[/bold]

    grokscope figure fig01

    grokscope figure fig03 --scale paper --refine --dry-run

    grokscope figure fig05 fig06 --out pictures
    """
    _make(_chosen(names), (), scale, grid, seeds, out, store, workers, engine, device, refine=refine, dry_run=dry_run)


def reproduce(
    what: Annotated[
        list[str], typer.Argument(metavar="all|NAME...", help="all, or names of figures.", show_default=False)
    ],
    scale: ScaleOption = "quick",
    grid: GridOption = None,
    seeds: SeedsOption = None,
    refine: RefineOption = False,
    out: OutOption = DEFAULT_OUT,
    dry_run: DryRunOption = False,
    workers: WorkersOption = "auto",
    engine: EngineOption = "auto",
    device: DeviceOption = "cpu",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Make all figures, then check all claims: the whole paper from one command.

    [bold]Examples[/bold]

    grokscope reproduce all --dry-run

    grokscope reproduce all --scale paper --refine
    """
    from grokscope.experiments.catalogue import EXPERIMENTS

    possible = [name for name, experiment in EXPERIMENTS.items() if not experiment.unavailable]
    chosen = _chosen([name for word in what for name in (possible if word == "all" else [word])])
    claims = {claim.id: claim for experiment in chosen for claim in experiment.claims}
    _make(
        chosen,
        list(claims.values()),
        scale,
        grid,
        seeds,
        out,
        store,
        workers,
        engine,
        device,
        refine=refine,
        dry_run=dry_run,
    )


def _chosen(names: Sequence[str]) -> "list[Experiment]":
    """The experiments of these names, each once however it is spelt; one that cannot be made is refused."""
    from grokscope.experiments.catalogue import experiment_called

    chosen = {experiment.name: experiment for experiment in map(experiment_called, names)}
    for experiment in chosen.values():
        if experiment.unavailable:
            raise GrokscopeError(f"{experiment.name} cannot be made: {experiment.unavailable}")
    return list(chosen.values())


def _make(
    chosen: "Sequence[Experiment]",
    claims: "Sequence[Claim]",
    scale: str,
    grid: str | None,
    seeds: int | None,
    out: Path,
    path: Path,
    workers: str,
    engine: str,
    device: str,
    *,
    refine: bool,
    dry_run: bool,
) -> None:
    """Do what is missing, draw the figures, and check the claims."""
    from grokscope.cli.claims import examine_claims

    needs = [*(experiment.needs for experiment in chosen), *(claim.needs for claim in claims)]
    work = plan_work(needs, scale, grid, seeds, path, workers, engine, device, refine=refine)
    if dry_run:
        describe_work(work)
        return
    ledgers = [out / "claims.md", out / "claims.json"]
    files = [out / f"{experiment.name}{ending}" for experiment in chosen for ending in (".png", ".pdf", ".csv", ".txt")]
    check_writable([*files, *ledgers] if claims else files)
    opened = gather(work)
    figures = zip(chosen, work.scales[: len(chosen)], strict=True)
    checked = list(zip(claims, work.scales[len(chosen) :], strict=True))
    not_drawn = {
        experiment.name: reason
        for experiment, its_scale in figures
        if (reason := _draw(experiment, its_scale, opened, out))
    }
    if checked:
        examine_claims(checked, opened, ledgers)
    if not_drawn:
        reasons = "; ".join(f"{name}, because {reason}" for name, reason in not_drawn.items())
        raise GrokscopeError(f"not drawn: {reasons}")


def _draw(experiment: "Experiment", scale: "Scale", store: Store, out: Path) -> str:
    """Write the files of a figure; if that cannot be, why."""
    from grokscope.experiments.captions import caption, command
    from grokscope.experiments.evidence import DivergedError, Evidence
    from grokscope.experiments.tables import rounded
    from grokscope.plots import save_figure

    evidence = Evidence(store, scale)
    if missing := evidence.missing(experiment.needs(scale)):
        status = f"grokscope status{store_flag(store.path)}"
        return f"{missing} of its runs failed: `{status}` says why, and the same command tries them again"
    try:
        drawing = experiment.draw(evidence)
    except DivergedError as error:
        return str(error)
    for ending in (".png", ".pdf"):
        shown = save_figure(drawing.figure, out / f"{experiment.name}{ending}")
        if ending == ".png":
            typer.echo(f"Figure: {shown}")
    write_table(out / f"{experiment.name}.csv", rounded(drawing.data))
    made_with = command(experiment, evidence) + store_flag(store.path)
    write_text(out / f"{experiment.name}.txt", caption(experiment, evidence, made_with))
    return ""

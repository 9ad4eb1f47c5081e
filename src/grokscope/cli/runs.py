"""`grokscope runs`: list, show, export and delete stored runs. `remarks.py` has tag, name and note."""

import json
import os
from textwrap import wrap
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from grokscope.cli.choosing import (
    RunsArgument,
    SweepOption,
    WhereOption,
    ask_before_deleting,
    chosen_runs,
    known_sweep,
)
from grokscope.cli.export import export_runs
from grokscope.cli.options import DEFAULT_STORE, RunArgument, StoreOption, help_without_command, note
from grokscope.cli.remarks import name_run, note_run, tag_runs
from grokscope.extension import short_name
from grokscope.spec import RunSpec
from grokscope.store import Store, StoredRun

_WIDE = 120  # columns of a terminal that has room for everything in one line
_NAMED = 5  # runs that a question names one by one

runs = typer.Typer(help="List, show, tag, name, export and delete stored runs.", invoke_without_command=True)
runs.callback()(help_without_command)
runs.command("export")(export_runs)
runs.command("tag")(tag_runs)
runs.command("name")(name_run)
runs.command("note")(note_run)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@runs.command("list")
def list_runs(
    where: WhereOption = None,
    sweep: SweepOption = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Sort by a field or a measured number, smallest first; -FIELD has the largest first.",
            show_default="oldest first",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="How many runs to list: the last, or with -FIELD the first; 0 for all.")
    ] = 100,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """One line for each run in the store, oldest first.

    [bold]Examples[/bold]

    grokscope runs list --where phase=full_inversion --where "task.corruption>=0.3"

    grokscope runs list --sweep fig3a --where "test_accuracy>0.9" --sort -mean_ipr

    grokscope runs list --where tag=good --limit 0 --json
    """
    opened = Store(store, create=False)
    found, stored = opened.search(where or (), limit or None, sweep=known_sweep(sweep, opened), sort=sort)
    if as_json:
        typer.echo(json.dumps([run.to_dict() for run in stored]))
        return
    console = Console(width=None if Console().is_terminal or "COLUMNS" in os.environ else 160)
    if console.width >= _WIDE:
        console.print(_wide(stored))
    else:
        typer.echo(_narrow(stored))
    some = f"{'' if sort else 'The newest '}{len(stored)} of " if len(stored) < found else ""
    all_of_them = "; --limit 0 shows all" if some else ""
    note(f"{some}{found:,} run{'' if found == 1 else 's'} in {store}{all_of_them}")


@runs.command("show")
def show_run(run: RunArgument, store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """The settings and the outcome of one run.

    [bold]Example[/bold]

    grokscope runs show 41630c
    """
    opened = Store(store, create=False)
    stored = opened.resolve(run)
    result = opened.load(stored.run_id)
    if as_json:
        remarks = {"name": stored.name, "tags": stored.tags, "note": stored.note}
        typer.echo(json.dumps(result.to_dict() | remarks, allow_nan=False))
        return
    typer.echo(f"Run {result.run_id} ({result.engine}, {result.seconds:.1f} s)")
    for name, text in (("name", stored.name), ("tags", ", ".join(stored.tags)), ("note", stored.note)):
        if text:
            typer.echo(f"{name}: {text}")
    typer.echo(result.describe())
    typer.echo(f"\n{result.spec.to_toml()}")
    for name, value in result.final.items() if result.curve else ():
        typer.echo(f"{name:20} {value:.6g}")
    typer.echo(f"{'weights':20} {'stored' if result.weights else 'not stored'}")
    typer.echo(f"{'snapshots':20} {len(result.weights_at) or 'none'}")
    for code in result.spec.code():
        typer.echo(f"{'your own code':20} {code}")


@runs.command("delete")
def delete_runs(
    run: RunsArgument = None,
    where: WhereOption = None,
    sweep: SweepOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Remove runs from the store, with their weights.

    [bold]Example[/bold]

    grokscope runs delete 41630c --yes

    grokscope runs delete --where phase=confusion --where "training.steps<100"
    """
    opened = Store(store, create=False)
    chosen = chosen_runs(opened, run, where, sweep, "delete")
    if not chosen:
        return
    if not yes:
        names = ", ".join(chosen) if len(chosen) <= _NAMED else f"{len(chosen)} runs"
        ask_before_deleting(f"Delete {names}?")
    for run_id in chosen:
        opened.delete(run_id)
        note(f"Deleted {run_id}")


def _wide(stored: list[StoredRun]) -> Table:
    """A line for each run."""
    table = Table(Column("run", no_wrap=True), *_HEADINGS[1:], box=None)
    others = [_what_else(run) for run in stored]
    if any(others):
        table.add_column("what else")
    for run, other in zip(stored, others, strict=True):
        table.add_row(*_cells(run), *([other] if any(others) else []))
    return table


def _narrow(stored: list[StoredRun]) -> str:
    """Two lines for each run: what one looks for, and below it the other settings."""
    cells = [dict(zip(_HEADINGS, _cells(run), strict=True)) for run in stored]
    lines = []
    for run, cell in zip([None, *stored], [{name: name for name in _HEADINGS}, *cells], strict=True):
        lines.append("{run:16}  {α:>5} {ξ:>5}  {phase:18} {train:>6} {test:>6}".format(**cell))
        if run is not None:
            settings = "{task}, {model}, {optimiser}, {steps} steps, seed {seed}".format(**cell)
            words = "; ".join(filter(None, (settings, _what_else(run))))
            lines += wrap(words, 80, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines)


_HEADINGS = ("run", "task", "α", "ξ", "model", "optimiser", "steps", "seed", "phase", "train", "test")


def _cells(run: StoredRun) -> list[str]:
    spec, final = run.spec, run.final or {}
    model = ", ".join([spec.model.describe(), *spec.model.details()])
    batch = f" B {spec.training.batch_size}" if spec.training.batch_size else ""
    loss = " cross-entropy" if spec.training.loss == "cross-entropy" else ""
    return [
        run.run_id,
        spec.task.describe(),
        f"{spec.task.data_fraction:g}",
        f"{spec.task.corruption:g}",
        model,
        f"{spec.optimizer.describe()} {spec.optimizer.learning_rate:g} wd {spec.optimizer.weight_decay:g}{batch}{loss}",
        str(spec.training.steps),
        "ref" if spec.training.seeding == "reference" else str(spec.training.seed),
        run.phase.label if run.phase else f"diverged at {run.diverged_step}",
        *(
            f"{value:.3f}" if (value := final.get(f"{part}_accuracy")) is not None else "–"
            for part in ("train", "test")
        ),
    ]


def _what_else(run: StoredRun) -> str:
    """What tells it from others: wrong labels, regulariser, measurements, and what people call it."""
    spec, default = run.spec, RunSpec()
    parts = [] if spec.task.corruption_kind == default.task.corruption_kind else [short_name(spec.task.corruption_kind)]
    parts += [spec.regularizer.describe()] if spec.regularizer.acts else []
    parts += map(short_name, spec.training.measurements)
    said = [*([run.name] if run.name else []), *(f"#{tag}" for tag in run.tags)]
    return "; ".join([*parts, *([" ".join(said)] if said else [])])

"""`grokscope status`: how far the sweeps in a store are."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from grokscope.cli.completion import offered_sweeps
from grokscope.cli.options import DEFAULT_STORE, StoreOption, note
from grokscope.phases import Phase
from grokscope.store import Failure, Store, StoredSweep
from grokscope.sweeps.diagram import find_sweep, wanted_places
from grokscope.sweeps.plan import Plan

_SHOWN_FAILURES = 20


def status(
    sweep: Annotated[
        str | None,
        typer.Argument(
            metavar="[SWEEP]",
            autocompletion=offered_sweeps,
            help="Only this sweep, with the tracebacks of failed runs.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Show how many runs of each sweep are done, under way, failed and left, and why runs failed.

    [bold]Examples[/bold]

    grokscope status

    grokscope status fig3a --json
    """
    opened = Store(store, create=False)
    sweeps = [find_sweep(opened, sweep)] if sweep else opened.sweeps()
    running = opened.running()
    failures = opened.failures(sweep)
    interrupted = sorted(opened.checkpoints().keys() - running)
    rows = [_row(opened, found, running) for found in sweeps]
    if as_json:
        failed = [_failure(failure) for failure in failures]
        typer.echo(json.dumps({"sweeps": rows, "failures": failed, "interrupted": interrupted}))
        return
    if rows:
        Console(width=None if Console().is_terminal else 160).print(_table(rows))
    else:
        note(f"No sweep was started on the store {store} yet: grokscope sweep fig3a --grid 5x5")
    if interrupted:
        runs = f"{len(interrupted)} run{'' if len(interrupted) == 1 else 's'}"
        note(f"In the store: {runs} with a checkpoint to go on from. Repeat the command that began.")
    for failure in failures[-_SHOWN_FAILURES:]:
        typer.echo(f"failed {failure.run_id} {failure.failed_at}: {failure.error}")
        if sweep:
            typer.echo("    " + failure.traceback.rstrip().replace("\n", "\n    "))
    if len(failures) > _SHOWN_FAILURES:
        note(f"… and {len(failures) - _SHOWN_FAILURES} more; --json prints all")


def _row(store: Store, sweep: StoredSweep, running: set[str]) -> dict[str, object]:
    counts = store.counts(sweep.name)
    missing, failed = counts.pop("missing", 0), counts.pop("failed", 0)
    done = sum(counts.values())
    # How many runs a refined sweep needs shows only on the way; these are wanted now.
    plan = Plan.stored(sweep.name, sweep.definition)
    left = len(wanted_places(plan, store.cells(sweep.name))) if sweep.refined else missing
    return {
        "name": sweep.name,
        "started_at": sweep.started_at,
        "refined": sweep.refined,
        "runs": done + missing + failed,
        "done": done,
        "running": store.count_members(sweep.name, running),
        "failed": failed,
        "left": left,
        "outcomes": counts,
    }


def _table(rows: list[dict[str, object]]) -> Table:
    heads = ("runs", "done", "running", "failed", "left")
    table = Table(
        Column("sweep", no_wrap=True), *(Column(head, justify="right") for head in heads), "outcomes", box=None
    )
    labels = {phase.value: phase.label for phase in Phase}
    for row in rows:
        outcomes = row["outcomes"]
        assert isinstance(outcomes, dict)
        shown = ", ".join(f"{count} {labels.get(name, name)}" for name, count in outcomes.items())
        name = f"{row['name']} (refined)" if row["refined"] else str(row["name"])
        table.add_row(name, *(str(row[head]) for head in heads), shown)
    return table


def _failure(failure: Failure) -> dict[str, object]:
    return vars(failure) | {"spec": failure.spec.model_dump(mode="json")}

"""`grokscope store`: check, repair and merge whole stores."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from grokscope.cli.options import DEFAULT_STORE, StoreOption, help_without_command, note
from grokscope.notes import shows_bars
from grokscope.store import Store, store_flag
from grokscope.store.check import check_store
from grokscope.store.merge import Merged, merge_into

_NAMED = 3  # runs that a line names

store = typer.Typer(help="Check, repair and merge stores.", invoke_without_command=True)
store.callback()(help_without_command)


@store.command("check")
def check(
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what is found. Damaged files are moved to damaged/ in the store.")
    ] = False,
    path: StoreOption = DEFAULT_STORE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read every file of a store, and say what is damaged, missing or left over.

    Exits with 1 if something is damaged or missing and was not mended.

    [bold]Examples[/bold]

    grokscope store check

    grokscope store check --repair --store cluster-runs
    """
    findings = []
    with _progress() as progress:
        task = progress.add_task("files looked at", total=None)
        for finding in check_store(path, repair=repair, on_file=lambda: progress.advance(task)):
            findings.append(finding)
            if not as_json:
                typer.echo(str(finding))
    if as_json:
        content = [vars(finding) | {"kind": finding.kind.name.lower()} for finding in findings]
        typer.echo(json.dumps(content))
    open_ = [finding for finding in findings if not finding.repair]
    damage = [finding for finding in open_ if not finding.kind.harmless]
    if not findings:
        note(f"The store {path} is sound.")
    elif repair:
        left = f"; {len(open_)} are left as they are" if open_ else ""
        note(f"{len(findings) - len(open_)} of {len(findings)} findings were mended{left}.")
    else:
        note(
            f"Findings: {len(findings)}, {len(damage)} of them damage. "
            f"To mend them: grokscope store check --repair{store_flag(path)}"
        )
    if damage:
        sys.exit(1)


@store.command("merge")
def merge(
    stores: Annotated[
        list[Path], typer.Argument(metavar="STORE… INTO", help="The stores to copy from, and the one to copy into.")
    ],
) -> None:
    """Copy the runs, sweeps and checkpoints of some stores into another one, with tags, names and notes.

    Every run is checked on the way. The stores that are copied from stay as they are. Repeat the command if it was
    interrupted: what was copied is not copied again.

    [bold]Example[/bold]

    grokscope store merge laptop-runs cluster-runs all-runs
    """
    if len(stores) < 2:
        raise typer.BadParameter("name at least two stores: those to copy from, and the one to copy into")
    *sources, into = stores
    others = [Store(source, create=False) for source in sources]
    with _progress() as progress:
        task = progress.add_task("runs looked at", total=sum(len(other.files()) for other in others))
        merged = merge_into(Store(into), others, on_run=lambda: progress.advance(task))
    _tell(merged, into)
    if merged.damaged:
        sys.exit(1)


def _tell(merged: Merged, into: Path) -> None:
    for line in merged.damaged:
        note(f"{line}; it is left out", always=True)
    for kind, renamed in (("sweep", merged.renamed), ("run", merged.renamed_runs)):
        for before, now in renamed:
            note(f"{into} has another {kind} {before}: the one that was copied is called {now} there")
    for theirs, ours in merged.other_names:
        note(f"the run {theirs} is called {ours} in {into}, and stays so")
    if merged.differing:
        some = ", ".join(merged.differing[:_NAMED]) + (", …" if len(merged.differing) > _NAMED else "")
        note(f"{into} has other numbers, as another engine or machine gives them, and keeps them, for {some}")
    typer.echo(
        f"Copied {merged.runs} runs, {merged.sweeps} sweeps, {merged.checkpoints} checkpoints and {merged.failures} "
        f"failures into {into}; {merged.present} runs were there already"
    )


def _progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.completed} {task.description}"))
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not shows_bars())

"""`grokscope claims`: every claim of the paper that can be checked, with the number next to it."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from grokscope.cli.gathering import (
    DryRunOption,
    GridOption,
    RefineOption,
    ScaleOption,
    SeedsOption,
    describe_work,
    gather,
    open_if_there,
    plan_work,
)
from grokscope.cli.options import (
    DEFAULT_STORE,
    DeviceOption,
    EngineOption,
    StoreOption,
    WorkersOption,
    note,
)
from grokscope.cli.outputs import check_writable, write_text
from grokscope.errors import GrokscopeError, did_you_mean
from grokscope.store import Store

if TYPE_CHECKING:
    from grokscope.experiments.claim import Claim, Finding
    from grokscope.experiments.scale import Scale


def claims(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID,…", help="These claims, or all of a figure; may be given several times."),
    ] = None,
    scale: ScaleOption = "quick",
    grid: GridOption = None,
    seeds: SeedsOption = None,
    refine: RefineOption = False,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Train nothing: what the store does not have is not run.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", help="Write the ledger too: .md or .json. May be given several times."),
    ] = None,
    dry_run: DryRunOption = False,
    workers: WorkersOption = "auto",
    engine: EngineOption = "auto",
    device: DeviceOption = "cpu",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Check what the paper says against runs, after doing those that the store does not have.

    Each claim has bounds. They were written down before it was measured, or the ledger says what had been seen. It
    holds if every seed lies within them, fails if none does, and is inconclusive if they disagree.

    [bold]Examples[/bold]

    grokscope claims --only coexistence --seeds 3

    grokscope claims --only fig06,two-peaks --json

    grokscope claims --no-run --scale paper --out ledger.md
    """
    if as_json and dry_run:
        raise GrokscopeError("--dry-run says in words what there is to do: leave out --json, or --dry-run")
    chosen = _chosen(only)
    for path in out or ():
        if path.suffix not in (".md", ".json"):
            raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .md or .json")
    needs = [claim.needs for claim in chosen]
    work = plan_work(needs, scale, grid, seeds, store, workers, engine, device, refine=refine)
    if dry_run:
        describe_work(work)
        return
    check_writable(out or ())
    checked = list(zip(chosen, work.scales, strict=True))
    with TemporaryDirectory() as nothing:  # looking at what is there should not make a store
        opened = (open_if_there(store) or Store(nothing)) if no_run else gather(work)
        examine_claims(checked, opened, out or (), as_json=as_json)


def _chosen(only: Sequence[str] | None) -> "list[Claim]":
    from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS, experiment_called

    chosen: dict[str, Claim] = {} if only else dict(CLAIMS)
    for name in (name.strip() for names in only or () for name in names.split(",")):
        if name in CLAIMS:
            chosen[name] = CLAIMS[name]
            continue
        try:
            experiment = experiment_called(name)
        except GrokscopeError:
            nearest = did_you_mean(name, [*CLAIMS, *EXPERIMENTS])
            raise GrokscopeError(
                f"there is no claim or figure {name!r}: `grokscope figures list` has them all{nearest}"
            ) from None
        if not experiment.claims:
            raise GrokscopeError(f"there are no claims about {experiment.name}; `grokscope figure` draws it")
        chosen |= {claim.id: claim for claim in experiment.claims}
    return list(chosen.values())


def examine_claims(
    chosen: "Sequence[tuple[Claim, Scale]]", store: Store, out: Sequence[Path], *, as_json: bool = False
) -> None:
    """Measure them on what the store has, print the ledger, and write it."""
    from grokscope.experiments.claim import count_verdicts, examine
    from grokscope.experiments.ledger import ledger_json, ledger_markdown

    findings: list[Finding] = []
    for place, (claim, scale) in enumerate(chosen, start=1):
        if Console(stderr=True).is_terminal:
            note(f"Checking {claim.id} ({place} of {len(chosen)})")
        findings.append(examine(claim, store, scale))
    text = json.dumps(ledger_json(findings), allow_nan=False, indent=1, ensure_ascii=False)
    if as_json:
        typer.echo(text)
    else:
        Console().print(_table(findings))
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(findings).items() if count))
    for path in out:
        content = f"{text}\n" if path.suffix == ".json" else ledger_markdown(findings)
        note(f"Ledger: {write_text(path, content)}")


def _table(findings: "Sequence[Finding]") -> Table:
    table = Table(show_lines=True)
    for heading in ("claim", "paper", "measured", "verdict"):
        table.add_column(heading)
    for finding in findings:
        measured = "\n".join(each.text for each in finding.measured) or "–"
        color = _VERDICT_COLORS[finding.verdict]
        table.add_row(
            f"[bold]{finding.claim.id}[/bold]\n{finding.claim.statement}",
            finding.claim.paper,
            measured,
            f"[{color}]{finding.verdict}[/{color}]",
        )
    return table


_VERDICT_COLORS = {"holds": "green", "fails": "red", "inconclusive": "yellow", "not run": "dim"}

"""`grokscope claims`: every claim of the paper that can be checked, with the number next to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

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
)
from grokscope.cli.running import running_from
from grokscope.errors import GrokscopeError
from grokscope.experiments.claim import Finding, Verdict
from grokscope.experiments.gathering import plan_work
from grokscope.experiments.record import Entry
from grokscope.experiments.reproduction import check_claims
from grokscope.experiments.scale import Amount
from grokscope.experiments.summary import summary
from grokscope.experiments.verdicts import Findings, check_ledger_path

_WIDE = 100  # columns of a terminal that has room for a table


def claims(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID,…", help="Claims by name, or all claims of a figure or file. Repeatable."),
    ] = None,
    scale: ScaleOption = None,
    grid: GridOption = None,
    seeds: SeedsOption = None,
    refine: RefineOption = False,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Train nothing; claims that lack runs are reported as not run.")
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
    cluster: ClusterOption = None,
    cluster_config: ClusterConfigOption = None,
    hosts: HostsOption = "",
    data_dir: DataDirOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Check what the paper says against runs, after doing those that the store does not have.

    Bounds were fixed before measuring; the ledger lists the exceptions. A claim holds if every seed lies within its
    bounds, fails if none does, and is inconclusive if seeds disagree. It is undecided if one cell of a diagram would
    change that. A summary comes first. The exit status is 1 if runs failed, whatever the verdicts are.

    [bold]Examples[/bold]

    grokscope claims --only coexistence --seeds 3

    grokscope claims --only fig06,two-peaks --json

    grokscope claims --no-run --scale paper --out ledger.md
    """
    if as_json and dry_run:
        raise GrokscopeError("--dry-run says in words what there is to do: leave out --json, or --dry-run")
    from grokscope.experiments.catalogue import claims_called

    ledgers = out or []
    names = [name.strip() for text in only or () for name in text.split(",")]
    chosen = claims_called(names)
    for path in ledgers:
        check_ledger_path(path)
    amount = Amount(scale, grid, seeds, refine)
    with running_from(workers, engine, device, cluster, cluster_config, hosts) as running:
        work = plan_work([], chosen, amount, running, store)
        if dry_run:
            describe_work(work)
            return
        with ending_when_stopped():
            findings = check_claims(work, ledgers, run=not no_run)
    if as_json:
        typer.echo(findings.to_json())
    else:
        print_findings(findings)
    say_what_toys_mean(amount)
    if not no_run:
        check_failures(work)


def print_findings(findings: Findings) -> None:
    """The result in a few sentences, then a table, or a list where that would be cramped."""
    for line in summary([Entry.of(finding) for finding in findings]):
        typer.echo(line)
    console = Console()
    if console.width >= _WIDE:
        console.print(_table(findings))
    else:
        for finding in findings:
            console.print(_entry(finding), highlight=False)


def _entry(finding: Finding) -> Group:
    """One claim: its name and verdict, and below them what it says, where, and what was measured."""
    color, claim = _VERDICT_COLORS[finding.verdict], finding.claim
    words = [claim.statement, f"Paper: {claim.paper}", *(f"Measured: {each.text}" for each in finding.measured)]
    return Group(
        Text.assemble((claim.id, "bold"), ": ", (str(finding.verdict), color)),
        *(Padding(Text(each), (0, 0, 0, 2)) for each in words),
    )


def _table(findings: Sequence[Finding]) -> Table:
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


_VERDICT_COLORS = {
    Verdict.HOLDS: "green",
    Verdict.CORRECTED: "green",
    Verdict.FAILS: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UNDECIDED: "yellow",
    Verdict.SUPERSEDED: "dim",
    Verdict.NOT_RUN: "dim",
}

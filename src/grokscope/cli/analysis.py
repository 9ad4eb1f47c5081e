"""What the commands on trained networks share: which network to load, and where the results go."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grokscope.cli.completion import offered_runs
from grokscope.errors import GrokscopeError
from grokscope.outputs import write_table
from grokscope.result import RunResult, analytic_result
from grokscope.store import Store
from grokscope.tables import Table as Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".pdf", ".svg")

NetworkArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        autocompletion=offered_runs,
        help="A run id or its first digits; or analytic, the closed-form network (analytic:31:200 for p=31, N=200).",
        show_default=False,
    ),
]
OutOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        help="A file to write: a picture (.png, .pdf, .svg) or the data (.csv). You can give several.",
        show_default="grokscope-figures/RUN-COMMAND.png",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object; draw nothing.")]


def load_network(name: str, store: Path) -> RunResult:
    """The run with its weights, or the analytic network."""
    if match := re.fullmatch(r"analytic(?::(\d{1,9}):(\d{1,9}))?", name):
        modulus, width = (int(number or default) for number, default in zip(match.groups(), (97, 500), strict=True))
        return analytic_result(modulus, width)
    if name.startswith("analytic"):
        raise GrokscopeError(f"RUN = {name!r} is not allowed: must be a run id, analytic or analytic:P:N (p and N)")
    result = Store(store, create=False).load(name)
    if result.status == "diverged":
        raise GrokscopeError(f"run {result.run_id} diverged at step {result.diverged_step}, so it has no network")
    result.trained_weights()
    return result.resolved()  # whoever takes a network apart needs its code


def check_outputs(paths: Sequence[Path] | None, *, as_json: bool = False) -> None:
    """Before computing anything, refuse paths with an unknown ending, and paths together with --json."""
    if as_json and paths:
        raise GrokscopeError("--json writes no files: leave out --out, or --json")
    for path in paths or ():
        if path.suffix not in (*PICTURES, ".csv"):
            raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .png, .pdf, .svg or .csv")


def write_outputs(
    paths: Sequence[Path] | None, default: str, draw: Callable[[], "Figure"], table: Callable[[], Table]
) -> None:
    """Write pictures and tables, by the ending of each path; without paths, a picture of this default name."""
    for path in paths or [Path("grokscope-figures") / f"{default}.png"]:
        if path.suffix == ".csv":
            typer.echo(f"Table: {write_table(path, table())}")
        else:
            from grokscope.plots import save_figure

            typer.echo(f"Figure: {save_figure(draw(), path)}")

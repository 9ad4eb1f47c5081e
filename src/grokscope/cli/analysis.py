"""What the commands share that take a trained network apart: which network, and where the results go."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grokscope.cli.outputs import write_text
from grokscope.errors import GrokscopeError
from grokscope.result import RunResult, analytic_result
from grokscope.store import Store
from grokscope.tables import csv_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".pdf", ".svg")
Table = dict[str, Sequence[object]]  # columns of one length

NetworkArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run id, or the beginning of one; or analytic, the closed-form network (analytic:31:200 for p and N).",
        show_default=False,
    ),
]
OutOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        help="Where to write: a picture (.png, .pdf, .svg) or the data (.csv). May be given several times.",
        show_default="grokscope-figures/RUN-COMMAND.png",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, and draw nothing.")]


def load_network(name: str, store: Path) -> RunResult:
    """The run with its weights, or the analytic network."""
    if match := re.fullmatch(r"analytic(?::(\d+):(\d+))?", name):
        modulus, width = (int(number or default) for number, default in zip(match.groups(), (97, 500), strict=True))
        return analytic_result(modulus, width)
    if name.startswith("analytic"):
        raise GrokscopeError(f"RUN = {name!r} is not allowed: must be a run id, analytic, or analytic:P:N for p and N")
    result = Store(store, create=False).load(name)
    if result.status == "diverged":
        raise GrokscopeError(f"run {result.run_id} diverged at step {result.diverged_step}: it left no network")
    result.trained_weights()
    return result


def check_outputs(paths: Sequence[Path] | None, *, as_json: bool = False) -> None:
    """Refuse a path whose ending names no format, and files beside JSON, before anything is computed for them."""
    if as_json and paths:
        raise GrokscopeError("--json writes no files: leave out --out, or --json")
    for path in paths or ():
        if path.suffix not in (*PICTURES, ".csv"):
            raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .png, .pdf, .svg or .csv")


def write_outputs(
    paths: Sequence[Path] | None, default: str, draw: Callable[[], "Figure"], table: Callable[[], Table]
) -> None:
    """Pictures and tables, as their endings say; a picture of this default name if no path was given."""
    for path in paths or [Path("grokscope-figures") / f"{default}.png"]:
        if path.suffix == ".csv":
            typer.echo(f"Table: {write_table(path, table())}")
        else:
            from grokscope.plots import save_figure

            typer.echo(f"Figure: {save_figure(draw(), path)}")


def write_table(path: Path, columns: Table) -> Path:
    """The columns as CSV; the absolute path."""
    return write_text(path, csv_text(columns))

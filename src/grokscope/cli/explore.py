"""`grokscope explore` and `grokscope report`: the sweeps and networks of a store in the browser."""

import secrets
import socket
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.completion import offered_sweeps
from grokscope.cli.counting import counted
from grokscope.cli.options import DEFAULT_STORE, CellsOption, StoreOption, note
from grokscope.errors import GrokscopeError
from grokscope.store import Store

DEFAULT_PORT = 8642
DEFAULT_REPORT = Path("report.html")
DEFAULT_MB = 15  # what most mail servers take


def explore(
    store: StoreOption = DEFAULT_STORE,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = DEFAULT_PORT,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Others than this machine's own ask for a token.")
    ] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    allow_train: Annotated[
        bool, typer.Option("--allow-train", help="Let the page train networks; without it the page only reads.")
    ] = False,
) -> None:
    """Show the store in the browser: click on a phase diagram, and see the network.

    [bold]Examples[/bold]

    grokscope explore

    grokscope explore --store cluster-runs --port 9000 --no-browser

    grokscope explore --allow-train
    """
    _check_extra()
    from grokscope.explorer.security import is_loopback
    from grokscope.explorer.server import make_app, serve

    Store(store, create=False).close()
    port = _free_port(host, port)
    token = None if is_loopback(host) else secrets.token_hex(16)
    address = f"http://{host}:{port}/" + (f"?token={token}" if token else "")
    app = make_app(store, allow_train=allow_train, token=token)

    def on_started() -> None:
        typer.echo(f"The explorer of {store} is at {address} (Ctrl-C ends it)")
        if not no_browser:
            webbrowser.open(address)

    serve(app, host, port, on_started)
    note("The explorer has ended.")


def report(
    sweep: Annotated[
        list[str], typer.Argument(metavar="SWEEP…", help="Sweeps of the store.", autocompletion=offered_sweeps)
    ],
    out: Annotated[Path, typer.Option(help="The file to write; it ends in .html.")] = DEFAULT_REPORT,
    store: StoreOption = DEFAULT_STORE,
    cells: CellsOption = None,
    max_mb: Annotated[int, typer.Option(min=6, max=1000, help="The largest size of the file, in MB.")] = DEFAULT_MB,
) -> None:
    """Write the explorer's page on some sweeps as one file, which opens without a server and without a network.

    [bold]Examples[/bold]

    grokscope report fig3a fig3b --out report.html

    grokscope report fig3a --max-mb 8

    grokscope report fig3a --cells docs/data
    """
    _check_extra()
    if out.suffix != ".html":
        raise GrokscopeError(f"--out = {str(out)!r} is not allowed: must end in .html")
    from grokscope.explorer.report import write_report
    from grokscope.sweeps.recorded import NOTHING_RECORDED, read_outcomes

    recorded = read_outcomes(cells) if cells else NOTHING_RECORDED
    with counted("Reading runs", "Taking networks apart") as (on_run, on_network):
        written = write_report(
            Store(store, create=False),
            sweep,
            out,
            recorded=recorded,
            most_bytes=max_mb * 10**6,
            on_run=on_run,
            on_network=on_network,
        )
    typer.echo(f"Report: {written} ({written.stat().st_size / 1e6:.1f} MB)")


def _check_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import plotly  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise GrokscopeError(
            f"the explorer needs {error.name}, which is not installed: pip install 'grokscope[explore]'"
        ) from None


def _free_port(host: str, port: int) -> int:
    """The port, or a free one for 0; an error if something else listens there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
            return int(trial.getsockname()[1])
    except OSError as error:
        raise GrokscopeError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another port with --port, "
            "or any free one with --port 0"
        ) from None

"""The command line. Errors that the user can act on are one line on standard error and exit status 2.

Exit status 1 says that runs failed, 130 that the work was stopped and can go on.
"""

import io
import sys
import traceback
import warnings
from typing import Annotated

import typer

import grokscope
from grokscope.cli.commands import Commands, help_without_command
from grokscope.cli.hints import usage_message
from grokscope.errors import FailedRunsError, GrokscopeError, SpecError, in_one_line
from grokscope.extension import explained, place_in_own_code
from grokscope.notes import Volume, set_volume, volume

app = typer.Typer(
    name="grokscope",
    cls=Commands,
    help="Train networks on corrupted modular arithmetic, measure them, and name the phase.",
    epilog="Example: grokscope train --weight-decay 5",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    _quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Say only results and errors. May stand behind the command too."),
    ] = False,
    _verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Say more: a line for every run, the traceback of an error."),
    ] = False,
) -> None:
    if version:
        typer.echo(f"grokscope {grokscope.__version__}")
        raise typer.Exit
    help_without_command(context)


_VOLUMES = {"--quiet": Volume.QUIET, "-q": Volume.QUIET, "--verbose": Volume.VERBOSE, "-v": Volume.VERBOSE}


def _without_volume(arguments: list[str]) -> list[str]:
    """All but --quiet and --verbose, which may stand anywhere before a "--", and are obeyed."""
    set_volume(Volume.NORMAL)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for argument in arguments[:end]:
        if argument in _VOLUMES:
            set_volume(_VOLUMES[argument])
    return [argument for argument in arguments[:end] if argument not in _VOLUMES] + arguments[end:]


def _show_traceback() -> None:
    """Where an error came from, for who wants to know."""
    if volume() == Volume.VERBOSE:
        traceback.print_exc()


def main() -> None:
    """Entry point of the `grokscope` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an α is no reason to stop where the terminal has none
    warnings.formatwarning = lambda message, *_, **__: f"grokscope: {message}\n"
    try:
        status = app(args=_without_volume(sys.argv[1:]), standalone_mode=False)
    except (SpecError, typer.TyperException) as error:
        _show_traceback()
        message = usage_message(error) if isinstance(error, typer.TyperException) else str(error)
        typer.echo(f"grokscope: {in_one_line(message)}", err=True)
        sys.exit(2)
    except MemoryError:
        typer.echo("grokscope: there is not enough memory for a run of this size", err=True)
        sys.exit(2)
    except typer.Abort:
        typer.echo("grokscope: stopped", err=True)
        sys.exit(130)
    except Exception as error:
        # An OSError may be a name that no file can have, and the next one a name that is no text.
        if not isinstance(error, GrokscopeError | OSError | UnicodeEncodeError) and not place_in_own_code(error):
            raise  # a mistake of ours, which its traceback tells us about
        _show_traceback()
        typer.echo(f"grokscope: {in_one_line(explained(error))}", err=True)
        sys.exit(1 if isinstance(error, FailedRunsError) else 2)
    if status == 130:
        typer.echo(
            "grokscope: stopped; nothing of the unfinished work was stored, and the same command starts it again",
            err=True,
        )
    sys.exit(status)

"""`grokscope doctor`: what works here, and what to do about the rest.

It loads as little as it can, because a package that cannot be loaded is one of the things that it should find.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import grokscope
from grokscope.doctor import Check, State, checkup

STYLES = {State.OK: "green", State.ABSENT: "dim", State.NOTE: "yellow", State.BROKEN: "bold red"}


def doctor(
    store: Annotated[
        Path, typer.Option("--store", help="Directory of the stored runs.", envvar="GROKSCOPE_STORE")
    ] = Path("grokscope-runs"),
    speed: Annotated[
        bool, typer.Option("--speed/--no-speed", help="Measure for five seconds how fast the kernel trains.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at this installation: engine, packages, store, machine and speed.

    Each line is ok, absent (a part that not everyone needs), a note (it works, but it could be better) or broken, and
    says what to do. The exit status is 1 if something that is needed is broken. The look at the store is a quick one:
    `grokscope store check` reads all of it.

    [bold]Examples[/bold]

    grokscope doctor

    grokscope doctor --no-speed --json
    """
    checks = []
    console = Console(highlight=False, soft_wrap=True)
    for check in checkup(store, speed=speed):
        checks.append(check)
        if not as_json:
            _print(console, check)
    broken = [check for check in checks if check.state is State.BROKEN]
    if as_json:
        content = [vars(check) | {"state": check.state.value} for check in checks]
        typer.echo(json.dumps({"version": grokscope.__version__, "works": not broken, "checks": content}))
    elif broken:
        typer.echo(f"Broken: {', '.join(dict.fromkeys(check.name for check in broken))}.")
    else:
        typer.echo(f"Everything that grokscope {grokscope.__version__} needs works.")
    if broken:
        sys.exit(1)


def _print(console: Console, check: Check) -> None:
    console.print(Text(f"{check.state.value:<7}", STYLES[check.state]), Text(f"{check.name}: {check.says}"), sep="")
    if check.advice:
        console.print(Text(f"       → {check.advice}"))

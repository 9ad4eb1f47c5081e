"""`grokscope sweeps`: rename and delete the sweeps of a store. `grokscope status` lists them."""

from typing import Annotated

import typer

from grokscope.cli.choosing import ask_before_deleting
from grokscope.cli.completion import offered_sweeps
from grokscope.cli.options import DEFAULT_STORE, StoreOption, help_without_command, note
from grokscope.errors import GrokscopeError
from grokscope.store import Store
from grokscope.sweeping import check_free_name
from grokscope.sweeps.diagram import find_sweep

sweeps = typer.Typer(help="Rename and delete sweeps of the store.", invoke_without_command=True)
sweeps.callback()(help_without_command)

SweepArgument = Annotated[
    str,
    typer.Argument(metavar="SWEEP", help="A sweep of the store.", show_default=False, autocompletion=offered_sweeps),
]


@sweeps.command("rename")
def rename_sweep(
    sweep: SweepArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.", show_default=False)],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Call a sweep something else.

    [bold]Example[/bold]

    grokscope sweeps rename mine first-try
    """
    opened = Store(store, create=False)
    found = find_sweep(opened, sweep)
    check_free_name(name)
    if name in {other.name for other in opened.sweeps()}:
        raise GrokscopeError(f"there is a sweep {name!r} in the store {store} already")
    opened.rename_sweep(found, name)
    note(f"{sweep} is now {name}")


@sweeps.command("delete")
def delete_sweep(
    sweep: SweepArgument,
    with_runs: Annotated[
        bool, typer.Option("--with-runs", help="Its runs too, but for those of other sweeps.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Remove a sweep from the store. Its runs stay, unless you say otherwise.

    [bold]Example[/bold]

    grokscope sweeps delete first-try --with-runs
    """
    opened = Store(store, create=False)
    find_sweep(opened, sweep)
    runs = opened.only_in(sweep) if with_runs else []
    if not yes:
        question = f"Delete the sweep {sweep} and {len(runs)} runs?" if with_runs else f"Delete the sweep {sweep}?"
        ask_before_deleting(question)
    for run_id in runs:
        opened.delete(run_id)
    opened.delete_sweep(sweep)
    note(f"Deleted the sweep {sweep}" + (f" and {len(runs)} runs" if with_runs else "; its runs stay"))

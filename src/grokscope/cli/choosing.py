"""Which runs a command is about: named one by one, or by what they have in common."""

from typing import Annotated

import typer

from grokscope.cli.completion import offered_runs, offered_sweeps
from grokscope.cli.options import note
from grokscope.errors import GrokscopeError, did_you_mean
from grokscope.store import Store

WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Only runs with FIELD=VALUE (or !=, <, <=, >, >=), such as task.corruption=0.3, phase=confusion, "
        "test_accuracy>0.9 or tag=good. Repeat it to combine conditions.",
    ),
]
RunsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN…",
        help="Run ids, the beginnings of them, or names.",
        show_default=False,
        autocompletion=offered_runs,
    ),
]
SweepOption = Annotated[
    str | None, typer.Option(metavar="SWEEP", help="Only runs of this sweep.", autocompletion=offered_sweeps)
]


def chosen_runs(
    store: Store, runs: list[str] | None, where: list[str] | None, sweep: str | None, verb: str
) -> list[str]:
    """The ids of the runs that were named, or that meet the conditions; says so if there are none."""
    if bool(runs) == bool(where or sweep):
        raise GrokscopeError(f"name the runs to {verb}, or say which with --where or --sweep, but not both")
    if runs:
        return list(dict.fromkeys(store.resolve_id(prefix) for prefix in runs))
    chosen = [each.run_id for each in store.runs(where or (), sweep=known_sweep(sweep, store))]
    if not chosen:
        note("No run meets these conditions.")
    return chosen


def known_sweep(sweep: str | None, store: Store) -> str | None:
    """The name of a sweep that the store has, or None if none was named."""
    names = [each.name for each in store.sweeps()]
    if sweep is not None and sweep not in names:
        raise GrokscopeError(f"there is no sweep {sweep!r} in the store {store.path}{did_you_mean(sweep, names)}")
    return sweep


def ask_before_deleting(question: str) -> None:
    """Go on only if the answer is yes."""
    try:
        answer = typer.confirm(question, err=True)
    except typer.Abort:
        typer.echo(err=True)
        raise GrokscopeError("nothing was deleted, because nobody answered; --yes deletes without asking") from None
    if not answer:
        raise GrokscopeError("nothing was deleted")

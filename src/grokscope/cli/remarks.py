"""`grokscope runs tag`, `name` and `note`: what people say about runs. None of it changes a run, or its id."""

from typing import Annotated

import typer

from grokscope.cli.choosing import RunsArgument, SweepOption, WhereOption, chosen_runs
from grokscope.cli.options import DEFAULT_STORE, RunArgument, StoreOption, note
from grokscope.errors import GrokscopeError
from grokscope.store import Store, StoredRun


def tag_runs(
    run: RunsArgument = None,
    add: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Add this tag. Repeat it for several.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Remove this tag.")] = None,
    where: WhereOption = None,
    sweep: SweepOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Add tags to runs, and remove them. `runs list --where tag=good` finds them again.

    A tag has letters and digits, with _ . : / + - between. A run that is trained again keeps its tags.

    [bold]Examples[/bold]

    grokscope runs tag 41630c 9c1f02 --add good --remove draft

    grokscope runs tag --sweep fig3a --where "test_accuracy>0.9" --add groks
    """
    if not add and not remove:
        raise GrokscopeError("say what to change: --add TAG or --remove TAG")
    opened = Store(store, create=False)
    chosen = chosen_runs(opened, run, where, sweep, "tag")
    for run_id in chosen:
        changed = opened.tag(run_id, *(add or ()), remove=remove or ())
        note(f"{run_id}: {_tags(changed)}")


def name_run(
    run: RunArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help='What to call it; "" for no name.', show_default=False)],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Give a run a name, by which every command finds it.

    [bold]Example[/bold]

    grokscope runs name 41630c baseline

    grokscope show baseline
    """
    changed = Store(store, create=False).set_name(run, name)
    note(f"{changed.run_id} is called {changed.name}" if changed.name else f"{changed.run_id} has no name")


def note_run(
    run: RunArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help='What to say about it; "" for nothing.', show_default=False)
    ],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Write something about a run, in place of an earlier note.

    [bold]Example[/bold]

    grokscope runs note 41630c "the one in Figure 2"
    """
    changed = Store(store, create=False).set_note(run, text)
    note(f"{changed.run_id}: {changed.note or 'no note'}")


def _tags(run: StoredRun) -> str:
    return " ".join(f"#{tag}" for tag in run.tags) or "no tags"

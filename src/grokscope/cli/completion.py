"""What a shell offers behind the beginning of a run's id or name, or of a sweep's name, when Tab is pressed."""

from collections.abc import Iterable
from pathlib import Path

import typer

from grokscope.errors import GrokscopeError
from grokscope.store import DEFAULT_STORE, Store

MOST_OFFERED = 200  # a shell asks before it shows more


def offered_runs(context: typer.Context, incomplete: str) -> list[str]:
    """Names first, then the newest ids."""
    store = _store(context)
    if store is None:
        return []
    with store:
        named = [remarks.name for remarks in store.remarks().values() if remarks.name]
        return _beginning(incomplete, [*sorted(named), *reversed(store.ids())])


def offered_sweeps(context: typer.Context, incomplete: str) -> list[str]:
    """The sweeps of the store."""
    store = _store(context)
    if store is None:
        return []
    with store:
        return _beginning(incomplete, [sweep.name for sweep in store.sweeps()])


def _store(context: typer.Context) -> Store | None:
    try:
        return Store(Path(context.params.get("store") or DEFAULT_STORE), create=False)
    except GrokscopeError:  # who presses Tab wants no message
        return None


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)][:MOST_OFFERED]

"""A store that is open: its index, transactions on it, and whether it is still where it was opened."""

import os
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from grokscope.errors import DamageWarning, StoreError
from grokscope.store.files import remove_inside
from grokscope.store.index import INDEX, EmptyIndexError, Identity, has_runs, identity, open_index

DEFAULT_STORE = Path("grokscope-runs")

_NAMED_AT_ONCE = 3  # damaged things that one warning names


class OpenStore:
    """What runs, sweeps and the rest of a store have in common."""

    def __init__(self, path: str | Path = DEFAULT_STORE, *, create: bool | None = None) -> None:
        """Open a store. One that is not there yet is made when something is first written to it.

        With `create` it is made now, and checked that it can be written before any work is done. Without (False), it
        must be there.
        """
        if "\0" in str(path):
            raise StoreError("the name of a store cannot have a null character in it")
        self.path = Path(path)
        self._root = self.path.absolute()  # the working directory may change
        self._connection: sqlite3.Connection | None = None
        self._opened: Identity | None = None
        if create is False:
            self._open(create=False)
        elif create:
            self.make()
        elif os.path.lexists(self._root / INDEX):
            try:
                self._open(create=False)
            except EmptyIndexError:  # another process may just be making it
                self.make()
        elif not _is_free(self._root):
            self.make()

    def make(self) -> None:
        """Make the store if it is not there, and check that it can be written."""
        before = self._connection
        self._open(create=True)
        if before is not None:
            before.close()

    def _open(self, *, create: bool) -> sqlite3.Connection:
        if not create and not os.path.lexists(self._root / INDEX):
            if has_runs(self._root):
                repair = f"grokscope store check --repair{store_flag(self.path)}"
                raise StoreError(f"the store {self.path} has no index any more: {repair} makes it again from the runs")
            raise StoreError(f"there is no store at {self.path}; name another, or train a run first")
        with as_store_error(f"cannot open the store {self.path}"):
            self._connection = open_index(self._root, create=create)
        self._opened = identity(self._root)
        return self._connection

    @property
    def _index(self) -> sqlite3.Connection:
        """The open index. Of a store that is not there nothing can be read: its name may be misspelt."""
        return self._connection or self._open(create=False)

    def close(self) -> None:
        """Close the index. Saved runs are safe even without this."""
        if self._connection is not None:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self.is_there():
            return f"<Store {self.path}: not there yet>"
        counts = "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM sweeps)"
        try:
            runs, sweeps = self._index.execute(counts).fetchone()
        except (StoreError, sqlite3.Error):  # closed, or damaged, which is not for a repr to say
            return f"<Store {self.path}>"
        return f"<Store {self.path}: {runs:,} runs, {sweeps} sweeps>"

    def __del__(self) -> None:
        # From 3.13 on, Python warns of a connection that nobody closed. Another thread may not close it.
        with suppress(AttributeError, sqlite3.Error):
            self.close()

    def version(self) -> int:
        """A number that changes when another process, or another opening of the store, has changed the index."""
        with self._reading():
            (version,) = self._index.execute("PRAGMA data_version").fetchone()
        return int(version)

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[None]:
        """All or nothing. A durable transaction survives a power cut once it has returned; a lease need not."""
        self._make_if_new()
        self._index.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._index.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._index.execute("COMMIT")
        except BaseException:
            if self._index.in_transaction:
                self._index.execute("ROLLBACK")
            raise
        self._check_unmoved()

    def is_there(self) -> bool:
        """Whether the store was made, by this or by another process."""
        return self._connection is not None or os.path.lexists(self._root / INDEX)

    def _make_if_new(self) -> None:
        if self._connection is None:
            self.make()

    def _check_unmoved(self) -> None:
        """Refuse to go on if the store is no longer where it was opened: what is written would be lost."""
        if identity(self._root) != self._opened:
            raise StoreError(
                f"the store {self.path} was moved, removed or replaced while it was in use; what was saved before is "
                "where it went"
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with as_store_error(f"cannot read the store {self.path}"):
            yield

    def _warn(self, what: str, names: list[str]) -> None:
        """Say what is damaged and left out."""
        if names:
            some = ", ".join(f"{what} {name[:40]}" for name in names[:_NAMED_AT_ONCE])
            more = f" and {len(names) - _NAMED_AT_ONCE} more" if len(names) > _NAMED_AT_ONCE else ""
            warnings.warn(
                f"damaged in the store {self.path}, and left out: {some}{more}; "
                f"`grokscope store check{store_flag(self.path)}` says more",
                DamageWarning,
                stacklevel=3,
            )

    def _remove(self, files: list[Path]) -> None:
        for file in files:
            remove_inside(self._root, file)


def _is_free(path: Path) -> bool:
    """Whether a store could be made there: nothing is in its way, neither a file nor runs that lost their index."""
    nearest = next(place for place in (path, *path.parents) if os.path.lexists(place))
    return nearest.is_dir() and not (path / "runs").exists()


def store_flag(path: Path) -> str:
    """What a suggested command needs to find the same store.

    >>> store_flag(Path("grokscope-runs")), store_flag(Path("other"))
    ('', ' --store other')
    """
    return "" if path == DEFAULT_STORE else f" --store {path}"


def now() -> str:
    """The time of day in UTC, as the index has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def as_store_error(message: str) -> Iterator[None]:
    """Turn errors of the file system and of SQLite into a one-line StoreError."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{message}: {_reason(error)}") from error


def _reason(error: OSError | sqlite3.Error) -> str:
    """What went wrong, in words that say what to do where SQLite's own do not."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            repair = "`grokscope store check --repair` with this --store"
            return f"{error}; {repair} makes the index from the files of the runs"
        case sqlite3.SQLITE_READONLY:
            return "it can only be read: the disk is full, or this user may not write there"
        case sqlite3.SQLITE_IOERR:
            return f"{error}; is the disk full?"
    return str(getattr(error, "strerror", None) or error)

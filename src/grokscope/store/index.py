"""Opening the index of a store: for writing, or for reading where nothing can be written.

    index = open_index(Path("grokscope-runs"), create=False)

A row of the index has a *seal*, a hash of what it says. A row that was changed by anything but grokscope, be it a
program or a bad disk, no longer fits its seal.
"""

import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from functools import partial
from pathlib import Path

from grokscope.errors import StoreError
from grokscope.store.files import is_ordinary, write_new
from grokscope.store.schema import SCHEMA_VERSION, schema_version, upgrade

INDEX = "index.sqlite"
BUSY_SECONDS = 30.0  # how long a process waits while another one writes the index

Identity = tuple[int, int]  # of a file: its device and its number there


class EmptyIndexError(StoreError):
    """An index without the tables of a store."""


def open_index(store: Path, *, create: bool) -> sqlite3.Connection:
    """The index, at this format. With `create` it is made if the store is new; otherwise it may be read-only."""
    path = store / INDEX
    if os.path.lexists(path) and not is_ordinary(path):  # SQLite would wait for a pipe, and write through a link
        raise EmptyIndexError(f"{path} is not an ordinary file; {_how_to_mend(store)}")
    if create:
        return _opened_to_write(store, path)
    try:
        index = _connected(path, "mode=rw" if os.access(path, os.W_OK) and os.access(store, os.W_OK) else "mode=ro")
        version = schema_version(index)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _NO_ROOM_FOR_A_LOG:
            raise
        index = _without_a_log(path)
        version = schema_version(index)
    if 0 < version < SCHEMA_VERSION:
        try:
            upgrade(index)
        except sqlite3.OperationalError:
            index.close()
            index = _copied(path)
    _check_format(store, schema_version(index))
    return index


def identity(store: Path) -> Identity | None:
    """Which file the index of a store is; None if there is none."""
    try:
        found = (store / INDEX).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def has_runs(store: Path) -> bool:
    """Whether files of runs are there, with an index or without."""
    return any((store / "runs").glob("??/*.safetensors"))


def integrity_problem(store: Path) -> str | None:
    """What is wrong with the index as a database; None if nothing is. A newer format is not wrong, but an error."""
    if not os.path.lexists(store / INDEX):
        return "it is missing"
    try:
        index = open_index(store, create=False)
        (found,) = index.execute("PRAGMA integrity_check(1)").fetchone()
        index.close()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        return str(error)
    except EmptyIndexError as error:
        return str(error)
    return None if found == "ok" else str(found).splitlines()[-1]


# SQLite keeps its log, and a file to share it, beside the index. Without the right or the room to make them it says:
_NO_ROOM_FOR_A_LOG = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _opened_to_write(store: Path, path: Path) -> sqlite3.Connection:
    (store / "runs").mkdir(parents=True, exist_ok=True)
    found_runs = has_runs(store)  # asked first: another process may make the index, and then runs
    tempfile.TemporaryFile(dir=store / "runs").close()
    if not path.exists():
        if found_runs:
            raise StoreError(f"the store {store} has runs but no index; {_how_to_mend(store)}")
        write_new(path, _new_index())
    index = _connected(path, "mode=rwc")
    if not 0 <= schema_version(index) <= SCHEMA_VERSION:
        _check_format(store, schema_version(index))
    _write_ahead(index)
    if found_runs and schema_version(index) == 0:
        index.close()
        raise StoreError(f"the index of the store {store} is empty, but the store has runs; {_how_to_mend(store)}")
    upgrade(index)
    return index


def _new_index() -> bytes:
    """The file of an index without runs. Made in place, it would be seen by others before its tables are there."""
    index = _prepared(sqlite3.connect(":memory:", isolation_level=None))
    upgrade(index)
    content = index.serialize()
    index.close()
    return content


def _connected(path: Path, how: str) -> sqlite3.Connection:
    where = f"{path.absolute().as_uri()}?{how}"
    return _prepared(sqlite3.connect(where, timeout=BUSY_SECONDS, isolation_level=None, uri=True))


def _prepared(index: sqlite3.Connection) -> sqlite3.Connection:
    index.text_factory = partial(str, encoding="utf-8", errors="replace")  # a damaged row must not stop the others
    index.create_function("seal", -1, _seal, deterministic=True)
    return index


def _without_a_log(path: Path) -> sqlite3.Connection:
    """An index in a place that cannot be written.

    If no log lies beside it, all there is to know is in the index. Otherwise the newest runs are in the log, which
    SQLite can only read where it can write.
    """
    log = path.with_name(f"{path.name}-wal")
    return _copied(path) if log.exists() and log.stat().st_size else _connected(path, "immutable=1")


def _copied(path: Path) -> sqlite3.Connection:
    """A copy of the index and its log in memory, at this format, that can only be read."""
    index = _prepared(sqlite3.connect(":memory:", isolation_level=None))
    with tempfile.TemporaryDirectory(prefix="grokscope-") as directory:
        for file in (path, path.with_name(f"{path.name}-wal")):
            if file.exists():
                shutil.copyfile(file, Path(directory) / file.name)
        copy = _connected(Path(directory) / path.name, "mode=rw")
        copy.backup(index)
        copy.close()
    if 0 < schema_version(index) < SCHEMA_VERSION:
        upgrade(index)
    index.execute("PRAGMA query_only = ON")
    return index


def _check_format(store: Path, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the store {store} was written by a newer grokscope (format {version}, this one reads "
            f"{SCHEMA_VERSION}); upgrade grokscope, or use another --store"
        )
    if version < SCHEMA_VERSION:
        raise EmptyIndexError(
            f"the index of the store {store} is empty or not of grokscope (format {version}); {_how_to_mend(store)}"
        )


def _how_to_mend(store: Path) -> str:
    return f"`grokscope store check --repair --store {store}` makes it from the files of the runs"


def _write_ahead(index: sqlite3.Connection) -> None:
    """Switch a new index to a write-ahead log, so that readers and a writer do not wait for each other.

    SQLite waits for other processes everywhere but here: of two that switch at the same moment one fails at once.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            index.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _seal(*values: object) -> str:
    """A hash of some columns of a row."""
    return hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()

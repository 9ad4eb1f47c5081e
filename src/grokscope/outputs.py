"""Text and tables that are written to files, and whether they can be before hours of work are done for them."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from grokscope.errors import GrokscopeError
from grokscope.store.files import write_atomically
from grokscope.tables import Table, csv_text


def check_writable(paths: Iterable[Path]) -> None:
    """Refuse paths that cannot be written. Makes their directories, and tries to write a file in each."""
    for path in paths:
        if path.is_dir():
            raise GrokscopeError(f"cannot write {path}: it is a directory; name another --out")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path.parent).close()
        except OSError as error:
            raise GrokscopeError(f"cannot write {path}: {error.strerror or error}; name another --out") from None


def write_text(path: Path, text: str) -> Path:
    """Write the whole text or nothing, and return the absolute path."""
    path = path.resolve()  # a link stays one
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as error:
        raise GrokscopeError(f"cannot write {path}: {error.strerror or error}") from None
    return path


def write_table(path: Path, columns: Table) -> Path:
    """The columns as CSV; the absolute path."""
    return write_text(path, csv_text(columns))

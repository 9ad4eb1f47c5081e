"""Text and tables that are written to files, and whether they can be before hours of work are done for them."""

import csv
import io
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from grokscope.errors import GrokscopeError
from grokscope.store.files import write_atomically

Table = dict[str, Sequence[object]]  # columns of one length


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
        write_atomically(path, text.encode())
    except OSError as error:
        raise GrokscopeError(f"cannot write {path}: {error.strerror or error}") from None
    return path


def write_table(path: Path, columns: Table) -> Path:
    """The columns as CSV; the absolute path."""
    return write_text(path, csv_text(columns))


def csv_text(columns: Mapping[str, Sequence[object]]) -> str:
    r"""A line of names, then one for each row.

    >>> csv_text({"width": [250, 500], "phase": ["Coexistence", "Memorization"]})
    'width,phase\n250,Coexistence\n500,Memorization\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()

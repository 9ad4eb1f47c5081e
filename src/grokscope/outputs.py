"""Files that are written for users, whole or not at all, and whether they can be before hours of work are done."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from grokscope.errors import GrokscopeError
from grokscope.store.files import replacing
from grokscope.tables import Table, csv_text


def check_writable(paths: Iterable[Path]) -> None:
    """Refuse paths that cannot be written. Makes their directories, and tries to write a file in each."""
    for path in paths:
        with _one_line_for(path, "; name another --out"):
            if path.is_dir():
                raise GrokscopeError(f"cannot write {path}: it is a directory; name another --out")
            if not _is_pipe_or_device(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=path.parent).close()


def write_file(path: Path, content: bytes) -> Path:
    """Write the whole content or nothing, as `whole_file` does, and return the absolute path."""
    with whole_file(path) as place:
        place.write_bytes(content)
    return path.absolute() if _is_pipe_or_device(path) else path.resolve()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yields a path to write to, whose file becomes that of `path` if the block ends well, and is removed otherwise.

    A link stays one: what it points to is written. A file that is replaced keeps its permissions, and one that may not
    be written is left alone.
    """
    with _one_line_for(path):
        if _is_pipe_or_device(path):  # there is nothing to lose, and nothing to replace
            with tempfile.TemporaryDirectory(prefix="grokscope-") as directory:
                place = Path(directory) / "file"
                yield place
                with place.open("rb") as file, path.open("wb") as pipe:
                    shutil.copyfileobj(file, pipe)
            return
        path = path.resolve()
        before = path.stat().st_mode if path.exists() else None
        if before is not None and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as place:
            yield place
        if before is not None:
            path.chmod(stat.S_IMODE(before))


def write_text(path: Path, text: str) -> Path:
    """The text in UTF-8; the absolute path."""
    return write_file(path, text.encode())


def write_table(path: Path, columns: Table) -> Path:
    """The columns as CSV; the absolute path."""
    return write_text(path, csv_text(columns))


def _is_pipe_or_device(path: Path) -> bool:
    """Whether something is there that takes bytes and keeps none, such as /dev/null."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _one_line_for(path: Path, advice: str = "") -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:  # Python before 3.13 says RuntimeError of links in a circle
        raise GrokscopeError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}{advice}") from None

"""Files inside a store: written whole or not at all, read only if they are ordinary files, removed only from inside."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: bytes) -> None:
    """Write under another name, then rename: after a crash `path` is whole or absent. A stray file does no harm."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields another name beside `path`: the file written there takes its place at the end, or goes with an error."""
    temporary = _name_beside(path)
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that nobody sees half written. One that is already there stays.

    It needs a file system with hard links. On others nothing is written, and no error is raised.
    """
    temporary = _name_beside(path)
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def move(path: Path, to: Path) -> None:
    """Rename a file; after a power cut it is in one place or the other."""
    path.replace(to)
    _sync_directory(to.parent)
    _sync_directory(path.parent)


def read_inside(root: Path, path: Path) -> bytes:
    """The content of an ordinary file below `root`."""
    with _opened_inside(root, path) as file:
        return file.read()


def read_head_inside(root: Path, path: Path) -> bytes:
    """The head of a safetensors file below `root`: JSON that names its arrays."""
    with _opened_inside(root, path) as file:
        length = int.from_bytes(file.read(8), "little")
        return file.read(min(length, os.fstat(file.fileno()).st_size))


def _opened_inside(root: Path, path: Path) -> BinaryIO:
    """No link is followed, and nothing that could wait for ever is read.

    A pipe in the place of a file would block its reader, and a link could lead to anybody's files.
    """
    if not is_inside(root, path):
        raise OSError(f"{path} does not lie inside the store")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(f"{path} is not an ordinary file")
    return file


def is_ordinary(path: Path) -> bool:
    """Whether it is a file, and not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def remove_inside(root: Path, path: Path) -> None:
    """Remove a file below `root` if it is there; one that lies elsewhere stays."""
    if is_inside(root, path):
        path.unlink(missing_ok=True)


def is_inside(root: Path, path: Path) -> bool:
    """Whether the directory of a file lies below `root`, links resolved."""
    return path.parent.resolve().is_relative_to(root.resolve()) and ".." not in path.parts


def _name_beside(path: Path) -> Path:
    """A name that no other process uses. A stray file of that name does no harm."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

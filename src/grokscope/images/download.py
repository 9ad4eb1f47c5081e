"""MNIST from a public mirror: each file is continued where an earlier attempt ended, and kept only if it is right.

download_mnist(Path("mnist"), on_progress=lambda name, done, size: print(name, done, size))
"""

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from grokscope.images.idx import ImageDataError

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
GZ_MD5 = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
_AT_ONCE = 1 << 16
_MOST_BYTES = 1 << 28  # of a file: a wrong address may send without end
_SECONDS = 30  # without a byte
Progress = Callable[[str, int, int], None]  # name of the file, bytes that are there, bytes in all


def download_mnist(
    directory: Path, *, mirror: str = MIRROR, on_progress: Progress | None = None, checksums: dict[str, str] = GZ_MD5
) -> list[Path]:
    """Get the files that are not there yet; the paths of all. What was begun before is continued."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, checksum in checksums.items():
        path = directory / name
        if not path.is_file() or _md5(path) != checksum:
            _download(f"{mirror.rstrip('/')}/{name}", path, checksum, on_progress)
        paths.append(path)
    return paths


def _download(address: str, path: Path, checksum: str, on_progress: Progress | None) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        if not part.is_file() or _md5(part) != checksum:  # it may be whole, and only its name be missing
            _fetch(address, part, path.name, on_progress)
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise ImageDataError(f"cannot get {address}: {reason}; the same command goes on where this one ended") from None
    if _md5(part) != checksum:
        part.unlink()
        raise ImageDataError(f"{address} is not the file it should be (its MD5 is another): nothing was kept")
    part.replace(path)


def _fetch(address: str, part: Path, name: str, on_progress: Progress | None) -> None:
    begun = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={begun}-"} if begun else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # the part is longer than the file
            raise
        part.unlink()
        answer = urllib.request.urlopen(address, timeout=_SECONDS)
    with answer:
        done = begun if answer.status == 206 else 0  # a server may send the whole file all the same
        size = done + int(answer.headers.get("Content-Length") or 0)
        with part.open("ab" if done else "wb") as file:
            while chunk := answer.read(_AT_ONCE):
                file.write(chunk)
                done += len(chunk)
                if done > _MOST_BYTES:
                    raise ImageDataError(f"{address} sends more than a file of MNIST has")
                if on_progress is not None:
                    on_progress(name, done, size)
    if done < size:
        raise ConnectionError("the connection ended early")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()

"""IDX files of bytes, plain or compressed with gzip.

images = read_idx(Path("mnist/train-images-idx3-ubyte"), dimensions=3)     # [60000, 28, 28] uint8

An IDX file is four bytes, 0 0 8 and the number of dimensions, then each dimension as four bytes, then the values.
"""

import gzip
import math
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from grokscope.errors import GrokscopeError

Bytes = npt.NDArray[np.uint8]
_BYTES = 8  # the code of unsigned bytes
_MOST_BYTES = 2**32  # a compressed file says how large it is only in its header, which may be wrong


class ImageDataError(GrokscopeError):
    """Files of images that are missing, damaged, or not the ones that were asked for."""


def read_idx(path: Path, dimensions: int) -> Bytes:
    """The values of a file, which must have this many dimensions; `.gz` is unpacked."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return _values(file, path, dimensions)  # type: ignore[arg-type]  # a GzipFile reads as any file does
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ImageDataError(f"{path} is not a whole gzip file: get it again") from None
    except OSError as error:
        raise ImageDataError(f"cannot read {path}: {error.strerror or error}") from None


def _values(file: BinaryIO, path: Path, dimensions: int) -> Bytes:
    magic = file.read(4)
    if magic != bytes((0, 0, _BYTES, dimensions)):
        raise ImageDataError(
            f"{path} is not an IDX file of bytes with {dimensions} dimension{'s' * (dimensions > 1)}: it begins with "
            f"{magic.hex(' ') or 'nothing'}, not with 00 00 08 {dimensions:02x}"
        )
    header = file.read(4 * dimensions)
    if len(header) < 4 * dimensions:
        raise ImageDataError(f"{path} ends within its header: get it again")
    shape = tuple(int(size) for size in np.frombuffer(header, ">u4"))
    expected = math.prod(shape)
    if not 0 < expected <= _MOST_BYTES:
        raise ImageDataError(f"{path} says that its sizes are {' × '.join(map(str, shape))}, which cannot be")
    content = file.read(expected + 1)
    if len(content) != expected:
        come = f"only {len(content)}" if len(content) < expected else "more"
        raise ImageDataError(f"{path} should have {expected} values by its header, and has {come}: get it again")
    return np.frombuffer(content, np.uint8).reshape(shape)

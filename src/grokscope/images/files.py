"""A directory of images for training and for testing, under the names that MNIST's files have.

files = read_images(Path("mnist"))
files.train_images.shape, files.name == MNIST      # ((60000, 28, 28), True)

The name of some data says how much there is and ends with a hash, so that a run can say what it was trained on wherever
the files lie, and be looked at where they are not.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from grokscope.errors import GrokscopeError
from grokscope.images.idx import Bytes, ImageDataError, read_idx

DATA_DIRECTORY = "GROKSCOPE_DATA_DIR"  # the environment variable, which worker processes inherit
_DEFAULT_DIRECTORY = "mnist"
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
# Of the unpacked files of MNIST, in this order.
_MNIST_MD5 = (
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
)


class DataName(NamedTuple):
    """What the name of some data says: 60000+10000x784x10-c0ffee…"""

    train: int
    test: int
    pixels: int
    classes: int
    hash: str

    def __str__(self) -> str:
        return f"{self.train}+{self.test}x{self.pixels}x{self.classes}-{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "DataName | None":
        """The parts of a name; None if it is none.

        >>> DataName.parse(MNIST).train, DataName.parse("mnist")
        (60000, None)
        """
        found = re.fullmatch(r"(\d{1,9})\+(\d{1,9})x(\d{1,9})x(\d{1,5})-([0-9a-f]{16})", text)
        if not found:
            return None
        train, test, pixels, classes = (int(found[place]) for place in range(1, 5))
        return cls(train, test, pixels, classes, found[5])


def _hash(checksums: tuple[str, ...]) -> str:
    return hashlib.sha256(" ".join(checksums).encode()).hexdigest()[:16]


MNIST = str(DataName(60000, 10000, 784, 10, _hash(_MNIST_MD5)))


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """What the four files hold."""

    name: str
    train_images: Bytes  # [n, rows, columns]
    train_labels: Bytes  # [n]
    test_images: Bytes
    test_labels: Bytes


def data_directory() -> Path:
    """Where images are looked for: what --data-dir or the environment says, or ./mnist."""
    return Path(os.environ.get(DATA_DIRECTORY) or _DEFAULT_DIRECTORY)


def why_no_data(directory: Path | None = None) -> str:
    """Why there are no images in a directory, in words; nothing if there are, whatever is in them."""
    directory = directory or data_directory()
    get = "`grokscope download` gets MNIST, and --data-dir says where it is"
    if not directory.is_dir():
        return f"there is no directory {str(directory)!r} with images: {get}"
    missing = [name for name in NAMES if _path(directory, name) is None]
    return f"{directory} has no {missing[0]} (nor {missing[0]}.gz): {get}" if missing else ""


@lru_cache(maxsize=1)  # 55 MB
def read_images(directory: Path, expected: str | None = None) -> ImageFiles:
    """Read and check all four files. `expected` is the name of the data that they should be."""
    if reason := why_no_data(directory):
        raise ImageDataError(reason)
    paths = [path for name in NAMES if (path := _path(directory, name))]
    images, labels, test_images, test_labels = (
        read_idx(path, dimensions) for path, dimensions in zip(paths, (3, 1, 3, 1), strict=True)
    )
    for path, own, theirs in ((paths[1], labels, images), (paths[3], test_labels, test_images)):
        if len(own) != len(theirs):
            raise ImageDataError(f"{path} has {len(own)} labels for {len(theirs)} images")
    if images.shape[1:] != test_images.shape[1:]:
        raise ImageDataError(
            f"{directory} has images of {_size(images)} to train on and of {_size(test_images)} to test on"
        )
    checksums = tuple(
        hashlib.md5(_file_bytes(array)).hexdigest() for array in (images, labels, test_images, test_labels)
    )
    classes = int(max(labels.max(), test_labels.max())) + 1
    name = str(DataName(len(images), len(test_images), images[0].size, classes, _hash(checksums)))
    if expected not in (None, name):
        which = "MNIST" if expected == MNIST else f"the data {expected}"
        raise ImageDataError(
            f"the files in {directory} are not {which}: they are {name}, and to train on them set task.data to that"
        )
    return ImageFiles(name, images, labels, test_images, test_labels)


def _path(directory: Path, name: str) -> Path | None:
    """The plain file, or else the compressed one."""
    return next((path for path in (directory / name, directory / f"{name}.gz") if path.is_file()), None)


def _file_bytes(array: Bytes) -> bytes:
    """The plain IDX file that holds an array: the hash is the same for a plain and a compressed one."""
    header = bytes((0, 0, 8, array.ndim)) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return header + array.tobytes()


def _size(images: Bytes) -> str:
    return " × ".join(map(str, images.shape[1:]))


def check_data_name(name: str) -> DataName:
    """The parts of a name; an error if it is none."""
    parts = DataName.parse(name)
    if parts is None:
        raise GrokscopeError("must be a name such as " + MNIST)
    return parts

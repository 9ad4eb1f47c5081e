"""IDX files that were made up: small images whose label can be seen."""

import gzip
from pathlib import Path

import numpy as np
import numpy.typing as npt

from grokscope.images.files import NAMES

SIDE, CLASSES = 6, 4


def idx_bytes(array: npt.NDArray[np.uint8]) -> bytes:
    """Written out by the rules of the format."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def bright_rows(count: int, seed: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Noise with one bright row, which is the label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=count).astype(np.uint8)
    images = rng.integers(0, 60, size=(count, SIDE, SIDE)).astype(np.uint8)
    images[np.arange(count), labels] += 150
    return images, labels


def write_images(directory: Path, *, train: int = 300, test: int = 80, compressed: bool = False) -> Path:
    """The four files of a data directory."""
    directory.mkdir(parents=True, exist_ok=True)
    arrays = (*bright_rows(train, 0), *bright_rows(test, 1))
    for name, array in zip(NAMES, arrays, strict=True):
        content = idx_bytes(array)
        if compressed:
            (directory / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (directory / name).write_bytes(content)
    return directory

"""Images of IDX files as classification: MNIST unless other data is named.

ImageTask(corruption=0.35).dataset()      # reads ./mnist, or the directory in GROKSCOPE_DATA_DIR
"""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from grokscope.arrays import Int64Array
from grokscope.errors import GrokscopeError
from grokscope.images import MNIST, ImageDataError, data_directory, read_images
from grokscope.images.files import DataName, check_data_name
from grokscope.randomness import Stream, permutation
from grokscope.tasks.dataset import Examples
from grokscope.tasks.task import InputShape, Seeding, Task


class ImageTask(Task):
    """Which digit is it? `data_fraction` is of the training images; the test images are always all of theirs."""

    kind: str = "images"
    data: str = MNIST  # how much there is and a hash; where the files lie is no part of it
    data_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0

    _noun: ClassVar[str] = "training images"

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            check_data_name(self.data)
        except GrokscopeError as error:
            raise self.refuse("data", str(error)) from None
        self.check()
        return self

    def describe(self) -> str:
        """MNIST, or how much there is.

        >>> ImageTask().describe()
        'MNIST'
        """
        return "MNIST" if self.data == MNIST else f"images {self.data}"

    @property
    def _size(self) -> DataName:
        return check_data_name(self.data)

    @property
    def example_count(self) -> int:
        """How many training images there are in all."""
        return self._size.train

    @property
    def classes(self) -> int:
        """The digits."""
        return self._size.classes

    @property
    def inputs(self) -> InputShape:
        """The pixels."""
        return InputShape(False, self._size.pixels, 0)

    @property
    def named_by_pairs(self) -> bool:
        """There are no pairs."""
        return False

    def why_no_data(self) -> str:
        """Its files are missing, damaged or others."""
        try:
            read_images(data_directory().resolve(), self.data)
        except ImageDataError as error:
            return str(error)
        return ""

    def examples(self) -> Examples:
        """The training images, then the test images, with pixels from 0 to 1."""
        return _examples(data_directory().resolve(), self.data)

    def _split(self, examples: Examples, seed: int, seeding: Seeding) -> tuple[Int64Array, Int64Array]:
        """The first α of the shuffled training images, and all test images."""
        if seeding != "independent":
            raise GrokscopeError(str(self.why_no_reference()))
        train, everything = self._size.train, np.arange(len(examples.labels))
        return permutation(seed, Stream.SPLIT, 0, examples.names[:train])[: self.training_size], everything[train:]


@lru_cache(maxsize=1)  # 220 MB
def _examples(directory: Path, data: str) -> Examples:
    files = read_images(directory, data)
    images = np.concatenate([files.train_images, files.test_images])
    pixels = images.reshape(len(images), -1).astype(np.float32) / 255  # [n, rows · columns]
    labels = np.concatenate([files.train_labels, files.test_labels]).astype(np.int64)
    return Examples(pixels, labels, check_data_name(data).classes)

"""Sparse parity: whether an odd number of the first few of many bits is set.

>>> dataset = ParityTask(bit_count=6, relevant_bits=2, corruption=0).dataset()
>>> dataset.train_inputs.shape, sorted(set(dataset.train_inputs.ravel().tolist()))
((32, 6), [-1.0, 1.0])
"""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from grokscope.tasks.dataset import Examples
from grokscope.tasks.task import Task


class ParityTask(Task):
    """The parity of the first `relevant_bits` of all bits; the others say nothing."""

    kind: str = "parity"
    bit_count: Annotated[int, Field(ge=2, le=18)] = 12
    relevant_bits: Annotated[int, Field(ge=1)] = 3

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.relevant_bits > self.bit_count:
            raise self.refuse("relevant_bits", f"there are {self.bit_count} bits")
        self.check()
        return self

    def describe(self) -> str:
        """How many bits of how many.

        >>> ParityTask().describe()
        'parity of 3 of 12 bits'
        """
        return f"parity of {self.relevant_bits} of {self.bit_count} bits"

    def examples(self) -> Examples:
        """All combinations of the bits, as −1 and 1, in the order of the numbers that they write."""
        numbers = np.arange(2**self.bit_count)
        bits = numbers[:, None] >> np.arange(self.bit_count)[::-1] & 1  # [2ᵇⁱᵗˢ, bits]
        odd = bits[:, : self.relevant_bits].sum(axis=1) % 2
        return Examples((2 * bits - 1).astype(np.float32), odd, classes=2)

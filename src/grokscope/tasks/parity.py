"""Sparse parity: whether an odd number of the first few of many bits is set.

>>> dataset = ParityTask(bits=6, relevant=2, corruption=0).dataset()
>>> dataset.train_inputs.shape, sorted(set(dataset.train_inputs.ravel().tolist()))
((32, 6), [-1.0, 1.0])
"""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from grokscope.tasks.dataset import Examples
from grokscope.tasks.task import Task


class ParityTask(Task):
    """The parity of the first `relevant` of all `bits`; the others say nothing."""

    kind: str = "parity"
    bits: Annotated[int, Field(ge=2, le=18)] = 12
    relevant: Annotated[int, Field(ge=1)] = 3

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.relevant > self.bits:
            raise self.refuse("relevant", f"there are {self.bits} bits")
        self.check()
        return self

    def describe(self) -> str:
        """How many bits of how many.

        >>> ParityTask().describe()
        'parity of 3 of 12 bits'
        """
        return f"parity of {self.relevant} of {self.bits} bits"

    def examples(self) -> Examples:
        """All combinations of the bits, as −1 and 1, in the order of the numbers that they write."""
        numbers = np.arange(2**self.bits)
        bits = numbers[:, None] >> np.arange(self.bits)[::-1] & 1  # [2ᵇⁱᵗˢ, bits]
        odd = bits[:, : self.relevant].sum(axis=1) % 2
        return Examples((2 * bits - 1).astype(np.float32), odd, classes=2)

"""A task of your own: is the number of ones among some bits odd?

    grokscope train --task examples/sparse_parity.py:SparseParity --set task.bits=10 --set task.secret=3 \
        --width 200 --activation relu --data-fraction .6 --corruption .1 --steps 1000

There are `bits` bits in all, and the answer depends on the first `secret` of them. A network that memorises needs all
bits; one that has found the rule needs the secret ones.
"""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

import grokscope as gs


class SparseParity(gs.Task):
    """All patterns of `bits` bits, and the parity of the first `secret`."""

    bits: Annotated[int, Field(ge=2, le=16)] = 10
    secret: Annotated[int, Field(ge=1)] = 3

    @model_validator(mode="after")
    def _secret_is_among_the_bits(self) -> Self:
        if self.secret > self.bits:
            raise self.refuse("secret", f"there are task.bits = {self.bits} bits")
        return self

    def examples(self) -> gs.Examples:
        """Every pattern once: tokens 0 and 1, one position for each bit."""
        inputs = np.indices((2,) * self.bits).reshape(self.bits, -1).T  # [2^bits, bits]
        return gs.Examples(inputs, inputs[:, : self.secret].sum(axis=1) % 2, classes=2)

"""Multiplication in a finite group as classification: every pair of elements and their product.

>>> dataset = GroupTask(group="S3", corruption=0).dataset()
>>> dataset.train_inputs.shape, dataset.classes
((18, 2), 6)
"""

from functools import cache
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, model_validator

from grokscope.groups import Irreducibles, group_called, why_no_group
from grokscope.tasks.dataset import Examples
from grokscope.tasks.task import Task


def _upper_case(value: object) -> object:
    """Accept s5 for S5."""
    return value.upper() if isinstance(value, str) else value


class GroupTask(Task):
    """a·b in a group of permutations (S2 … S5), of a polygon (D3, D4, …) or of residues (C2, C3, …)."""

    kind: str = "group"
    group: Annotated[str, BeforeValidator(_upper_case)] = "S5"

    _noun: ClassVar[str] = "pairs"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if reason := why_no_group(self.group):
            raise self.refuse("group", reason)
        self.check()
        return self

    def describe(self) -> str:
        """The group.

        >>> GroupTask(group="d8").describe()
        'products in D8'
        """
        return f"products in {self.group}"

    def examples(self) -> Examples:
        """All pairs in the order of a·|G| + b, which is also what they are called."""
        return _pairs(self.group)

    def waves(self) -> Irreducibles:
        """The irreducible representations, which for residues are the waves."""
        return _irreducibles(self.group)

    def why_no_waves(self) -> str:
        """Representations have no phases."""
        return (
            f"there are no phases to show for {self.describe()}: its spectrum is over irreducible representations, "
            "of which `grokscope show` and result.neurons have the IPR"
        )


@cache
def _pairs(group: str) -> Examples:
    table = group_called(group).table
    pairs = np.indices(table.shape).reshape(2, -1).T  # [order², 2]
    return Examples(pairs, table.ravel(), classes=len(table))


@cache
def _irreducibles(group: str) -> Irreducibles:
    return Irreducibles(group_called(group))

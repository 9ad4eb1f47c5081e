"""Modular arithmetic as classification: every pair (m, n) and its answer.

>>> dataset = ModularTask(modulus=5, data_fraction=0.4, corruption=0.5).dataset()
>>> dataset.train_inputs.shape, dataset.test_inputs.shape, int(dataset.corrupted.sum())
((10, 2), (15, 2), 5)
"""

import math
import random
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from grokscope.arrays import BoolArray, Int64Array
from grokscope.errors import SpecError
from grokscope.tasks.dataset import Examples, Inputs
from grokscope.tasks.task import InputShape, Seeding, Task
from grokscope.waves import Waves, logarithmic_order

Operation = Literal["add", "subtract", "multiply", "divide", "x2+y2", "x2+xy+y2"]
_REFERENCE_SPLIT_SEED = 420
_REFERENCE_LABEL_SEED = 0


def _list_to_sorted_tuple(value: object) -> object:
    """Accept the lists of JSON and TOML; one set of operands is one spec, in whatever order it is written."""
    if isinstance(value, list | tuple) and all(type(item) is int for item in value):
        return tuple(sorted(set(value)))
    return value


class ModularTask(Task):
    """m and n modulo p: the paper's task."""

    kind: str = "modular"
    operation: Operation = "add"
    modulus: Annotated[int, Field(ge=2, lt=65536)] = 97
    corrupted_operands: Annotated[tuple[int, ...] | None, BeforeValidator(_list_to_sorted_tuple)] = None

    _noun: ClassVar[str] = "pairs"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.operation == "divide" and not is_prime(self.modulus):
            raise self.refuse("modulus", f"operation 'divide' needs a prime, such as {_next_prime(self.modulus)}")
        self.check()
        if self.corrupted_operands is not None:
            if not self.corrupted_operands:
                raise self.refuse("corrupted_operands", "name at least one value of m, or leave it out")
            if not 0 <= self.corrupted_operands[0] <= self.corrupted_operands[-1] < self.modulus:
                raise self.refuse("corrupted_operands", f"values of m are 0 … {self.modulus - 1}")
        return self

    def describe(self) -> str:
        """Operation and modulus.

        >>> ModularTask().describe()
        'add mod 97'
        """
        return f"{self.operation} mod {self.modulus}"

    @property
    def example_count(self) -> int:
        """How many pairs (m, n) have an answer: nothing can be divided by 0."""
        if self._other_examples:
            return super().example_count
        return self.modulus * (self.modulus - (self.operation == "divide"))

    @property
    def classes(self) -> int:
        """The residues."""
        return super().classes if self._other_examples else self.modulus

    @property
    def inputs(self) -> InputShape:
        """Pairs of residues."""
        return super().inputs if self._other_examples else InputShape(True, 2, self.modulus)

    @property
    def named_by_pairs(self) -> bool:
        """They are."""
        return super().named_by_pairs if self._other_examples else True

    @property
    def _other_examples(self) -> bool:
        """Whether a subclass has examples of its own, of which nothing is known without making them."""
        return type(self).examples is not ModularTask.examples

    def examples(self) -> Examples:
        """All pairs in the order of m·p + n, which is also what they are called."""
        p = self.modulus
        names = np.arange(p * p, dtype=np.int64)
        if self.operation == "divide":
            names = names[names % p != 0]
        pairs = np.stack([names // p, names % p], axis=1)  # [pair_count, 2]
        return Examples(pairs, _OPERATIONS[self.operation](pairs[:, 0], pairs[:, 1], p) % p, classes=p, names=names)

    def waves(self) -> Waves:
        """Over the index for addition and subtraction, over its discrete logarithm for multiplication and division.

        For x² + y² and x² + xy + y² over the index too: the output layer is periodic in it, the input layers are
        periodic in the square.
        """
        return modular_waves(self.operation, self.modulus)

    def why_no_reference(self) -> str | None:
        """The authors' labels are uniform over all operands."""
        if self.corruption_kind == "symmetric" and self.corrupted_operands is None:
            return None
        return "the authors' labels exist only for task.corruption_kind = 'symmetric' on all operands"

    def _shuffled(self, examples: Examples, seed: int, seeding: Seeding) -> Int64Array:
        if seeding == "independent":
            return super()._shuffled(examples, seed, seeding)
        if seeding != "reference":
            raise SpecError(f"seeding = {seeding!r} is not allowed: must be one of independent, reference")
        shuffled = list(range(self.modulus**2))
        random.Random(_REFERENCE_SPLIT_SEED).shuffle(shuffled)
        # Pairs that cannot be divided were shuffled with the others, and then left out.
        places = np.full(self.modulus**2, -1, np.int64)
        places[examples.names] = np.arange(len(examples.names))
        order = places[shuffled]
        return order[order >= 0]

    def _eligible(self, inputs: Inputs) -> BoolArray:
        if self.corrupted_operands is None:
            return super()._eligible(inputs)
        return np.isin(inputs[:, 0], self.corrupted_operands)

    def _drawn_labels(self, truth: Int64Array, names: Int64Array, seed: int, seeding: Seeding) -> Int64Array:
        if seeding == "reference":
            return _reference_labels(self.modulus, len(truth))
        return super()._drawn_labels(truth, names, seed, seeding)


def modular_waves(operation: Operation, modulus: int) -> Waves:
    """What a wave is for an operation.

    >>> modular_waves("multiply", 5).order.tolist(), modular_waves("subtract", 5).second_phase
    ([1, 2, 4, 3], -1)
    """
    match operation:
        case "add" | "subtract":
            return Waves(np.arange(modulus), second_phase=1 if operation == "add" else -1)
        case "multiply" | "divide":
            return Waves(
                logarithmic_order(modulus),
                second_phase=1 if operation == "multiply" else -1,
                axis="frequency over discrete logarithms",
            )
        case _:
            return Waves(
                np.arange(modulus),
                why_no_relation=f"for {operation} the inputs are periodic in squares, so there is no relation between "
                "the phases",
            )


def is_prime(number: int) -> bool:
    """Whether `number` is a prime, by trial division."""
    return number >= 2 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def _next_prime(number: int) -> int:
    while not is_prime(number):
        number += 1
    return number


def _reference_labels(modulus: int, count: int) -> Int64Array:
    """The authors' labels, from their generator: torch's, in a state of its own."""
    import torch

    generator = torch.Generator().manual_seed(_REFERENCE_LABEL_SEED)
    labels: Int64Array = torch.randint(0, modulus, (count,), generator=generator).numpy()
    return labels


def _divide(m: Int64Array, n: Int64Array, p: int) -> Int64Array:
    inverse = np.array([0, *(pow(k, -1, p) for k in range(1, p))], dtype=np.int64)
    return m * inverse[n]


_OPERATIONS: dict[Operation, Callable[[Int64Array, Int64Array, int], Int64Array]] = {
    "add": lambda m, n, p: m + n,
    "subtract": lambda m, n, p: m - n,
    "multiply": lambda m, n, p: m * n,
    "divide": _divide,
    "x2+y2": lambda m, n, p: m * m + n * n,
    "x2+xy+y2": lambda m, n, p: m * m + m * n + n * n,
}

"""Modular arithmetic as classification: every pair (m, n), its answer, and the split into training and test set.

>>> dataset = make_dataset(TaskSpec(modulus=5, data_fraction=0.4, corruption=0.5))
>>> dataset.train_pairs.shape, dataset.test_pairs.shape, int(dataset.corrupted.sum())
((10, 2), (15, 2), 5)
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grokscope.errors import SpecError
from grokscope.randomness import Int64Array, Stream, permutation
from grokscope.spec import Operation, Seeding, TaskSpec
from grokscope.tasks.corruption import corrupt

_REFERENCE_SPLIT_SEED = 420


@dataclass(frozen=True)
class Dataset:
    """One task, split and corrupted. Arrays are read-only; the training set keeps its shuffled order."""

    operation: Operation
    modulus: int
    corruption: float  # ξ as Table 2 uses it: of the whole training set, and before rounding to whole examples
    train_pairs: Int64Array  # [n_train, 2]
    train_labels: Int64Array  # [n_train]  what the network is trained on
    train_truth: Int64Array  # [n_train]  what the operation gives
    corrupted: npt.NDArray[np.bool_]  # [n_train]  label was drawn, which by chance may be the true one
    test_pairs: Int64Array  # [n_test, 2]
    test_labels: Int64Array  # [n_test]  always true

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def train_examples(self) -> Int64Array:
        """The place m·p + n of every training pair in the full grid: its name in the random streams."""
        return self.train_pairs[:, 0] * self.modulus + self.train_pairs[:, 1]


def make_dataset(task: TaskSpec, seed: int = 0, seeding: Seeding = "independent") -> Dataset:
    """Shuffle all pairs once; the first α of them are the training set, the first ξ of those are corrupted.

    So training sets are nested in α, and corrupted sets in ξ. `seeding="reference"` gives the authors' split
    and labels, whatever the seed.
    """
    p = task.modulus
    order = _shuffled_examples(p, seed, seeding)  # [p²]
    pairs = np.stack([order // p, order % p], axis=1)  # [p², 2]
    if task.operation == "divide":
        pairs = pairs[pairs[:, 1] != 0]
    truth = _OPERATIONS[task.operation](pairs[:, 0], pairs[:, 1], p) % p  # [pair_count]

    n = task.training_size
    labels, corrupted, eligible = corrupt(task, pairs[:n], truth[:n], seed, seeding)
    return Dataset(
        operation=task.operation,
        modulus=p,
        corruption=task.corruption * eligible,
        train_pairs=pairs[:n],
        train_labels=labels,
        train_truth=truth[:n],
        corrupted=corrupted,
        test_pairs=pairs[n:],
        test_labels=truth[n:],
    )


def _shuffled_examples(modulus: int, seed: int, seeding: Seeding) -> Int64Array:
    examples = np.arange(modulus**2, dtype=np.int64)
    if seeding == "independent":
        return permutation(seed, Stream.SPLIT, 0, examples)
    if seeding != "reference":
        raise SpecError(f"seeding = {seeding!r} is not allowed: must be one of independent, reference")
    shuffled = examples.tolist()
    random.Random(_REFERENCE_SPLIT_SEED).shuffle(shuffled)
    return np.array(shuffled, dtype=np.int64)


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

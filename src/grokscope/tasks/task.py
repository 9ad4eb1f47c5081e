"""What every task is: its fields, all its examples, and what a wave is for it.

    class Parity(Task):
        bits: int = 8

        def examples(self):
            inputs = np.indices((2,) * self.bits).reshape(self.bits, -1).T
            return Examples(inputs, inputs.sum(axis=1) % 2, classes=2)

The split into training and test set, the wrong labels and everything after them are the same for all tasks.
"""

import math
from abc import abstractmethod
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from grokscope.arrays import BoolArray, Int64Array
from grokscope.errors import GrokscopeError, did_you_mean
from grokscope.extension import Complete, ExtensionError, explained, is_reference, named, pinned
from grokscope.randomness import Stream, permutation
from grokscope.section import UNRESOLVED_CONFIG, KindSection, Unresolved
from grokscope.tasks.corruption import CORRUPTIONS, Corruption, corruption_called
from grokscope.tasks.dataset import Dataset, Examples, Inputs
from grokscope.waves import Basis, Waves

Seeding = Literal["independent", "reference"]


class InputShape(NamedTuple):
    """What a network is given."""

    tokens: bool  # whole numbers to look up, or a vector of numbers
    size: int  # how many of them an example has
    vocabulary: int  # how many tokens there are; 0 for vectors

    def describe(self) -> str:
        """In a few words.

        >>> InputShape(True, 2, 97).describe(), InputShape(False, 784, 0).describe()
        ('2 of 97 tokens', '784 numbers')
        """
        return f"{self.size} of {self.vocabulary} tokens" if self.tokens else f"{self.size} numbers"


def _corruption_kind(value: object) -> object:
    """Accept symmetric_wrong for symmetric-wrong, and a user's own, by name or as a class."""
    value = named(value)
    if not isinstance(value, str):
        return value
    return pinned(value) if is_reference(value) else value.replace("_", "-")


class Task(Complete, KindSection):
    """A rule to learn, how much of it is shown, and how much of that is wrong."""

    section: ClassVar[str] = "task"
    references: ClassVar[frozenset[str]] = frozenset({"kind", "corruption_kind"})

    data_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.5
    corruption: Annotated[float, Field(ge=0, le=1)] = 0.35
    corruption_kind: Annotated[str, BeforeValidator(_corruption_kind)] = "symmetric"

    @model_validator(mode="after")
    def _check_corruption_kind(self) -> Self:
        if not is_reference(self.corruption_kind) and self.corruption_kind not in CORRUPTIONS:
            known = ", ".join(CORRUPTIONS)
            hint = did_you_mean(self.corruption_kind, CORRUPTIONS)
            raise self.refuse("corruption_kind", f"must be one of {known}, or your own as file.py:Class{hint}")
        return self

    # ---- what a task says about itself --------------------------------------------------------------------------

    @abstractmethod
    def examples(self) -> Examples:
        """All inputs and their true labels, in any order; the same each time."""

    def waves(self) -> Basis | None:
        """The basis in which weights over tokens and over labels are looked at; None if there is none."""
        return None

    def why_no_waves(self) -> str:
        """Why there is no spectrum, in words."""
        return (
            f"there is no spectrum for {self.describe()}: the task has no waves, which waves() of its class would give"
        )

    def why_no_data(self) -> str:
        """Why its examples cannot be had on this machine, in words; nothing if they can."""
        return ""

    def why_no_reference(self) -> str | None:
        """Why it has no split and labels of the authors', in words; None if it has."""
        return f"the authors' split and labels exist only for modular arithmetic, not for {self.describe()}"

    # ---- what follows from it -----------------------------------------------------------------------------------

    @property
    def example_count(self) -> int:
        """How many examples there are in all."""
        return len(_examples_of(self).labels)

    @property
    def training_size(self) -> int:
        """The number of training examples."""
        return int(self.data_fraction * self.example_count)

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return _examples_of(self).classes

    @property
    def inputs(self) -> InputShape:
        """What a network is given."""
        inputs = _examples_of(self).inputs
        if inputs.dtype.kind == "f":
            return InputShape(False, inputs.shape[1], 0)
        return InputShape(True, inputs.shape[1], int(inputs.max()) + 1)

    @property
    def named_by_pairs(self) -> bool:
        """Whether examples are pairs of as many tokens as there are labels, and each is called m·p + n: what the
        native kernel takes for granted when it draws batches and dropout masks."""
        examples = _examples_of(self)
        pairs = self.inputs == InputShape(True, 2, examples.classes)
        return pairs and bool((examples.inputs @ [examples.classes, 1] == examples.names).all())

    def check(self) -> None:
        """Refuse a task without a training example."""
        if self.training_size == 0:
            least = math.ceil(1e4 / self.example_count) / 1e4  # rounded up, so that it is allowed
            raise self.refuse(
                "data_fraction",
                f"of {self.example_count} {self._noun} it leaves no training example; at least {least}",
            )

    _noun: ClassVar[str] = "examples"

    def dataset(self, seed: int = 0, seeding: Seeding = "independent") -> Dataset:
        """Shuffle all examples once; the first α of them are the training set, the first ξ of those are corrupted.

        So training sets are nested in α, and corrupted sets in ξ.
        """
        examples = _examples_of(self)
        train, test = self._split(examples, seed, seeding)
        inputs, truth, names = examples.inputs[train], examples.labels[train], examples.names[train]
        eligible = self._eligible(inputs)
        labels, corrupted = self._corrupted(eligible, truth, names, seed, seeding)
        return Dataset(
            task=self,
            classes=examples.classes,
            corruption=self.corruption * (eligible.sum() / len(train)),
            train_inputs=inputs,
            train_labels=labels,
            train_truth=truth,
            corrupted=corrupted,
            test_inputs=examples.inputs[test],
            test_labels=examples.labels[test],
            train_examples=names,
            test_examples=examples.names[test],
        )

    def _split(self, examples: Examples, seed: int, seeding: Seeding) -> tuple[Int64Array, Int64Array]:
        """The places of the training and of the test examples, both shuffled."""
        order = self._shuffled(examples, seed, seeding)
        return order[: self.training_size], order[self.training_size :]

    def _shuffled(self, examples: Examples, seed: int, seeding: Seeding) -> Int64Array:
        if seeding != "independent":
            raise GrokscopeError(str(self.why_no_reference()))
        return permutation(seed, Stream.SPLIT, 0, examples.names)

    def _eligible(self, inputs: Inputs) -> BoolArray:
        """Which training examples may be corrupted [n]."""
        return np.ones(len(inputs), np.bool_)

    def corrupted_fraction(self, seed: int = 0, seeding: Seeding = "independent") -> float:
        """ξ as Table 2 uses it: of the whole training set. No label is drawn for it."""
        examples = _examples_of(self)
        chosen, _ = self._split(examples, seed, seeding)
        return self.corruption * float(self._eligible(examples.inputs[chosen]).sum() / len(chosen))

    def _corrupted(
        self, may_be: BoolArray, truth: Int64Array, names: Int64Array, seed: int, seeding: Seeding
    ) -> tuple[Int64Array, BoolArray]:
        """Labels with the first int(ξ·n) eligible ones drawn anew, and the mask of those."""
        eligible = np.flatnonzero(may_be)
        chosen = eligible[: int(self.corruption * len(eligible))]
        labels = truth.copy()
        labels[chosen] = self._drawn_labels(truth[chosen], names[chosen], seed, seeding)
        mask = np.zeros(len(labels), np.bool_)
        mask[chosen] = True
        return labels, mask

    def _drawn_labels(self, truth: Int64Array, names: Int64Array, seed: int, seeding: Seeding) -> Int64Array:
        corruption: Corruption = corruption_called(self.corruption_kind)
        labels = np.asarray(corruption.labels(truth, names, self.classes, seed))
        if (
            labels.shape != truth.shape
            or labels.dtype.kind not in "iu"
            or (labels.size and not 0 <= labels.min() <= labels.max() < self.classes)
        ):
            raise ExtensionError(
                f"{self.corruption_kind} must give {len(truth)} labels from 0 to {self.classes - 1}, and gave "
                f"{labels.dtype} of shape {list(labels.shape)}"
                + (f" from {labels.min()} to {labels.max()}" if labels.size else "")
            )
        return labels.astype(np.int64)


@lru_cache(maxsize=4)
def _examples_of(task: Task) -> Examples:
    try:
        examples = task.examples()
    except ExtensionError:
        raise
    except Exception as error:
        if not is_reference(task.kind):
            raise
        raise ExtensionError(f"{task.kind}: {explained(error)}") from error
    if not isinstance(examples, Examples):
        raise ExtensionError(
            f"{task.kind}: examples() must return grokscope.Examples, and returned {type(examples).__name__}"
        )
    return examples


class UnresolvedTask(Unresolved, Task):
    """A task of a stored run whose code was not imported."""

    model_config = UNRESOLVED_CONFIG

    def examples(self) -> Examples:
        """Not without the code."""
        raise self.needed()

    def why_no_waves(self) -> str:
        """Not without the code."""
        return str(self.needed())


def waves_of(task: Task) -> Waves:
    """The waves of a task, with phases; an error that says why if there are none."""
    waves = task.waves()
    if not isinstance(waves, Waves):
        raise GrokscopeError(task.why_no_waves())
    return waves

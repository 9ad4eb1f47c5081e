"""Which label a corrupted example gets.

    class NextButOne(Corruption):
        def labels(self, truth, examples, classes, seed):
            return (truth + 2) % classes

A label depends on its example alone, so it is the same at every α and ξ.
"""

from abc import ABC, abstractmethod

from grokscope.arrays import Int64Array
from grokscope.extension import Complete, is_reference, load_class, remember_source
from grokscope.randomness import Stream, integers


class Corruption(Complete, ABC):
    """A way to draw wrong labels."""

    def __init_subclass__(cls) -> None:
        """Remember the source that the class was made from."""
        remember_source(cls)

    @abstractmethod
    def labels(self, truth: Int64Array, examples: Int64Array, classes: int, seed: int) -> Int64Array:
        """A label from 0 to classes − 1 for each example, of which the true label and the name are given."""


class Symmetric(Corruption):
    """Uniform over all labels, so that by chance it may be the true one."""

    def labels(self, truth: Int64Array, examples: Int64Array, classes: int, seed: int) -> Int64Array:
        """Drawn for each example."""
        return integers(seed, Stream.LABELS, examples, below=classes)


class SymmetricWrong(Corruption):
    """Uniform over all labels but the true one."""

    def labels(self, truth: Int64Array, examples: Int64Array, classes: int, seed: int) -> Int64Array:
        """Drawn for each example."""
        return (truth + 1 + integers(seed, Stream.LABELS, examples, below=classes - 1)) % classes


class Asymmetric(Corruption):
    """Always the next label: wrong labels that have a rule of their own."""

    def labels(self, truth: Int64Array, examples: Int64Array, classes: int, seed: int) -> Int64Array:
        """The truth plus one."""
        return (truth + 1) % classes


CORRUPTIONS: dict[str, type[Corruption]] = {
    "symmetric": Symmetric,
    "symmetric-wrong": SymmetricWrong,
    "asymmetric": Asymmetric,
}


def corruption_called(kind: str) -> Corruption:
    """The built-in of this name, or a user's own."""
    return load_class(kind, Corruption)() if is_reference(kind) else CORRUPTIONS[kind]()  # type: ignore[type-abstract]

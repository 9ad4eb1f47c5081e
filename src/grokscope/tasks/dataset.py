"""Examples with their labels, split into a training and a test set, some of the training labels wrong."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from grokscope.arrays import BoolArray, Int64Array
from grokscope.errors import GrokscopeError

if TYPE_CHECKING:
    from grokscope.tasks.task import Task

Inputs = npt.NDArray[Any]  # [n, positions] of tokens (int64), or [n, size] of numbers (float32)


@dataclass(frozen=True)
class Examples:
    """Everything that a task could ask, each with its true answer.

    >>> Examples(inputs=np.array([[0, 1], [1, 1]]), labels=np.array([1, 0]), classes=2).names.tolist()
    [0, 1]
    """

    inputs: Inputs  # [n, positions] whole numbers from 0, or [n, size] float32
    labels: Int64Array  # [n]  from 0 to classes − 1
    classes: int
    # [n]  what each example is called in the random streams, so that its label and its dropout masks are the same
    # whatever else is asked: by default its place here.
    names: Int64Array = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Refuse what no network could be trained on."""
        inputs, labels = np.asarray(self.inputs), np.asarray(self.labels)
        if inputs.ndim != 2 or not len(inputs):
            raise GrokscopeError(f"examples need inputs of shape [n, positions]; these have {list(inputs.shape)}")
        if inputs.dtype.kind not in "iuf":
            raise GrokscopeError(f"inputs are whole numbers (tokens) or float32 (vectors); these are {inputs.dtype}")
        if inputs.dtype.kind == "f" and not np.isfinite(inputs).all():
            raise GrokscopeError("inputs must be finite numbers; these have NaN or infinity among them")
        if inputs.dtype.kind != "f" and inputs.min() < 0:
            raise GrokscopeError(f"tokens count from 0; these have {inputs.min()}")
        if labels.shape != (len(inputs),) or labels.dtype.kind not in "iu":
            raise GrokscopeError(
                f"labels must be {len(inputs)} whole numbers, one for each input; "
                f"these are {labels.dtype} of shape {list(labels.shape)}"
            )
        if labels.min() < 0 or labels.max() >= self.classes:
            raise GrokscopeError(
                f"labels must lie in 0 … {self.classes - 1}; these go from {labels.min()} to {labels.max()}"
            )
        names = np.arange(len(inputs)) if self.names is None else np.asarray(self.names)
        if names.shape != labels.shape or len(np.unique(names)) < len(names) or names.min() < 0 or names.max() >= 2**32:
            raise GrokscopeError(
                "names of examples must be whole numbers from 0 to 2³² − 1, one for each, all different"
            )
        kind = np.float32 if inputs.dtype.kind == "f" else np.int64
        for name, array in (("inputs", inputs.astype(kind)), ("labels", labels), ("names", names)):
            object.__setattr__(self, name, array if name == "inputs" else array.astype(np.int64))


@dataclass(frozen=True)
class Dataset:
    """One task, split and corrupted. Arrays are read-only; the training set keeps its shuffled order."""

    task: "Task"
    classes: int
    corruption: float  # ξ as Table 2 uses it: of the whole training set, and before rounding to whole examples
    train_inputs: Inputs  # [n_train, positions]
    train_labels: Int64Array  # [n_train]  what the network is trained on
    train_truth: Int64Array  # [n_train]  what the rule gives
    corrupted: BoolArray  # [n_train]  label was drawn, which by chance may be the true one
    test_inputs: Inputs  # [n_test, positions]
    test_labels: Int64Array  # [n_test]  always true
    train_examples: Int64Array  # [n_train]  names in the random streams
    test_examples: Int64Array  # [n_test]

    def __repr__(self) -> str:
        wrong = int(self.corrupted.sum())
        return (
            f"<Dataset {self.task.describe()}: {len(self.train_labels)} training examples, {wrong} of them corrupted, "
            f"and {len(self.test_labels)} test examples, {self.classes} labels>"
        )

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

"""What a network says about single examples: its logits for the right label, and for the one it was trained on.

>>> from grokscope import MLP, TaskSpec, analytic_weights, make_dataset
>>> dataset = make_dataset(TaskSpec(modulus=23))
>>> table = measure_logits(MLP().module(analytic_weights(modulus=23, width=400)), dataset)
>>> bool(table.margins("test").min() > 0), bool((table.predicted == table.truth).all())
(True, True)
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from grokscope.arrays import FloatArray, Int64Array, short_repr
from grokscope.models import Loss
from grokscope.tasks import Dataset, Inputs

if TYPE_CHECKING:
    from grokscope.models.module import NetworkModule

Part = Literal["corrupted", "clean", "test"]
PARTS: tuple[Part, ...] = ("corrupted", "clean", "test")
_LOGITS_AT_ONCE = 400_000  # 4096 examples at p = 97: hidden layers of a few MB


@dataclass(frozen=True)
class LogitTable:
    """One entry for each training example, in the training set's order, and then for each test example."""

    pairs: Inputs  # [n, positions]
    label: Int64Array  # [n]  what the network was trained on; the truth for a test example
    truth: Int64Array  # [n]
    corrupted: npt.NDArray[np.bool_]  # [n]
    in_test: npt.NDArray[np.bool_]  # [n]
    predicted: Int64Array  # [n]
    logit_truth: FloatArray  # [n]
    logit_label: FloatArray  # [n]
    margin: FloatArray  # [n]  see `measure_logits`
    loss: FloatArray  # [n]  against `label`

    __repr__ = short_repr

    def part(self, name: Part) -> npt.NDArray[np.bool_]:
        """Which examples are corrupted, clean training or test ones [n]."""
        masks = {"corrupted": self.corrupted, "clean": ~self.corrupted & ~self.in_test, "test": self.in_test}
        return masks[name]

    def margins(self, name: Part) -> FloatArray:
        """The margins of these examples, without those that have none."""
        margins = self.margin[self.part(name)]
        return margins[~np.isnan(margins)]


def measure_logits(network: "NetworkModule", dataset: Dataset, loss: Loss = "mse") -> LogitTable:
    """Evaluate the network on every training and test example, some thousands at a time.

    The margin of a corrupted example is logit[truth] − logit[label], of all others logit[truth] − the highest other
    logit: above 0 the rule wins, below 0 the memory of the label, or a mistake. A corrupted example whose drawn label
    happens to be the true one has no two labels to compare; its margin is NaN.
    """
    import torch

    from grokscope.models.module import logits_in_parts, losses_per_example

    pairs = np.concatenate([dataset.train_inputs, dataset.test_inputs])
    label = np.concatenate([dataset.train_labels, dataset.test_labels])
    truth = np.concatenate([dataset.train_truth, dataset.test_labels])
    corrupted = np.concatenate([dataset.corrupted, np.zeros(len(dataset.test_labels), bool)])
    predicted = np.empty(len(pairs), np.int64)
    logit_truth, logit_label, logit_other, losses = (np.empty(len(pairs)) for _ in range(4))
    for rows, said in logits_in_parts(network, pairs, max(1, _LOGITS_AT_ONCE // dataset.classes)):
        logits = said.numpy()  # [rows, p]
        own = np.arange(len(logits))
        predicted[rows] = logits.argmax(axis=1)
        logit_truth[rows] = logits[own, truth[rows]]
        logit_label[rows] = logits[own, label[rows]]
        losses[rows] = losses_per_example(said, torch.tensor(label[rows]), loss).numpy()
        logits[own, truth[rows]] = -np.inf
        logit_other[rows] = logits.max(axis=1)
    rival = np.where(corrupted, np.where(label == truth, np.nan, logit_label), logit_other)
    return LogitTable(
        pairs=pairs,
        label=label,
        truth=truth,
        corrupted=corrupted,
        in_test=np.arange(len(pairs)) >= len(dataset.train_labels),
        predicted=predicted,
        logit_truth=logit_truth,
        logit_label=logit_label,
        margin=logit_truth - rival,
        loss=losses,
    )


def logits_of(network: "NetworkModule", inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Logits [n, classes] of inputs [n, positions], in evaluation mode."""
    from grokscope.models.module import logits_of as as_tensor

    logits: npt.NDArray[np.float32] = as_tensor(network, np.asarray(inputs)).numpy()
    return logits

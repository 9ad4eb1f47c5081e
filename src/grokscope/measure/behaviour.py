"""What a network does with each kind of example, in accuracies and losses: how it is compared with an edited copy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grokscope.models import Evaluation, Loss
from grokscope.tasks import Dataset

if TYPE_CHECKING:
    from grokscope.models.module import NetworkModule


@dataclass(frozen=True)
class Behaviour:
    """A network on one dataset, in evaluation mode. What does not exist (accuracy on no examples) is NaN."""

    train_accuracy: float  # against the labels trained on
    test_accuracy: float
    corrupted_accuracy: float  # corrupted examples, against their drawn labels: memorised
    clean_accuracy: float  # the other training examples
    recovered_accuracy: float  # corrupted examples, against their true labels: corrected
    train_loss: float  # this and the next two: against the labels trained on
    corrupted_loss: float
    clean_loss: float
    test_loss: float


def behaviour_of(network: "NetworkModule", dataset: Dataset, loss: Loss = "mse") -> Behaviour:
    """Evaluate a network.

    >>> from grokscope import ModelSpec, TaskSpec, analytic_weights, make_dataset
    >>> from grokscope.models import make_network
    >>> network = make_network(ModelSpec(), analytic_weights(modulus=97, width=500))
    >>> behaviour_of(network, make_dataset(TaskSpec())).recovered_accuracy
    1.0
    """
    from grokscope.models.module import evaluate

    return behaviour_from(
        evaluate(network, dataset.train_inputs, dataset.train_labels, loss),
        evaluate(network, dataset.test_inputs, dataset.test_labels, loss),
        dataset,
    )


def behaviour_from(train: Evaluation, test: Evaluation, dataset: Dataset) -> Behaviour:
    """The means over what a network says about the examples of both sets."""
    memorised = train.predictions == dataset.train_labels
    chosen = dataset.corrupted
    return Behaviour(
        train_accuracy=_mean(memorised),
        test_accuracy=_mean(test.predictions == dataset.test_labels),
        corrupted_accuracy=_mean(memorised[chosen]),
        clean_accuracy=_mean(memorised[~chosen]),
        recovered_accuracy=_mean((train.predictions == dataset.train_truth)[chosen]),
        train_loss=_mean(train.losses),
        corrupted_loss=_mean(train.losses[chosen]),
        clean_loss=_mean(train.losses[~chosen]),
        test_loss=_mean(test.losses),
    )


def _mean(values: npt.NDArray[np.bool_] | npt.NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")

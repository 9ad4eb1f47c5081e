"""One row of a training curve."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grokscope.measure.behaviour import behaviour_from
from grokscope.measure.spectrum import NeuronSpectra, neuron_spectra
from grokscope.models import Evaluation, Weights
from grokscope.spec import Loss
from grokscope.tasks import Dataset

if TYPE_CHECKING:
    from grokscope.models.network import Network


@dataclass(frozen=True)
class Measurement:
    """A network at one step. What does not exist (accuracy on no examples, IPR of no live neuron) is NaN."""

    step: int
    train_loss: float  # of the batch this step was taken on, before the update, dropout and all
    test_loss: float  # this and all below: after the update, in evaluation mode
    train_accuracy: float  # against the labels trained on
    test_accuracy: float
    corrupted_accuracy: float  # corrupted examples, against their drawn labels: memorised
    clean_accuracy: float  # the other training examples
    recovered_accuracy: float  # corrupted examples, against their true labels: corrected
    mean_ipr: float
    mean_gini: float
    dead_neurons: int
    norm_u: float  # of U, or of a Transformer's embedding
    norm_v: float  # of V, which a Transformer does not have
    norm_w: float  # of W, or of a Transformer's unembedding


def take_measurement(
    step: int,
    train_loss: float,
    train: Evaluation,
    test: Evaluation,
    weights: Weights,
    spectra: NeuronSpectra,
    dataset: Dataset,
) -> Measurement:
    """Everything that a curve records, from what the network says about both sets, its weights and their spectra."""
    behaviour = behaviour_from(train, test, dataset)
    return Measurement(
        step=step,
        train_loss=train_loss,
        test_loss=behaviour.test_loss,
        train_accuracy=behaviour.train_accuracy,
        test_accuracy=behaviour.test_accuracy,
        corrupted_accuracy=behaviour.corrupted_accuracy,
        clean_accuracy=behaviour.clean_accuracy,
        recovered_accuracy=behaviour.recovered_accuracy,
        mean_ipr=spectra.mean_ipr,
        mean_gini=spectra.mean_gini,
        dead_neurons=int(spectra.dead.sum()),
        **_norms(weights),
    )


def measure_network(network: "Network", dataset: Dataset, loss: Loss = "mse") -> Measurement:
    """Measure a network that did not come out of a run: the analytic one, or one that was pruned or edited.

    >>> from grokscope import TaskSpec, analytic_weights, make_dataset
    >>> from grokscope.models.mlp import MLP
    >>> network = MLP(analytic_weights(modulus=97, width=500))
    >>> row = measure_network(network, make_dataset(TaskSpec()))
    >>> row.test_accuracy, round(row.mean_ipr, 6)
    (1.0, 1.0)
    """
    from grokscope.models.network import evaluate

    train = evaluate(network, dataset.train_pairs, dataset.train_labels, loss)
    test = evaluate(network, dataset.test_pairs, dataset.test_labels, loss)
    weights = network.weights()
    spectra = neuron_spectra(weights, dataset.operation)
    return take_measurement(0, float(train.losses.mean()), train, test, weights, spectra, dataset)


def _norms(weights: Weights) -> dict[str, float]:
    if "embedding" in weights:
        embedding = weights["embedding"]
        unembedding = weights.get("unembedding", embedding)
        return {"norm_u": _frobenius(embedding), "norm_v": float("nan"), "norm_w": _frobenius(unembedding)}
    return {f"norm_{name.lower()}": _frobenius(weights[name]) for name in "UVW"}


def _frobenius(matrix: npt.NDArray[np.float32]) -> float:
    return float(np.sqrt(np.square(matrix, dtype=np.float64).sum()))

"""Candidates for what the IPR is where there are waves: a number for each neuron of the last hidden layer.

measures = feature_measures(result.spec.model, result.trained_weights(), result.dataset(), other.trained_weights())
measures["class_selectivity"]      # [N]  higher should mean: carries the rule

They need what the neurons do on examples, not what their weights look like.
"""

import numpy as np
import numpy.typing as npt

from grokscope.arrays import FloatArray, Int64Array
from grokscope.models import Network, Weights
from grokscope.tasks import Dataset

CANDIDATES = ("class_participation", "class_selectivity", "clean_share", "recurrence")
_MOST_EXAMPLES = 4000  # to measure on


def feature_measures(
    network: Network, weights: Weights, dataset: Dataset, other_seed: Weights | None = None
) -> dict[str, FloatArray]:
    """Each candidate for every neuron [N]; NaN for one that never responds. Recurrence needs another seed's weights."""
    train = slice(0, _MOST_EXAMPLES)
    inputs, labels = dataset.train_inputs[train], dataset.train_labels[train]
    layer = network.hidden_layer(weights, inputs)
    responses = layer.activations.astype(np.float64)  # [n, N]
    by_class = class_means(responses, labels, dataset.classes)  # [classes, N]
    measures = {
        "class_participation": class_participation(by_class),
        "class_selectivity": class_selectivity(by_class),
        "clean_share": clean_share(responses, layer.output, labels, dataset.corrupted[train]),
    }
    if other_seed is not None:
        held_out = dataset.test_inputs[train]
        measures["recurrence"] = recurrence(
            network.hidden_layer(weights, held_out).activations, network.hidden_layer(other_seed, held_out).activations
        )
    dead = ~responses.any(axis=0)
    return {name: np.where(dead, np.nan, values) for name, values in measures.items()}


def class_means(responses: FloatArray, labels: Int64Array, classes: int) -> FloatArray:
    """The mean response of each neuron to the examples of each label [classes, N]; 0 for a label without examples."""
    counts = np.bincount(labels, minlength=classes)[:, None]
    sums = np.zeros((classes, responses.shape[1]))
    np.add.at(sums, labels, responses)
    return np.asarray(sums / np.maximum(counts, 1))


def class_participation(by_class: FloatArray) -> FloatArray:
    """The inverse participation ratio of the mean responses, without their mean, over classes [N].

    >>> class_participation(np.array([[5.0, 1.0], [0.0, -1.0], [0.0, 1.0], [0.0, -1.0]])).round(2).tolist()
    [0.58, 0.25]
    """
    power = np.square(by_class - by_class.mean(axis=0))
    total = power.sum(axis=0)
    return np.asarray(np.divide((power**2).sum(axis=0), total**2, out=np.full(len(total), np.nan), where=total > 0))


def class_selectivity(by_class: FloatArray) -> FloatArray:
    """(best − mean of the others) / (|best| + |mean of the others|) over classes [N].

    >>> class_selectivity(np.array([[3.0, 1.0], [1.0, 1.0], [1.0, 1.0]])).tolist()
    [0.5, 0.0]
    """
    best = by_class.max(axis=0)
    others = (by_class.sum(axis=0) - best) / (len(by_class) - 1)
    scale = np.abs(best) + np.abs(others)
    return np.asarray(np.divide(best - others, scale, out=np.full(len(best), np.nan), where=scale > 0))


def clean_share(
    responses: FloatArray, output: npt.NDArray[np.floating], labels: Int64Array, corrupted: npt.NDArray[np.bool_]
) -> FloatArray:
    """How much of what a neuron adds to the logit of the given label it adds on clean examples, not on corrupted [N].

    What it adds to all logits alike decides nothing and is taken off. 1: only on clean examples; 0: on both alike; −1:
    only on corrupted ones. It needs to know which are corrupted; NaN if none is.
    """
    if not corrupted.any() or corrupted.all():
        return np.full(responses.shape[1], np.nan)
    centred = output - output.mean(axis=0)  # [classes, N]
    added = responses * centred[labels]  # [n, N]
    clean, wrong = (np.maximum(added[chosen].mean(axis=0), 0) for chosen in (~corrupted, corrupted))
    total = clean + wrong
    return np.asarray(np.divide(clean - wrong, total, out=np.full(len(total), np.nan), where=total > 0))


def recurrence(responses: npt.NDArray[np.floating], others: npt.NDArray[np.floating]) -> FloatArray:
    """The largest correlation of each neuron with a neuron of another network, on examples of neither's training [N].

    >>> wave = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> recurrence(wave, -3 * wave[:, :1]).tolist()
    [1.0, 0.0]
    """
    first, second = _standardised(responses), _standardised(others)
    return np.asarray(np.abs(first.T @ second).max(axis=1))


def _standardised(responses: npt.NDArray[np.floating]) -> FloatArray:
    centred = responses.astype(np.float64) - responses.mean(axis=0, dtype=np.float64)
    lengths = np.sqrt(np.square(centred).sum(axis=0))
    return np.asarray(np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0))

"""Ablations of a two-layer network: what survives when its weights are only waves, and when the waves are gone.

    own_wave          a neuron's U, V and W each become the one wave nearest to it
    shared_wave       the same, with the one frequency that the three share best
    analytic_family   the neuron becomes the nearest one of Equation 2, see `analytic_family`
    frequencies       all neurons keep their k strongest frequencies of the network, and lose the others
    restricted        of the logits only the constant and the key frequencies are kept, see `progress_measures`
    excluded          of the logits only the key frequencies are taken away

The first three go through the neurons from the highest IPR down: k of them are replaced. Nothing is retrained, and
BatchNorm keeps its running statistics.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grokscope.errors import GrokscopeError
from grokscope.measure.analytic_family import has_family, nearest_member
from grokscope.measure.behaviour import Behaviour, behaviour_from, behaviour_of
from grokscope.measure.progress_measures import Logits, excluded_logits, restricted_logits
from grokscope.measure.spectrum import FloatArray, neuron_spectra
from grokscope.measure.waves import Waves, neuron_vectors, with_vectors
from grokscope.models import Evaluation, Weights, make_network
from grokscope.randomness import Int64Array
from grokscope.spec import Loss, ModelSpec
from grokscope.tasks import Dataset

if TYPE_CHECKING:
    from grokscope.models.network import Network

HIGH_IPR = 0.5  # between the modes of the paper's histograms
_REPLACED = 20  # points of a curve over the number of replaced neurons
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class AblationRow:
    """A network after one ablation."""

    ablation: str
    k: int  # neurons replaced, frequencies kept, or key frequencies
    behaviour: Behaviour

    def to_dict(self) -> dict[str, str | int | float | None]:
        """For JSON and tables: what does not exist is None."""
        measures = {name: None if math.isnan(value) else value for name, value in asdict(self.behaviour).items()}
        return {"ablation": self.ablation, "k": self.k, **measures}


@dataclass(frozen=True)
class Ablations:
    """All ablations of one network."""

    rows: tuple[AblationRow, ...]
    ipr: FloatArray  # [N]  NaN if dead
    frequency: Int64Array  # [N]  which wave a neuron's vectors share best, -1 if dead
    distance: FloatArray | None  # [N]  to the analytic family, NaN if dead; None if there is no family
    weight_distance: float  # of all weights together; NaN if there is no family or no live neuron
    key_frequencies: tuple[int, ...]  # of neurons with high IPR, the constant apart
    pairs_left_out: int  # of `restricted` and `excluded`: pairs that are not in the group
    missing: dict[str, str]  # ablations that do not exist for this network, and why

    def series(self, ablation: str) -> list[AblationRow]:
        """The rows of one ablation, in the order of k."""
        return [row for row in self.rows if row.ablation == ablation]

    @property
    def high(self) -> np.ndarray:
        """Neurons of high IPR [N]."""
        return np.asarray(self.ipr >= HIGH_IPR)

    def mean_distance(self, *, high: bool) -> float:
        """The mean distance of the live neurons of high or low IPR to the analytic family; NaN if there is none."""
        if self.distance is None:
            return float("nan")
        chosen = self.distance[~np.isnan(self.ipr) & ~np.isnan(self.distance) & (self.high == high)]
        return float(chosen.mean()) if len(chosen) else float("nan")


def ablate(model: ModelSpec, weights: Weights, dataset: Dataset, loss: Loss = "mse") -> Ablations:
    """All ablations of a two-layer network.

    >>> from grokscope import TaskSpec, analytic_weights, make_dataset
    >>> ablations = ablate(ModelSpec(width=400), analytic_weights(23, 400), make_dataset(TaskSpec(modulus=23)))
    >>> [row.behaviour.test_accuracy for row in ablations.series("shared_wave")][-1]
    1.0
    """
    if not model.two_layer:
        raise GrokscopeError(
            f"ablations need a two-layer network, whose neurons have U, V and W; this one is {model.describe()}"
        )
    waves = Waves(dataset.operation, dataset.modulus)
    vectors = neuron_vectors(weights)  # [3, N, p]
    ipr = neuron_spectra(weights, dataset.operation).neuron_ipr
    descending = np.argsort(-np.nan_to_num(ipr, nan=-1), kind="stable")  # the dead last

    def measure(edited: FloatArray) -> Behaviour:
        return behaviour_of(make_network(model, with_vectors(weights, edited)), dataset, loss)

    rows = [AblationRow("full", 0, behaviour_of(make_network(model, weights), dataset, loss))]
    rows += _replacements("own_wave", vectors, own_waves(vectors, waves), descending, measure)
    rows += _replacements("shared_wave", vectors, shared_waves(vectors, waves), descending, measure)
    missing: dict[str, str] = {}
    shared = np.where(np.isnan(ipr), -1, shared_frequency(vectors, waves))
    key = np.unique(shared[(ipr >= HIGH_IPR) & (shared > 0)])
    member = None
    pairs_left_out = 0
    if has_family(dataset.operation):
        member = nearest_member(vectors, waves)
        rows += _replacements("analytic_family", vectors, member.vectors, descending, measure)
    else:
        missing["analytic_family"] = f"{dataset.operation} is not a group operation: Equation 2 has no form for it"
    ranked = strongest_frequencies(vectors, waves)
    rows += [AblationRow("frequencies", k, measure(kept(vectors, waves, ranked[:k]))) for k in range(1, len(waves) + 1)]
    if not has_family(dataset.operation):
        missing["restricted"] = missing["excluded"] = f"{dataset.operation} is not a group operation: no waves in its answers"
    elif not len(key):
        missing["restricted"] = missing["excluded"] = f"no neuron has IPR ≥ {HIGH_IPR}: there are no key frequencies"
    else:
        inside = _pairs_of_group(dataset, waves)
        rows += _progress_rows(make_network(model, weights), inside, waves, key, loss)
        pairs_left_out = _pair_count(dataset) - _pair_count(inside)
    return Ablations(
        rows=tuple(rows),
        ipr=ipr,
        frequency=shared,
        distance=member.distance if member else None,
        weight_distance=member.weight_distance if member else float("nan"),
        key_frequencies=tuple(int(frequency) for frequency in key),
        pairs_left_out=pairs_left_out,
        missing=missing,
    )


def own_waves(vectors: FloatArray, waves: Waves) -> FloatArray:
    """Each vector [..., p] replaced by the wave nearest to it; a zero vector stays zero."""
    coefficients = waves.coefficients(vectors)  # [..., K]
    best = waves.energies(coefficients).argmax(axis=-1)
    return waves.replaced(vectors, _only(coefficients, best))


def shared_waves(vectors: FloatArray, waves: Waves) -> FloatArray:
    """The vectors [3, N, p] replaced by waves of one frequency a neuron, each with the best phase and amplitude."""
    coefficients = waves.coefficients(vectors)
    best = np.broadcast_to(shared_frequency(vectors, waves), vectors.shape[:-1])
    return waves.replaced(vectors, _only(coefficients, best))


def shared_frequency(vectors: FloatArray, waves: Waves) -> Int64Array:
    """The wave that holds most of a neuron's vectors [3, N, p], each relative to its own norm: [N]."""
    return np.asarray(_shares(vectors, waves).sum(axis=0).argmax(axis=-1), dtype=np.int64)


def strongest_frequencies(vectors: FloatArray, waves: Waves) -> Int64Array:
    """All waves [K], from the one with the largest share of the norms of U, V and W, which count the same."""
    energies = waves.energies(waves.coefficients(vectors)).sum(axis=1)  # [3, K]
    return np.argsort(-_relative(energies).sum(axis=0), kind="stable")


def kept(vectors: FloatArray, waves: Waves, frequencies: Int64Array) -> FloatArray:
    """The vectors [..., p] with these frequencies alone."""
    wanted = np.zeros(len(waves), dtype=bool)
    wanted[frequencies] = True
    return waves.replaced(vectors, np.where(wanted, waves.coefficients(vectors), 0))


def grid_logits(network: "Network", pairs: Int64Array) -> Logits:
    """What a network says about pairs [n, 2], as [n, p], in evaluation mode."""
    import torch

    network.eval()
    with torch.no_grad():
        pieces = [network(torch.tensor(pairs[i : i + _ROWS_AT_ONCE])) for i in range(0, len(pairs), _ROWS_AT_ONCE)]
    return np.concatenate([piece.double().numpy() for piece in pieces])


def _replacements(
    name: str,
    vectors: FloatArray,
    replacement: FloatArray,
    order: Int64Array,
    measure: Callable[[FloatArray], Behaviour],
) -> Iterator[AblationRow]:
    for k in sorted({round(i * len(order) / _REPLACED) for i in range(_REPLACED + 1)}):
        edited = vectors.copy()
        edited[:, order[:k]] = replacement[:, order[:k]]
        yield AblationRow(name, k, measure(edited))


def _progress_rows(
    network: "Network", dataset: Dataset, waves: Waves, key: Int64Array, loss: Loss
) -> Iterator[AblationRow]:
    """The whole network, and its restricted and excluded logits, on all pairs of the group."""
    import torch

    from grokscope.models.network import losses_per_example

    pairs = np.concatenate([dataset.train_pairs, dataset.test_pairs])  # [G², 2]
    answers = np.concatenate([dataset.train_truth, dataset.test_labels])  # [G²]
    labels = np.concatenate([dataset.train_labels, dataset.test_labels])
    logits = grid_logits(network, pairs)  # [G², p]
    edits = {
        "whole_logits": logits,
        "restricted": restricted_logits(logits, answers, waves, key),
        "excluded": excluded_logits(logits, answers, waves, key),
    }
    trained = len(dataset.train_pairs)
    for name, values in edits.items():
        losses = losses_per_example(torch.tensor(values), torch.tensor(labels), loss).numpy()
        predictions = values.argmax(axis=1)
        train = Evaluation(predictions[:trained], losses[:trained])
        test = Evaluation(predictions[trained:], losses[trained:])
        yield AblationRow(name, len(key), behaviour_from(train, test, dataset))


def _pairs_of_group(dataset: Dataset, waves: Waves) -> Dataset:
    """The dataset without the pairs that take no part in the waves, such as those with a 0 for multiplication."""
    takes_part = np.zeros(dataset.modulus, dtype=bool)
    takes_part[waves.places] = True
    train, test = (takes_part[pairs].all(axis=1) for pairs in (dataset.train_pairs, dataset.test_pairs))
    return replace(
        dataset,
        train_pairs=dataset.train_pairs[train],
        train_labels=dataset.train_labels[train],
        train_truth=dataset.train_truth[train],
        corrupted=dataset.corrupted[train],
        test_pairs=dataset.test_pairs[test],
        test_labels=dataset.test_labels[test],
    )


def _pair_count(dataset: Dataset) -> int:
    return len(dataset.train_pairs) + len(dataset.test_pairs)


def _only(coefficients: "np.ndarray", places: Int64Array) -> "np.ndarray":
    """The coefficients [..., K] with all but those at the places [...] set to zero."""
    return np.where(np.arange(coefficients.shape[-1]) == places[..., None], coefficients, 0)


def _shares(vectors: FloatArray, waves: Waves) -> FloatArray:
    """How much of each vector's square norm each wave holds, from 0 to 1; a zero vector has 0 everywhere."""
    return _relative(waves.energies(waves.coefficients(vectors)))


def _relative(energies: FloatArray) -> FloatArray:
    total = energies.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(energies, total, out=np.zeros_like(energies), where=total > 0))

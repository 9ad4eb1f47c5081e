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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grokscope.arrays import BoolArray, ComplexArray, FloatArray, Int64Array, short_repr
from grokscope.errors import GrokscopeError
from grokscope.measure.ablation.analytic_family import has_family, nearest_member
from grokscope.measure.ablation.progress_measures import excluded_logits, restricted_logits
from grokscope.measure.behaviour import Behaviour, behaviour_from, behaviour_of
from grokscope.measure.spectra.spectrum import neuron_spectra
from grokscope.models import Evaluation, Loss, Network, Neurons, Weights
from grokscope.tasks import Dataset, waves_of
from grokscope.waves import Waves

if TYPE_CHECKING:
    from grokscope.models.module import NetworkModule

KEY_IPR = 0.5  # between the modes of the paper's histograms: above it a neuron's frequency is a key frequency
_REPLACED = 20  # points of a curve over the number of replaced neurons


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
    missing: dict[str, str]  # what does not exist for this network, and why, by analytic_family, progress, input_waves

    __repr__ = short_repr

    def series(self, ablation: str) -> list[AblationRow]:
        """The rows of one ablation, in the order of k."""
        return [row for row in self.rows if row.ablation == ablation]

    @property
    def high(self) -> BoolArray:
        """Neurons of high IPR [N]."""
        return np.asarray(self.ipr >= KEY_IPR)

    def mean_distance(self, *, high: bool) -> float:
        """The mean distance of the live neurons of high or low IPR to the analytic family; NaN if there is none."""
        if self.distance is None:
            return float("nan")
        chosen = self.distance[~np.isnan(self.ipr) & ~np.isnan(self.distance) & (self.high == high)]
        return float(chosen.mean()) if len(chosen) else float("nan")


def ablate(model: Network, weights: Weights, dataset: Dataset, loss: Loss = "mse") -> Ablations:
    """All ablations of a two-layer network.

    >>> from grokscope import MLP, TaskSpec, analytic_weights, make_dataset
    >>> ablations = ablate(MLP(width=400), analytic_weights(23, 400), make_dataset(TaskSpec(modulus=23)))
    >>> [row.behaviour.test_accuracy for row in ablations.series("shared_wave")][-1]
    1.0
    """
    if reason := model.why_not_ablatable():
        raise GrokscopeError(reason)
    with _one_thread():
        return _Ablation(model, weights, dataset, loss).all()


class _Ablation:
    """One network under study."""

    def __init__(self, model: Network, weights: Weights, dataset: Dataset, loss: Loss) -> None:
        self.model, self.weights, self.dataset, self.loss = model, weights, dataset, loss
        self.waves = waves_of(dataset.task)
        self.vectors = _neurons(model, weights).stacked().astype(np.float64)  # [3, N, p]
        spectra = neuron_spectra(model, weights, dataset.task)
        assert spectra is not None
        self.ipr = spectra.neuron_ipr  # [N]
        self.descending = np.argsort(-np.nan_to_num(self.ipr, nan=-1), kind="stable")  # [N]  the dead last

    def all(self) -> Ablations:
        vectors, waves, task = self.vectors, self.waves, self.dataset.task.describe()
        frequency = np.where(np.isnan(self.ipr), -1, shared_frequency(vectors, waves))  # [N]
        key = np.unique(frequency[(self.ipr >= KEY_IPR) & (frequency > 0)])
        inside = _pairs_of_group(self.dataset, waves)
        member = nearest_member(vectors, waves) if has_family(waves) else None
        missing: dict[str, str] = {}

        rows = [AblationRow("full", 0, self._measured(vectors))]
        rows += self._replaced("own_wave", own_waves(vectors, waves))
        rows += self._replaced("shared_wave", shared_waves(vectors, waves))
        if member:
            rows += self._replaced("analytic_family", member.vectors)
        else:
            missing["input_waves"] = (
                f"{waves.why_no_relation}: for U and V a wave is no nearer to the rule than another vector"
            )
            missing["analytic_family"] = f"{task} is not a group operation: Equation 2 has no form for it"
        rows += self._frequencies()
        if not has_family(waves):
            missing["progress"] = f"{task} is not a group operation: its answers have no waves of their own"
        elif not len(key):
            missing["progress"] = f"no neuron has IPR ≥ {KEY_IPR}: there are no key frequencies"
        else:
            rows += _progress_rows(self.model.module(self.weights), inside, waves, key, self.loss)
        return Ablations(
            rows=tuple(rows),
            ipr=self.ipr,
            frequency=frequency,
            distance=member.distance if member else None,
            weight_distance=member.weight_distance if member else float("nan"),
            key_frequencies=tuple(int(place) for place in key),
            pairs_left_out=_pair_count(self.dataset) - _pair_count(inside),
            missing=missing,
        )

    def _measured(self, vectors: FloatArray) -> Behaviour:
        edited = with_vectors(self.model, self.weights, vectors)
        return behaviour_of(self.model.module(edited), self.dataset, self.loss)

    def _replaced(self, name: str, replacement: FloatArray) -> Iterator[AblationRow]:
        """More and more neurons replaced, from the highest IPR."""
        count = len(self.descending)
        for k in sorted({round(i * count / _REPLACED) for i in range(_REPLACED + 1)}):
            edited, chosen = self.vectors.copy(), self.descending[:k]
            edited[:, chosen] = replacement[:, chosen]
            yield AblationRow(name, k, self._measured(edited))

    def _frequencies(self) -> Iterator[AblationRow]:
        """More and more frequencies kept, from the strongest."""
        ranked = strongest_frequencies(self.vectors, self.waves)
        for k in range(1, len(ranked) + 1):
            yield AblationRow("frequencies", k, self._measured(kept(self.vectors, self.waves, ranked[:k])))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products this small are fastest on one core, and far slower on several that other work shares."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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


def with_vectors(model: Network, weights: Weights, vectors: FloatArray) -> Weights:
    """A copy of the weights with these vectors [3, N, p] of its neurons; a norm stays as it is.

    >>> from grokscope import MLP, analytic_weights
    >>> weights = analytic_weights(modulus=11, width=20)
    >>> same = with_vectors(MLP(), weights, MLP().input_neurons(weights).stacked())
    >>> all(np.array_equal(same[name], weights[name]) for name in "UVW")
    True
    """
    copy = {name: array.copy() for name, array in weights.items()}
    for own, new in zip(_neurons(model, copy).vectors.values(), vectors, strict=True):
        own[:] = new  # a view of the copy
    return copy


def _neurons(model: Network, weights: Weights) -> Neurons:
    neurons = model.prunable_neurons(weights)
    if neurons.vectors.keys() != {"u", "v", "w"}:
        have = ", ".join(neurons.vectors)
        raise GrokscopeError(f"ablations need neurons with vectors u, v and w; {model.describe()} has {have}")
    return neurons


def _progress_rows(
    network: "NetworkModule", dataset: Dataset, waves: Waves, key: Int64Array, loss: Loss
) -> Iterator[AblationRow]:
    """The whole network, and its restricted and excluded logits, on all pairs of the group."""
    import torch

    from grokscope.models.module import logits_in_parts, losses_per_example

    pairs = np.concatenate([dataset.train_inputs, dataset.test_inputs])  # [G², 2]
    answers = np.concatenate([dataset.train_truth, dataset.test_labels])  # [G²]
    labels = np.concatenate([dataset.train_labels, dataset.test_labels])
    logits = np.concatenate([said.double().numpy() for _, said in logits_in_parts(network, pairs)])  # [G², p]
    edits = {
        "whole_logits": logits,
        "restricted": restricted_logits(logits, answers, waves, key),
        "excluded": excluded_logits(logits, answers, waves, key),
    }
    trained = len(dataset.train_labels)
    for name, values in edits.items():
        losses = losses_per_example(torch.tensor(values), torch.tensor(labels), loss).numpy()
        predictions = values.argmax(axis=1)
        train = Evaluation(predictions[:trained], losses[:trained])
        test = Evaluation(predictions[trained:], losses[trained:])
        yield AblationRow(name, len(key), behaviour_from(train, test, dataset))


def _pairs_of_group(dataset: Dataset, waves: Waves) -> Dataset:
    """The dataset without the pairs that take no part in the waves, such as those with a 0 for multiplication."""
    takes_part = np.zeros(dataset.classes, dtype=bool)
    takes_part[waves.places] = True
    train, test = (takes_part[pairs].all(axis=1) for pairs in (dataset.train_inputs, dataset.test_inputs))
    return replace(
        dataset,
        train_inputs=dataset.train_inputs[train],
        train_examples=dataset.train_examples[train],
        train_labels=dataset.train_labels[train],
        train_truth=dataset.train_truth[train],
        corrupted=dataset.corrupted[train],
        test_inputs=dataset.test_inputs[test],
        test_examples=dataset.test_examples[test],
        test_labels=dataset.test_labels[test],
    )


def _pair_count(dataset: Dataset) -> int:
    return len(dataset.train_labels) + len(dataset.test_labels)


def _only(coefficients: ComplexArray, places: Int64Array) -> ComplexArray:
    """The coefficients [..., K] with all but those at the places [...] set to zero."""
    return np.where(np.arange(coefficients.shape[-1]) == places[..., None], coefficients, 0)


def _shares(vectors: FloatArray, waves: Waves) -> FloatArray:
    """How much of each vector's square norm each wave holds, from 0 to 1; a zero vector has 0 everywhere."""
    return _relative(waves.energies(waves.coefficients(vectors)))


def _relative(energies: FloatArray) -> FloatArray:
    total = energies.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(energies, total, out=np.zeros_like(energies), where=total > 0))

"""Take a two-layer network apart neuron by neuron, in several orders, and see what it still knows (Figures 6, 17, 18).

Low-IPR neurons memorise and high-IPR neurons generalise, so the order matters. Orders that do not look at the IPR are
the controls: random ones, by weight norm, and by the scale of a norm.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grokscope.arrays import FloatArray, Int64Array, short_repr
from grokscope.errors import GrokscopeError
from grokscope.measure.pruning.prefixes import Prefixes, evaluate_prefixes
from grokscope.measure.spectra.spectrum import neuron_spectra
from grokscope.models import Loss, Network, Weights
from grokscope.randomness import Stream, permutation
from grokscope.tables import data_frame
from grokscope.tasks import Dataset, Task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ORDERS = {  # name → what goes first
    "lowest_ipr": "lowest IPR first",
    "highest_ipr": "highest IPR first",
    "norm": "smallest weights first",  # norm of a neuron's row of U, row of V and column of W together
    "norm_scale": "smallest |γ| first",  # of a Batch- or LayerNorm; networks without one have no such order
    "random": "random order",
}
PRUNING_TOLERANCE = 0.01  # of test accuracy that may be lost
BAND = (5, 95)  # percentiles of the random orders

_VALUES_AT_ONCE, _FEWEST_PAIRS = 2**17, 64  # of [pairs, neurons]: few enough for the cache, enough to be worth a call


@dataclass(frozen=True)
class PruningCurve:
    """A network without the first 0, 1, … N neurons of an order; each [N + 1]. What does not exist is NaN."""

    train_accuracy: FloatArray  # all as in a curve: against the labels trained on,
    test_accuracy: FloatArray
    corrupted_accuracy: FloatArray  # corrupted examples, against their drawn labels: memorised,
    clean_accuracy: FloatArray  # the other training examples,
    recovered_accuracy: FloatArray  # corrupted examples, against their true labels: corrected;
    train_loss: FloatArray  # and in evaluation mode
    test_loss: FloatArray

    __repr__ = short_repr

    @property
    def fraction_pruned(self) -> FloatArray:
        """0, 1/N, … 1."""
        return np.linspace(0, 1, len(self.test_accuracy))

    @property
    def prunable(self) -> int:
        """The most neurons that can go, in this order, with test accuracy at most 0.01 below that of all neurons."""
        return int(np.flatnonzero(self._retains())[-1])

    @property
    def prunable_throughout(self) -> int:
        """The same without a dip on the way: how many go before test accuracy first falls by more than 0.01."""
        return int(np.flatnonzero(~np.append(self._retains(), False))[0]) - 1

    def _retains(self) -> npt.NDArray[np.bool_]:
        """Whether test accuracy is that of all neurons less at most the tolerance, [N + 1]."""
        # Accuracies are fractions of whole examples: what is much less than an example is rounding.
        return np.asarray(self.test_accuracy >= self.test_accuracy[0] - PRUNING_TOLERANCE - 1e-9)


@dataclass(frozen=True)
class Pruning:
    """A network pruned in every order, by the order's name; of random orders the means, and the band around them."""

    orders: dict[str, PruningCurve]
    random_low: PruningCurve  # the 5th percentile of the random orders, at each number of neurons
    random_high: PruningCurve  # the 95th

    __repr__ = short_repr

    @property
    def corruption(self) -> float:
        """The corrupted share of the training set: its accuracy is the mean of the corrupted and the clean part."""
        curve = next(iter(self.orders.values()))
        if np.isnan(curve.corrupted_accuracy).all() or np.isnan(curve.clean_accuracy).all():
            return float(np.isnan(curve.clean_accuracy).all())
        gap = curve.clean_accuracy - curve.corrupted_accuracy
        widest = int(np.abs(gap).argmax())
        return float((curve.clean_accuracy - curve.train_accuracy)[widest] / gap[widest]) if gap[widest] else 0.0

    def plot(self, title: str = "") -> "Figure":
        """One panel of accuracies for each order, as `grokscope prune` draws them."""
        from grokscope.plots import draw_pruning

        return draw_pruning(self, self.corruption, title)

    def to_pandas(self) -> "pd.DataFrame":
        """One row for each order and number of pruned neurons; the band is that of the random orders."""
        columns: dict[str, list[object]] = {"order": [], "pruned": [], "fraction_pruned": []}
        quantities = [field.name for field in fields(PruningCurve)]
        ends = {"_low": self.random_low, "_high": self.random_high}
        for name, curve in self.orders.items():
            count = len(curve.test_accuracy)
            columns["order"] += [name] * count
            columns["pruned"] += range(count)
            columns["fraction_pruned"] += curve.fraction_pruned.tolist()
            for quantity in quantities:
                columns.setdefault(quantity, []).extend(getattr(curve, quantity).tolist())
                for suffix, end in ends.items():
                    band = getattr(end, quantity).tolist() if name == "random" else [None] * count
                    columns.setdefault(f"{quantity}{suffix}", []).extend(band)
        return data_frame(columns)


def pruning_orders(model: Network, weights: Weights, task: Task) -> dict[str, Int64Array]:
    """The orders that follow from the weights, each [N]: what is pruned first stands first.

    Dead neurons, which have no IPR, come first in `lowest_ipr` and last in `highest_ipr`. Where the task has no waves
    there are no orders by IPR.

    >>> from grokscope import MLP, TaskSpec, initial_weights, pruned
    >>> model = MLP(width=4)
    >>> weights = pruned(model, initial_weights(model, modulus=11), [2])
    >>> {name: int(order[0]) for name, order in pruning_orders(model, weights, TaskSpec(modulus=11)).items()}
    {'lowest_ipr': 2, 'highest_ipr': 1, 'norm': 2}
    """
    neurons = model.prunable_neurons(weights)
    spectra = neuron_spectra(model, weights, task)
    orders = {}
    if spectra is not None:
        # The IPR of a dead neuron is not a number: −1 is below all others.
        lowest = _ascending(np.where(spectra.dead, -1, spectra.neuron_ipr))
        orders = {"lowest_ipr": lowest, "highest_ipr": lowest[::-1].copy()}
    own = np.concatenate(list(neurons.vectors.values()), axis=1)  # [N, 3p]
    orders["norm"] = _ascending(np.square(own, dtype=np.float64).sum(axis=1))
    if neurons.norm_scale is not None:
        orders["norm_scale"] = _ascending(np.abs(neurons.norm_scale))
    return orders


def _ascending(values: npt.ArrayLike) -> Int64Array:
    return np.argsort(values, kind="stable").astype(np.int64)


def random_order(neurons: int, number: int, seed: int = 0) -> Int64Array:
    """The random order of this number, 0, 1, …, of so many neurons."""
    return permutation(seed, Stream.PRUNING, number, np.arange(neurons, dtype=np.int64))


def measure_pruning(
    weights: Weights,
    model: Network,
    dataset: Dataset,
    loss: Loss = "mse",
    *,
    random_orders: int = 20,
    seed: int = 0,
) -> Pruning:
    """Prune in every order of `pruning_orders`, and in so many random ones; nothing is retrained.

    >>> from grokscope import MLP, TaskSpec, analytic_weights, make_dataset
    >>> dataset = make_dataset(TaskSpec(modulus=23, corruption=0))
    >>> pruning = measure_pruning(analytic_weights(23, 400), MLP(width=400), dataset, random_orders=2)
    >>> float(pruning.orders["random"].test_accuracy[0]), pruning.orders["random"].prunable > 100
    (1.0, True)
    """
    if random_orders < 1:
        raise GrokscopeError(f"random_orders = {random_orders} is not allowed: must be at least 1")
    named = pruning_orders(model, weights, dataset.task)
    drawn = [random_order(len(model.prunable_neurons(weights)), number, seed) for number in range(random_orders)]
    curves = pruning_curves(weights, model, dataset, [*named.values(), *drawn], loss)
    chance = curves[len(named) :]
    mean = _over(chance, lambda values: np.asarray(values.mean(axis=0)))
    low, high = (_over(chance, partial(np.percentile, q=percent, axis=0)) for percent in BAND)
    return Pruning(dict(zip(named, curves, strict=False)) | {"random": mean}, low, high)


def _over(curves: Sequence[PruningCurve], statistic: Callable[[FloatArray], FloatArray]) -> PruningCurve:
    """A statistic of every quantity over several curves, [curves, N + 1] → [N + 1]."""
    names = [field.name for field in fields(PruningCurve)]
    return PruningCurve(**{name: statistic(np.stack([getattr(curve, name) for curve in curves])) for name in names})


def pruning_curves(
    weights: Weights, model: Network, dataset: Dataset, orders: Sequence[npt.ArrayLike], loss: Loss = "mse"
) -> list[PruningCurve]:
    """Prune in each of these orders, which name all neurons, the first to go first; nothing is retrained.

    The neurons are those of the last hidden layer, of two-layer networks and of deeper ones without norms.

    >>> from grokscope import MLP, TaskSpec, analytic_weights, make_dataset
    >>> dataset = make_dataset(TaskSpec(modulus=23, corruption=0))
    >>> curve, = pruning_curves(analytic_weights(23, 400), MLP(width=400), dataset, [range(400)])
    >>> curve.test_accuracy.shape, float(curve.test_accuracy[0])
    ((401,), 1.0)
    """
    neurons = model.hidden_layer(weights, dataset.train_inputs[:1]).activations.shape[1]
    checked = [_checked(order, neurons) for order in orders]
    tallies = [_Tally(neurons) for _ in checked]
    size = max(_FEWEST_PAIRS, _VALUES_AT_ONCE // neurons)
    for start in range(0, len(dataset.train_labels), size):
        rows = slice(start, start + size)
        layer = model.hidden_layer(weights, dataset.train_inputs[rows])  # [size, N]
        labels, truth, corrupted = dataset.train_labels[rows], dataset.train_truth[rows], dataset.corrupted[rows]
        for tally, order in zip(tallies, checked, strict=True):
            tally.add_train(evaluate_prefixes(layer, order, labels, loss), labels, truth, corrupted)
    for start in range(0, len(dataset.test_labels), size):
        rows = slice(start, start + size)
        layer = model.hidden_layer(weights, dataset.test_inputs[rows])
        labels = dataset.test_labels[rows]
        for tally, order in zip(tallies, checked, strict=True):
            tally.add_test(evaluate_prefixes(layer, order, labels, loss), labels)
    return [tally.curve(dataset) for tally in tallies]


def _checked(order: npt.ArrayLike, neurons: int) -> Int64Array:
    array = np.asarray(order)
    if not np.array_equal(np.sort(array, axis=None), np.arange(neurons)) or array.ndim != 1:
        raise GrokscopeError(f"an order must name each of the neurons 0 … {neurons - 1} once")
    return np.ascontiguousarray(array, dtype=np.int64)


class _Tally:
    """Hits and losses of every prefix of one order, added up over blocks of examples."""

    def __init__(self, neurons: int) -> None:
        self._memorised = np.zeros((neurons + 1, 2))  # corrupted and clean examples
        self._recovered = np.zeros(neurons + 1)
        self._tested = np.zeros(neurons + 1)
        self._train_loss, self._test_loss = np.zeros(neurons + 1), np.zeros(neurons + 1)

    def add_train(
        self, said: Prefixes, labels: Int64Array, truth: Int64Array, corrupted: npt.NDArray[np.bool_]
    ) -> None:
        # A product with indicators counts the hits of groups: whole numbers below 2²⁴, which floats hold exactly.
        groups = np.stack([corrupted, ~corrupted], axis=1).astype(np.float32)  # [n, 2]
        self._memorised += (said.predictions == _small(labels)).astype(np.float32) @ groups  # [N + 1, 2]
        self._recovered += (said.predictions == _small(truth)).astype(np.float32) @ groups[:, 0]
        self._train_loss += said.losses.sum(axis=1, dtype=np.float64)

    def add_test(self, said: Prefixes, labels: Int64Array) -> None:
        self._tested += np.count_nonzero(said.predictions == _small(labels), axis=1)
        self._test_loss += said.losses.sum(axis=1, dtype=np.float64)

    def curve(self, dataset: Dataset) -> PruningCurve:
        n, corrupted = len(dataset.train_labels), int(dataset.corrupted.sum())
        return PruningCurve(
            train_accuracy=_mean(self._memorised.sum(axis=1), n),
            test_accuracy=_mean(self._tested, len(dataset.test_labels)),
            corrupted_accuracy=_mean(self._memorised[:, 0], corrupted),
            clean_accuracy=_mean(self._memorised[:, 1], n - corrupted),
            recovered_accuracy=_mean(self._recovered, corrupted),
            train_loss=_mean(self._train_loss, n),
            test_loss=_mean(self._test_loss, len(dataset.test_labels)),
        )


def _small(labels: Int64Array) -> npt.NDArray[np.uint16]:
    """In the type of the predictions: comparing with wider numbers would widen all predictions first."""
    return labels.astype(np.uint16)


def _mean(sums: FloatArray, count: int) -> FloatArray:
    return sums / count if count else np.full_like(sums, np.nan)

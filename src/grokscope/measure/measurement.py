"""What is measured of a network at a step, and what each measurement is: its columns, and how they are computed.

class EffectiveRank(Measurement):
    columns = ("effective_rank",)

    def measure(self, moment):
        singular = np.linalg.svd(moment.weights["W"], compute_uv=False)
        shares = singular / singular.sum()
        return {"effective_rank": float(np.exp(-(shares * np.log(shares)).sum()))}
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import ClassVar

from grokscope.errors import did_you_mean
from grokscope.extension import Complete, ExtensionError, load_class, remember_source
from grokscope.measure.behaviour import Behaviour, behaviour_from
from grokscope.measure.spectra.spectrum import NeuronSpectra, neuron_spectra
from grokscope.models import Evaluation, Network, Weights
from grokscope.tasks import Dataset


@dataclass(frozen=True)
class Moment:
    """A network at a step: all that a measurement may look at."""

    step: int
    train_loss: float  # of the batch this step was taken on, before the update, dropout and all
    network: Network
    weights: Weights
    train: Evaluation  # what it says about the training set,
    test: Evaluation  # and about the test set
    dataset: Dataset

    @cached_property
    def behaviour(self) -> Behaviour:
        """Accuracies and losses."""
        return behaviour_from(self.train, self.test, self.dataset)

    @cached_property
    def spectra(self) -> NeuronSpectra | None:
        """Of the input neurons; None if the task has no waves or the network no such neurons."""
        return neuron_spectra(self.network, self.weights, self.dataset.task)


class Measurement(Complete, ABC):
    """Some columns of a training curve."""

    columns: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        """Remember the source that the class was made from."""
        remember_source(cls)

    @abstractmethod
    def measure(self, moment: Moment) -> Mapping[str, float]:
        """The value of each column; NaN is what does not exist."""


class BehaviourColumns(Measurement):
    """What the network says about each kind of example."""

    columns = (
        "train_loss",  # of the batch this step was taken on, before the update, dropout and all
        "test_loss",  # this and all below: after the update, in evaluation mode
        "train_accuracy",  # against the labels trained on
        "test_accuracy",
        "corrupted_accuracy",  # corrupted examples, against their drawn labels: memorised
        "clean_accuracy",  # the other training examples
        "recovered_accuracy",  # corrupted examples, against their true labels: corrected
    )

    def measure(self, moment: Moment) -> Mapping[str, float]:
        """Means over the examples of both sets."""
        own = {name: getattr(moment.behaviour, name) for name in self.columns}
        return own | {"train_loss": moment.train_loss}


class SpectrumColumns(Measurement):
    """How periodic the neurons are."""

    columns = ("mean_ipr", "mean_gini", "dead_neurons")

    def measure(self, moment: Moment) -> Mapping[str, float]:
        """Means over live neurons."""
        spectra = moment.spectra
        if spectra is not None:
            return {
                "mean_ipr": spectra.mean_ipr,
                "mean_gini": spectra.mean_gini,
                "dead_neurons": int(spectra.dead.sum()),
            }
        neurons = moment.network.input_neurons(moment.weights)
        return {
            "mean_ipr": math.nan,
            "mean_gini": math.nan,
            "dead_neurons": 0 if neurons is None else int(neurons.dead.sum()),
        }


class NormColumns(Measurement):
    """How large the matrices at both ends are."""

    columns = (
        "norm_u",  # of U, or of a Transformer's embedding
        "norm_v",  # of V, which a Transformer does not have
        "norm_w",  # of W, or of a Transformer's unembedding
    )

    def measure(self, moment: Moment) -> Mapping[str, float]:
        """Frobenius norms; NaN for a matrix that the network does not have."""
        norms = moment.network.norms(moment.weights)
        return {name: norms.get(name, math.nan) for name in self.columns}


BUILT_IN: tuple[Measurement, ...] = (BehaviourColumns(), SpectrumColumns(), NormColumns())
COLUMNS = ("step", *(column for measurement in BUILT_IN for column in measurement.columns))
WHOLE_NUMBERS = ("step", "dead_neurons")


class Row(Mapping[str, float]):
    """One row of a training curve: the step, and a value for each column, by name or as an attribute.

    >>> row = Row({"step": 50, "test_accuracy": 0.5})
    >>> row.step, row.test_accuracy, row["test_accuracy"], list(row)
    (50, 0.5, 0.5, ['step', 'test_accuracy'])
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = dict(values)

    def __getitem__(self, column: str) -> float:
        return self._values[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, column: str) -> float:
        if column.startswith("__"):
            raise AttributeError(column)
        try:
            return self._values[column]
        except KeyError:
            hint = did_you_mean(column, self._values)
            raise AttributeError(f"the curve has no column {column!r}{hint}") from None

    @property
    def step(self) -> int:
        """After how many steps it was taken."""
        return int(self._values["step"])

    def __reduce__(self) -> tuple[type["Row"], tuple[dict[str, float]]]:
        return Row, (self._values,)

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value:.6g}' for name, value in self._values.items())})"


def measurements_called(references: Sequence[str]) -> list[Measurement]:
    """The built-in ones, and a user's own by their names."""
    own = [load_class(reference, Measurement)() for reference in references]  # type: ignore[type-abstract]
    taken = set(COLUMNS)
    for reference, measurement in zip(references, own, strict=True):
        columns = getattr(measurement, "columns", None)
        if (
            not isinstance(columns, tuple)
            or not columns
            or not all(isinstance(c, str) and c.isidentifier() for c in columns)
        ):
            raise ExtensionError(f"{reference}: columns must be a tuple of names, and are {columns!r}")
        if clash := next((column for column in columns if hasattr(Row, column)), None):
            raise ExtensionError(f"{reference}: a column cannot be called {clash!r}; call it something else")
        if twice := taken & set(columns):
            raise ExtensionError(f"{reference}: there is a column {min(twice)!r} already; call yours something else")
        taken |= set(columns)
    return [*BUILT_IN, *own]


def take_row(moment: Moment, measurements: Sequence[Measurement] = BUILT_IN) -> Row:
    """Everything that a curve records of a network at a step."""
    values: dict[str, float] = {"step": moment.step}
    for measurement in measurements:
        found = measurement.measure(moment)
        if measurement not in BUILT_IN:
            _check(measurement, found)
        values |= {column: value if isinstance(value, int) else float(value) for column, value in found.items()}
    return Row(values)


def _check(measurement: Measurement, found: object) -> None:
    name = type(measurement).__name__
    if not isinstance(found, Mapping) or set(found) != set(measurement.columns):
        came = sorted(found) if isinstance(found, Mapping) else type(found).__name__
        raise ExtensionError(
            f"{name}.measure() must give a dict with {', '.join(measurement.columns)}, and gave {came}"
        )
    for column, value in found.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ExtensionError(f"{name}.measure() must give numbers, and gave {column} = {value!r}")

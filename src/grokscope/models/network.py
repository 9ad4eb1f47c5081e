"""What every network is: its fields, its first weights, what it computes, and which of its numbers are neurons.

    class Linear(Network):
        def initial_weights(self, task, seed, seeding="independent"):
            shape = (task.classes, task.inputs.vocabulary)
            return {"A": normal(seed, 0, shape).astype("float32"), "B": normal(seed, 1, shape).astype("float32")}

        def forward(self, weights, inputs, layers):
            return weights["A"].T[inputs[:, 0]] + weights["B"].T[inputs[:, 1]]

What a network computes depends on nothing but its arrays, the inputs and the dropout masks. That is what lets one piece
of code train a network alone, or many of them stacked.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from grokscope.arrays import short_repr
from grokscope.errors import GrokscopeError
from grokscope.extension import Complete, ExtensionError
from grokscope.models.weights import FloatVectors, Weights
from grokscope.section import UNRESOLVED_CONFIG, KindSection, Unresolved
from grokscope.tasks import Inputs, Seeding, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from grokscope.models.module import Layers, NetworkModule


@dataclass(frozen=True)
class Neurons:
    """The neurons at one end of a network: the vectors that belong to each, as views of its weights."""

    layer: str  # where they are: "hidden", "embedding", …
    vectors: dict[str, FloatVectors]  # [N, symbols] each, by a letter: u and v over inputs, w over labels
    norm_scale: FloatVectors | None = None  # [N]  γ of the Batch- or LayerNorm that scales these neurons
    what: str = "neurons"  # what one calls them

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Refuse vectors that do not belong to the same neurons."""
        shapes = {letter: np.shape(vectors) for letter, vectors in self.vectors.items()}
        if not shapes or any(len(shape) != 2 for shape in shapes.values()) or len({n for n, _ in shapes.values()}) > 1:
            raise ExtensionError(f"Neurons need vectors of shape [N, symbols] with one N; these have {shapes}")
        count = len(self)
        if self.norm_scale is not None and np.shape(self.norm_scale) != (count,):
            raise ExtensionError(f"norm_scale must have one number for each of the {count} neurons")

    def __len__(self) -> int:
        return len(next(iter(self.vectors.values())))

    def stacked(self) -> FloatVectors:
        """All vectors as one array [V, N, symbols]; inputs and labels must have as many symbols."""
        return np.stack(list(self.vectors.values()))

    def norms(self) -> npt.NDArray[np.float64]:
        """Euclidean, of all vectors of a neuron together [N]."""
        squares = [np.square(vectors, dtype=np.float64).sum(axis=1) for vectors in self.vectors.values()]
        return np.asarray(np.sqrt(np.sum(squares, axis=0)))

    @property
    def dead(self) -> npt.NDArray[np.bool_]:
        """Neurons with a zero vector [N]."""
        return np.asarray(np.stack([~vectors.any(axis=1) for vectors in self.vectors.values()]).any(axis=0))


class HiddenLayer(NamedTuple):
    """The last hidden layer, if the logits are its activations times a matrix: what pruning works on."""

    activations: FloatVectors  # [n, N]  on some inputs; 0 for a neuron that was taken out
    output: FloatVectors  # [classes, N]
    layer_norm: tuple[FloatVectors, FloatVectors] | None = None  # γ and β [N] of a LayerNorm between the two


class Network(Complete, KindSection):
    """A kind of network with its sizes."""

    section: ClassVar[str] = "model"
    # Kept as [symbols, N] while training: a look-up then reads whole rows, and its gradient adds whole rows.
    transposed: ClassVar[tuple[str, ...]] = ()
    embeddings: ClassVar[tuple[str, ...]] = ()  # arrays that `optimizer.decay_embeddings` may spare

    # ---- what a network must say --------------------------------------------------------------------------------

    @abstractmethod
    def initial_weights(self, task: Task, seed: int, seeding: Seeding = "independent") -> Weights:
        """The arrays before the first step, float32, by name. Names ending in _mean or _variance are not trained."""

    @abstractmethod
    def forward(self, weights: "Mapping[str, Tensor]", inputs: "Tensor", layers: "Layers") -> "Tensor":
        """Logits [B, classes] of inputs [B, positions]; `layers` has dropout and normalisation."""

    # ---- what it may say ----------------------------------------------------------------------------------------

    def check(self, task: Task) -> None:
        """Raise a SpecError if it cannot be trained on such a task."""

    def input_neurons(self, weights: Weights) -> Neurons | None:
        """The neurons that read the input; None if it has none to tell apart."""
        return None

    def output_neurons(self, weights: Weights) -> Neurons | None:
        """Those that write the logits; None if `input_neurons` has both ends, or there are none."""
        return None

    def norms(self, weights: Weights) -> dict[str, float]:
        """Frobenius norms of the matrices at the input (norm_u, norm_v) and at the output (norm_w)."""
        found = {}
        for neurons in (self.input_neurons(weights), self.output_neurons(weights)):
            for letter, vectors in neurons.vectors.items() if neurons else ():
                found[f"norm_{letter}"] = frobenius(vectors)
        return found

    def hidden_layer(self, weights: Weights, inputs: Inputs) -> HiddenLayer:
        """What pruning works on."""
        raise GrokscopeError(
            self.why_not_prunable()
            or f"{self.kind}: why_not_prunable() returns None, so there must be a hidden_layer() too"
        )

    def why_not_prunable(self) -> str | None:
        """Why single neurons cannot be taken out, in words; None if they can."""
        return (
            f"this network is not one to prune ({self.describe()}): it does not say what its neurons are, for which a "
            "class of yours has input_neurons(), hidden_layer(), and why_not_prunable() that returns None"
        )

    def why_not_ablatable(self) -> str | None:
        """Why its neurons cannot be replaced by waves, in words; None if they can."""
        if self.why_not_prunable() is None:
            return None
        return f"ablations need a two-layer network, whose neurons have U, V and W; this one is {self.describe()}"

    def why_no_reference(self) -> str | None:
        """Why it cannot start from the authors' weights, in words; None if it can."""
        return "the authors' initial weights exist only for two-layer networks"

    def details(self) -> list[str]:
        """What a title says of it beside `describe`."""
        return []

    def attention(self, weights: Weights, pair: tuple[int, int]) -> npt.NDArray[np.float32]:
        """How heads divide their attention on a pair (m, n): [layers, heads, query, key]."""
        raise GrokscopeError(f"there is no attention to show: model.kind = {self.kind!r}")

    def dropout_widths(self, weights: "Mapping[str, Any]") -> list[int]:
        """How many values of an example dropout acts on, at each place where it acts, in order."""
        return []

    def rate_factor(self, name: str) -> float:
        """What the learning rate is multiplied by for an array."""
        return 1.0

    def kernel_settings(self, task: Task) -> dict[str, Any] | str:
        """What the native kernel needs to know to train it; a string that says why the kernel cannot."""
        return f"it has no model.kind = {self.kind!r}"

    @staticmethod
    def why_not_named_by_pairs(task: Task) -> str | None:
        """Why the native kernel cannot read a task's examples, in words; None if it can."""
        if task.named_by_pairs:
            return None
        return f"it reads pairs (m, n) of p tokens, named m·p + n, with p labels; {task.describe()} has other examples"

    def parameter_count(self, task: Task) -> int:
        """How many numbers its arrays hold."""
        return _counted(self, task)

    def activation_count(self, task: Task) -> int:
        """Roughly how many numbers a training step keeps for each example, logits apart."""
        return 8 * self.neuron_count

    @property
    def neuron_count(self) -> int:
        """How many input neurons there are to tell apart."""
        return int(getattr(self, "width", 0))

    @property
    def deep(self) -> bool:
        """Whether it is more than the two-layer network of the paper."""
        return True

    @property
    def norm_curves(self) -> dict[str, str]:
        """Which norms a picture of its training shows, and how they are called there."""
        return {"norm_u": "‖U‖", "norm_v": "‖V‖", "norm_w": "‖W‖"}

    @property
    def has_attention(self) -> bool:
        """Whether `attention` has something to show."""
        return type(self).attention is not Network.attention

    @property
    def dropout_probability(self) -> float:
        """Of each value that dropout acts on."""
        return float(getattr(self, "dropout", 0.0))

    @property
    def least_batch(self) -> int:
        """The fewest examples that a step can be taken on: the variance of BatchNorm needs two."""
        return 2 if getattr(self, "norm", "none") == "batch" else 1

    # ---- what follows from it -----------------------------------------------------------------------------------

    def module(self, weights: Weights) -> "NetworkModule":
        """The torch module with these weights."""
        from grokscope.models.module import NetworkModule

        return NetworkModule(self, weights)

    def to_torch(self, weights: Weights, task: Task) -> "nn.Module":
        """The same network as a plain torch module, whose code needs torch alone."""
        raise GrokscopeError(
            f"{self.kind} is code of your own, and has no plain torch module; module() gives it as it is"
        )

    def prunable_neurons(self, weights: Weights) -> Neurons:
        """The neurons that pruning takes out; an error that says why if there are none."""
        neurons, reason = self.input_neurons(weights), self.why_not_prunable()
        if reason:
            raise GrokscopeError(reason)
        if neurons is None:
            raise ExtensionError(f"{self.kind}: why_not_prunable() returns None, so there must be input_neurons() too")
        return neurons

    def pruned(self, weights: Weights, neurons: npt.ArrayLike) -> Weights:
        """A copy without these neurons (indices, or a mask): their vectors are zero; nothing is retrained."""
        chosen = np.asarray(neurons)
        if chosen.dtype != np.bool_:
            chosen = chosen.astype(np.int64)
        copy = {name: array.copy() for name, array in weights.items()}
        layer = self.prunable_neurons(copy)
        for letter, vectors in layer.vectors.items():
            if not any(np.shares_memory(vectors, array) for array in copy.values()):
                raise ExtensionError(
                    f"{self.kind}: input_neurons() must give views of the weights, and {letter!r} is a copy"
                )
            vectors[chosen] = 0
        return copy


class UnresolvedNetwork(Unresolved, Network):
    """A network of a stored run whose code was not imported."""

    model_config = UNRESOLVED_CONFIG

    def initial_weights(self, task: Task, seed: int, seeding: Seeding = "independent") -> Weights:
        """Not without the code."""
        raise self.needed()

    def forward(self, weights: "Mapping[str, Tensor]", inputs: "Tensor", layers: "Layers") -> "Tensor":
        """Not without the code."""
        raise self.needed()

    def input_neurons(self, weights: Weights) -> Neurons | None:
        """Not without the code."""
        raise self.needed()

    def why_not_prunable(self) -> str | None:
        """Not without the code."""
        return str(self.needed())


def frobenius(matrix: FloatVectors) -> float:
    """The root of the sum of squares, in double precision."""
    return float(np.sqrt(np.square(matrix, dtype=np.float64).sum()))


def checked_weights(network: Network, weights: object) -> Weights:
    """What `initial_weights` of a user's network gave, if it is what it should be."""
    if not isinstance(weights, dict) or not weights:
        raise ExtensionError(
            f"{network.kind}: initial_weights() must return arrays by name, and returned {type(weights).__name__}"
        )
    for name, array in weights.items():
        if not isinstance(array, np.ndarray) or array.dtype != np.float32 or not np.isfinite(array).all():
            what = f"{array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ExtensionError(f"{network.kind}: the weights {name!r} must be a finite float32 array, and are {what}")
        if not str(name).isidentifier():
            raise ExtensionError(f"{network.kind}: {name!r} cannot be the name of weights: letters, digits and _ only")
    return weights


@lru_cache(maxsize=64)
def _counted(network: Network, task: Task) -> int:
    return sum(array.size for array in network.initial_weights(task, seed=0).values())


def letters(positions: int) -> tuple[str, ...]:
    """What the input matrices are called, one for each position: U and V of a pair."""
    return ("U", "V") if positions == 2 else tuple(f"U{i}" for i in range(1, positions + 1))

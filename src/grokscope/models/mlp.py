"""Fully connected networks: the two-layer one of Equations 1 and 5, and deeper ones.

x₁ = norm(φ(dropout(U eₘ + V eₙ)))
xᵢ = norm(φ(dropout(Hᵢ xᵢ₋₁)))        i = 2 … depth − 1
f(m, n) = W x

Their weights have the paper's names, U [N, p], V [N, p], H2, H3, … [N, N] and W [p, N]; with a normalisation layer
also norm_scale [N] and norm_shift [N], with BatchNorm norm_mean [N] and norm_variance [N]; those after the second
hidden layer are norm2_scale, and so on. A task with another number of positions than two has U1, U2, …; one
whose inputs are vectors has U alone.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from grokscope.errors import GrokscopeError
from grokscope.models.network import HiddenLayer, Network, Neurons, letters
from grokscope.models.weights import NORM_EPSILON, FloatVectors, Weights, idle_norm
from grokscope.randomness import normal
from grokscope.tasks import Inputs, InputShape, Seeding, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from grokscope.models.module import Layers

Activation = Literal["quadratic", "relu", "gelu"]
Norm = Literal["none", "batch", "layer"]
Parameterization = Literal["paper", "standard", "lazy"]

_REFERENCE_INIT_SEED = 1


class MLP(Network):
    """f(m, n) = W · norm(φ(dropout(U eₘ + V eₙ))), or deeper.

    >>> MLP().activation, MLP(depth=3).activation
    ('quadratic', 'relu')

    An activation that is not named is the paper's for the network: quadratic for two layers, ReLU for all others.
    """

    transposed: ClassVar[tuple[str, ...]] = ("U", "V")

    kind: str = "mlp"
    width: Annotated[int, Field(ge=1, lt=2**24)] = 500
    activation: Activation = "quadratic"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    norm: Norm = "none"
    parameterization: Parameterization = "paper"
    depth: Annotated[int, Field(ge=2, le=64)] = 2  # layers of weights

    @model_validator(mode="before")
    @classmethod
    def _name_the_activation(cls, fields: object) -> object:
        if isinstance(fields, dict) and "activation" not in fields and fields.get("depth", 2) != 2:
            return {**fields, "activation": "relu"}
        return fields

    def describe(self) -> str:
        """Kind and size in a few words.

        >>> MLP().describe(), MLP(depth=3).describe()
        ('quadratic 500', '3-layer relu 500')
        """
        words = f"{'' if self.depth == 2 else f'{self.depth}-layer '}{self.activation} {self.width}"
        return words + (f" {self.parameterization}" if self.parameterization != "paper" else "")

    def details(self) -> list[str]:
        """Dropout and norm, if there are any."""
        return regularisation(self.dropout, self.norm)

    def why_no_reference(self) -> str | None:
        """Only two layers."""
        return super().why_no_reference() if self.deep else None

    # ---- weights ------------------------------------------------------------------------------------------------

    def initial_weights(self, task: Task, seed: int, seeding: Seeding = "independent") -> Weights:
        """Gaussian weights at the scale of the parameterisation, and normalisation layers that do nothing yet."""
        shapes = self._shapes(task)  # each with its number in the random stream
        if seeding == "reference":
            normals = dict(zip(shapes, _reference_normals(self.width, task.classes), strict=True))
        else:
            normals = {name: normal(seed, number, shape) for number, (name, shape) in enumerate(shapes.items())}
        weights = {name: (self._scale(name, task) * values).astype(np.float32) for name, values in normals.items()}
        if self.norm != "none":
            for layer in range(1, self.depth):
                weights |= idle_norm(norm_prefix(layer), self.width, batch=self.norm == "batch")
        return weights

    def _shapes(self, task: Task) -> dict[str, tuple[int, int]]:
        N, inputs = self.width, task.inputs
        shapes = dict.fromkeys(_input_names(inputs), (N, inputs.vocabulary if inputs.tokens else inputs.size))
        return shapes | {"W": (task.classes, N)} | {f"H{layer}": (N, N) for layer in range(2, self.depth)}

    def _scale(self, name: str, task: Task) -> float:
        """The standard deviation of a layer."""
        match self.parameterization:
            case "paper":
                return float((16 * self.width) ** (-1 / 3))
            case "lazy":
                return math.sqrt(2) * float(self.width ** (-1 / 3))
            case "standard":
                # N(0, 2/fan_in); the one-hot input eₘ ⊕ eₙ has 2p entries.
                inputs = task.inputs
                entries = inputs.size * inputs.vocabulary if inputs.tokens else inputs.size
                return math.sqrt(2 / (entries if name in _input_names(inputs) else self.width))

    def parameter_count(self, task: Task) -> int:
        """How many numbers the arrays hold.

        >>> from grokscope.tasks import ModularTask
        >>> MLP().parameter_count(ModularTask())
        145500
        """
        per_norm = {"none": 0, "layer": 2 * self.width, "batch": 4 * self.width}[self.norm]
        return sum(rows * columns for rows, columns in self._shapes(task).values()) + (self.depth - 1) * per_norm

    # ---- computing ----------------------------------------------------------------------------------------------

    def forward(self, weights: "Mapping[str, Tensor]", inputs: "Tensor", layers: "Layers") -> "Tensor":
        """Logits [B, classes] of inputs [B, positions] or [B, size]."""
        import torch.nn.functional as F

        from grokscope.models.module import ACTIVATIONS

        hidden = _first_layer(inputs, layers)  # [B, N]
        for layer in range(1, self.depth):
            if layer > 1:
                hidden = F.linear(hidden, weights[f"H{layer}"])  # [B, N]
            number = "" if layer == 1 else str(layer)
            hidden = ACTIVATIONS[self.activation](layers.dropout(layers.hook(f"pre{number}", hidden)))
            hidden = layers.hook(f"post{number}", hidden)
            if self.norm != "none":
                hidden = layers.hook(norm_prefix(layer), layers.norm(hidden, self.norm, norm_prefix(layer)))
        return F.linear(hidden, weights["W"])  # [B, classes]

    def to_torch(self, weights: Weights, task: Task) -> "nn.Module":
        """A `PlainMLP` with these weights, in evaluation mode."""
        from grokscope.models.plain import PlainMLP, loaded

        inputs = task.inputs
        module = PlainMLP(
            inputs.size,
            inputs.vocabulary,
            self.width,
            task.classes,
            depth=self.depth,
            activation=self.activation,
            norm=self.norm,
            dropout=self.dropout,
            tokens=inputs.tokens,
        )
        names = {f"{norm_prefix(layer)}_": f"norm{layer}." for layer in range(1, self.depth)}
        looked_up = _input_names(inputs) if inputs.tokens else ()
        return loaded(module, {name: w.T if name in looked_up else w for name, w in weights.items()}, names)

    def dropout_widths(self, weights: Mapping[str, Any]) -> list[int]:
        """Every hidden layer."""
        return [self.width] * (self.depth - 1)

    def kernel_settings(self, task: Task) -> dict[str, Any] | str:
        """Every MLP, on pairs of as many tokens as there are labels."""
        return self.why_not_named_by_pairs(task) or {
            "width": self.width,
            "depth": self.depth,
            "activation": self.activation,
            "norm": self.norm,
        }

    def activation_count(self, task: Task) -> int:
        """What a step keeps of every hidden layer."""
        return self.width * (self.depth - 1) * (5 + 3 * (self.norm != "none"))

    # ---- neurons ------------------------------------------------------------------------------------------------

    def input_neurons(self, weights: Weights) -> Neurons | None:
        """Rows of U and V and, with two layers, columns of W."""
        names = sorted((name for name in weights if name.startswith(("U", "V"))), key=lambda name: (len(name), name))
        own = {name.lower(): weights[name] for name in names}  # U and V, or U1 … U12: whatever order they came in
        scale = weights.get(f"{norm_prefix(1)}_scale")
        if self.depth == 2:
            return Neurons("hidden", own | {"w": weights["W"].T}, scale)
        return Neurons("first hidden", own, scale)

    def output_neurons(self, weights: Weights) -> Neurons | None:
        """Columns of W; None with two layers, whose `input_neurons` have them."""
        if self.depth == 2:
            return None
        return Neurons("last hidden", {"w": weights["W"].T}, weights.get(f"{norm_prefix(self.depth - 1)}_scale"))

    def why_not_prunable(self) -> str | None:
        """Only two layers: the neurons of others have no vectors at both ends."""
        if self.depth == 2:
            return None
        return (
            f"this network is not one to prune ({self.describe()}): pruning is defined here for two-layer networks, "
            "whose neurons each have a row of U, a row of V and a column of W"
        )

    def hidden_layer(self, weights: Weights, inputs: Inputs) -> HiddenLayer:
        """φ(U eₘ + V eₙ), through BatchNorm if there is one; of a deep network without norms the last hidden layer."""
        if self.deep and self.norm != "none":
            raise GrokscopeError(f"there are no plain neurons behind a norm: {self.describe()}, {self.norm} norm")
        hidden = self._activations(weights, inputs)  # [n, N]
        for layer in range(2, self.depth):
            hidden = self._activated(hidden @ weights[f"H{layer}"].T)
        if self.norm == "batch":
            deviation = np.sqrt(weights["norm_variance"].astype(np.float64) + NORM_EPSILON)
            scale = weights["norm_scale"] / deviation  # [N]
            hidden = ((hidden - weights["norm_mean"]) * scale + weights["norm_shift"]).astype(np.float32)
        between = (weights["norm_scale"], weights["norm_shift"]) if self.norm == "layer" else None
        return HiddenLayer(hidden, weights["W"], between)

    def _activations(self, weights: Weights, inputs: Inputs) -> FloatVectors:
        names = [name for name in weights if name.startswith(("U", "V"))]
        # As rows of neurons: a look-up then reads whole rows.
        tables = [np.ascontiguousarray(weights[name].T) for name in names]  # [p, N] each
        hidden: FloatVectors
        if inputs.dtype.kind == "f":
            hidden = inputs @ tables[0]  # [n, N]
        else:
            hidden = tables[0][inputs[:, 0]]
            for position, table in enumerate(tables[1:], start=1):
                hidden += table[inputs[:, position]]
        return self._activated(hidden)

    def _activated(self, hidden: FloatVectors) -> FloatVectors:
        """φ, in place where it can be."""
        match self.activation:
            case "quadratic":
                np.square(hidden, out=hidden)
            case "relu":
                np.maximum(hidden, 0, out=hidden)
            case "gelu":
                import torch

                hidden = torch.nn.functional.gelu(torch.from_numpy(hidden)).numpy()
        return hidden

    @property
    def deep(self) -> bool:
        """More than two layers."""
        return self.depth > 2


def regularisation(dropout: float, norm: Norm) -> list[str]:
    """What a title says about them.

    >>> regularisation(0.3, "batch")
    ['dropout = 0.3', 'batch norm']
    """
    return ([f"dropout = {dropout:g}"] if dropout else []) + ([f"{norm} norm"] if norm != "none" else [])


def norm_prefix(layer: int) -> str:
    """How the names of the norm after hidden layer 1, 2, … begin."""
    return "norm" if layer == 1 else f"norm{layer}"


def _input_names(inputs: InputShape) -> tuple[str, ...]:
    return letters(inputs.size) if inputs.tokens else ("U",)


def _first_layer(inputs: "Tensor", layers: "Layers") -> "Tensor":
    """U eₘ + V eₙ of tokens, or U x of vectors [B, N]."""
    if inputs.is_floating_point():
        return inputs @ layers.table("U")
    # index_select, not U[m]: the gradient of advanced indexing scatters row by row, twice as slowly.
    first, *others = letters(inputs.shape[-1])
    hidden = layers.table(first).index_select(0, inputs[:, 0])
    for position, name in enumerate(others, start=1):
        hidden = hidden + layers.table(name).index_select(0, inputs[:, position])
    return hidden


def _reference_normals(N: int, p: int) -> tuple[npt.NDArray[np.floating], ...]:
    """The authors' random numbers: two nn.Linear layers draw their default weights, then are drawn again."""
    import torch

    generator = torch.Generator().manual_seed(_REFERENCE_INIT_SEED)
    for shape in ((N, 2 * p), (p, N)):
        torch.empty(shape).uniform_(generator=generator)
    first = torch.empty(N, 2 * p).normal_(generator=generator).numpy()
    second = torch.empty(p, N).normal_(generator=generator).numpy()
    return first[:, :p], first[:, p:], second

"""Encoder Transformers on the two tokens m and n, without an "=" token, a mask or biases; the last position is read.

    x = E[token] + P[position]
    x = x + dropout(O attention(Q norm(x), K norm(x), V norm(x)))     each layer
    x = x + dropout(B φ(A norm(x)))
    f(m, n) = W norm(x_last) / scale

Their weights are

    embedding [p, d]   positions [2, d]   unembedding [p, d], unless it is tied to the embedding
    query1, key1, value1, output1 [d, d]   mlp_in1 [4d, d]   mlp_out1 [d, 4d]   and so on for each layer

and, with LayerNorm, attention_norm1_scale, mlp_norm1_scale, …, final_norm_scale [d] and their shifts.

What a position is in the first layer depends on its token alone, so queries, keys and values are computed for p tokens
at each position, not for every pair. And only the last position goes through the last layer, because nothing else is
read. At one layer and α = .5 that is two fifths of the work of the plain way.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, model_validator

from grokscope.errors import SpecError
from grokscope.models.mlp import Activation, Norm, regularisation
from grokscope.models.network import Network, Neurons, frobenius
from grokscope.models.weights import FloatVectors, Weights, idle_norm
from grokscope.randomness import normal
from grokscope.tasks import Seeding, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from grokscope.models.module import Layers

Scaling = Literal["d", "sqrt-d"]
TiedStart = Literal["embedding", "unembedding"]
DropoutPlaces = Literal["residual", "everywhere"]
MLP_EXPANSION = 4  # the hidden layer of the MLP, in embedding sizes


def _hyphenated(value: object) -> object:
    """Accept sqrt_d for sqrt-d."""
    return value.replace("_", "-") if isinstance(value, str) else value


class Transformer(Network):
    """Attention over the pair, then an MLP, some layers of both.

    >>> Transformer(layers=2).describe(), Transformer().activation
    ('2-layer transformer 128, 4 heads', 'relu')
    """

    embeddings: ClassVar[tuple[str, ...]] = ("embedding", "positions")
    identity_defaults: ClassVar[Mapping[str, Any]] = {"activation": "quadratic"}

    kind: str = "transformer"
    activation: Activation = "relu"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    norm: Norm = "none"
    embed: Annotated[int, Field(ge=1, lt=2**16)] = 128
    heads: Annotated[int, Field(ge=1)] = 4
    layers: Annotated[int, Field(ge=1, le=64)] = 1
    tie_weights: bool = False
    scaling: Annotated[Scaling, BeforeValidator(_hyphenated)] = "d"
    # Whether each module has its own learning rate, as the authors' program offers (`rescale_optim`).
    module_rates: bool = False
    # As what a tied matrix starts: N(0, 1), or N(0, 1/d) as in the authors' program.
    tied_start: TiedStart = "embedding"
    # Where dropout acts: on what blocks add to the stream, or also on the embedded pair and on the attention, as in the
    # authors' program.
    dropout_places: DropoutPlaces = "residual"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.embed % self.heads:
            raise self.refuse("heads", f"it must divide model.embed = {self.embed}")
        if self.norm == "batch":
            raise self.refuse("norm", "a Transformer has none or layer")
        if self.tied_start != "embedding" and not self.tie_weights:
            raise self.refuse("tied_start", "it means nothing without model.tie_weights; leave it out")
        return self

    def check(self, task: Task) -> None:
        """Pairs of tokens only."""
        if not task.inputs.tokens or task.inputs.size != 2:
            raise SpecError(
                f"model.kind = {self.kind!r} is not allowed: it reads pairs of tokens, and {task.describe()} "
                f"has {task.inputs.describe()}; model.kind 'mlp' reads them"
            )

    def describe(self) -> str:
        """Kind and size in a few words."""
        words = f"{self.layers}-layer transformer {self.embed}, {self.heads} heads"
        tied = ", tied" + (" as unembedding" if self.tied_start == "unembedding" else "")
        words += (tied if self.tie_weights else "") + (", sqrt-d" if self.scaling == "sqrt-d" else "")
        return words + (", module-wise rates" if self.module_rates else "")

    def details(self) -> list[str]:
        """Dropout and norm, if there are any."""
        everywhere = ["dropout everywhere"] if self.dropout and self.dropout_places == "everywhere" else []
        return regularisation(self.dropout, self.norm) + everywhere

    # ---- weights ------------------------------------------------------------------------------------------------

    def initial_weights(self, task: Task, seed: int, seeding: Seeding = "independent") -> Weights:
        """Embeddings N(0, 1) and linear layers N(0, 1/fan_in), as in the authors' program."""
        d, hidden = self.embed, MLP_EXPANSION * self.embed
        shapes = {"embedding": (task.inputs.vocabulary, d), "positions": (2, d)}
        for layer in range(1, self.layers + 1):
            shapes |= {f"{name}{layer}": (d, d) for name in ("query", "key", "value", "output")}
            shapes |= {f"mlp_in{layer}": (hidden, d), f"mlp_out{layer}": (d, hidden)}
        if not self.tie_weights:
            shapes["unembedding"] = (task.classes, d)
        weights = {}
        for number, (name, shape) in enumerate(shapes.items()):
            wide = name in self.embeddings and not (name == "embedding" and self.tied_start == "unembedding")
            scale = 1 if wide else 1 / math.sqrt(shape[1])
            weights[name] = (scale * normal(seed, number, shape)).astype(np.float32)
        if self.norm == "layer":
            for layer in range(1, self.layers + 1):
                weights |= idle_norm(f"attention_norm{layer}", d) | idle_norm(f"mlp_norm{layer}", d)
            weights |= idle_norm("final_norm", d)
        return weights

    def rate_factor(self, name: str) -> float:
        """With module-wise rates, what the authors' program has for each module at this scaling.

        >>> transformer = Transformer(embed=64, module_rates=True)
        >>> [round(1 / transformer.rate_factor(name)) for name in ("embedding", "query1", "mlp_in1", "mlp_out1")]
        [1, 64, 128, 256]
        """
        if not self.module_rates:
            return 1.0
        d = self.embed
        module = name.rstrip("0123456789")
        smaller = {"mlp_in": d * math.sqrt(MLP_EXPANSION), "mlp_out": d * MLP_EXPANSION}
        smaller |= dict.fromkeys(("query", "key", "value", "output"), d)
        return self.scale(d) / d / smaller.get(module, 1)

    def parameter_count(self, task: Task) -> int:
        """How many numbers the arrays hold."""
        d = self.embed
        tables = task.inputs.vocabulary * d + (0 if self.tie_weights else task.classes * d) + 2 * d
        norms = 2 * d * (2 * self.layers + 1) if self.norm == "layer" else 0
        return tables + norms + self.layers * d * d * (4 + 2 * MLP_EXPANSION)

    # ---- computing ----------------------------------------------------------------------------------------------

    def forward(self, weights: "Mapping[str, Tensor]", inputs: "Tensor", layers: "Layers") -> "Tensor":
        """Logits [B, classes] of pairs [B, 2]."""
        import torch.nn.functional as F

        from grokscope.models.attention import through_layers

        x, _ = through_layers(self, weights, inputs, layers, whole=False)
        unembedding = weights["embedding" if self.tie_weights else "unembedding"]  # [p, d]
        return F.linear(layers.norm(x[:, -1], self.norm, "final_norm"), unembedding) / self.scale(self.embed)

    def scale(self, size: int) -> float:
        """What scores over vectors of this size are divided by."""
        return size if self.scaling == "d" else math.sqrt(size)

    def attention(self, weights: Weights, pair: tuple[int, int]) -> npt.NDArray[np.float32]:
        """How the heads divide their attention on a pair (m, n): [layers, heads, query, key].

        Position 0 is m, position 1 is n; only the query at position 1 of the last layer is read.

        >>> from grokscope.tasks import ModularTask
        >>> network = Transformer(embed=8, heads=2)
        >>> weights = network.initial_weights(ModularTask(modulus=5), seed=0)
        >>> network.attention(weights, (3, 4)).sum(axis=-1).round(5).tolist()
        [[[1.0, 1.0], [1.0, 1.0]]]
        """
        import torch

        from grokscope.models.attention import attention

        patterns: npt.NDArray[np.float32] = attention(self.module(weights), torch.tensor([pair]))[0].numpy()
        return patterns

    def to_torch(self, weights: Weights, task: Task) -> "nn.Module":
        """A `PlainTransformer` with these weights, in evaluation mode."""
        from grokscope.models.plain import PlainTransformer, loaded

        module = PlainTransformer(
            task.inputs.vocabulary,
            task.classes,
            self.embed,
            self.heads,
            self.layers,
            activation=self.activation,
            norm=self.norm,
            dropout=self.dropout,
            tie_weights=self.tie_weights,
            scaling=self.scaling,
            dropout_places=self.dropout_places,
        )
        names = {"final_norm_": "final_norm."}
        for layer in range(1, self.layers + 1):
            block = f"blocks.{layer - 1}."
            names |= {f"{part}{layer}": f"{block}attention.{part}." for part in ("query", "key", "value", "output")}
            names |= {f"{part}{layer}": f"{block}{part}." for part in ("mlp_in", "mlp_out")}
            names |= {f"{norm}{layer}_": f"{block}{norm}." for norm in ("attention_norm", "mlp_norm")}
        return loaded(module, weights, names)

    def dropout_widths(self, weights: Mapping[str, Any]) -> list[int]:
        """What attention and MLP of each layer add to the positions that go on.

        >>> Transformer(embed=8, heads=2, layers=2).dropout_widths({})
        [16, 16, 8, 8]
        >>> Transformer(embed=8, heads=2, layers=2, dropout_places="everywhere").dropout_widths({})
        [16, 8, 16, 16, 4, 8, 8]
        """
        widths = [] if self.dropout_places == "residual" else [2 * self.embed]
        for layer in range(1, self.layers + 1):
            positions = 2 if layer < self.layers else 1
            if self.dropout_places == "everywhere":
                widths.append(2 * self.heads * positions)  # the pattern [H, P, 2]
            widths += [positions * self.embed] * 2
        return widths

    def kernel_settings(self, task: Task) -> dict[str, Any] | str:
        """Every Transformer that drops only what its blocks add, on pairs of as many tokens as there are labels."""
        if self.dropout and self.dropout_places == "everywhere":
            return "its dropout acts on what blocks add to the stream, not everywhere (model.dropout_places)"
        return self.why_not_named_by_pairs(task) or {
            "network": "transformer",
            "width": self.embed,
            "layers": self.layers,
            "heads": self.heads,
            "mlp_width": MLP_EXPANSION * self.embed,
            "tied": self.tie_weights,
            "score_divisor": float(self.scale(self.embed // self.heads)),
            "logit_divisor": float(self.scale(self.embed)),
            "attention_rate": self.rate_factor("query"),
            "mlp_in_rate": self.rate_factor("mlp_in"),
            "mlp_out_rate": self.rate_factor("mlp_out"),
            "other_rate": self.rate_factor("embedding"),
            "activation": self.activation,
            "norm": self.norm,
        }

    def activation_count(self, task: Task) -> int:
        """The stream, q, k, v, the mixed values and the two layers of the MLP, at both positions but for the last."""
        return self.embed * (2 * self.layers - 1) * (14 + 2 * MLP_EXPANSION + 4 * (self.norm != "none"))

    # ---- neurons ------------------------------------------------------------------------------------------------

    def input_neurons(self, weights: Weights) -> Neurons:
        """Dimensions of the embedding."""
        return Neurons("embedding", {"e": weights["embedding"].T}, what="dimensions")

    def output_neurons(self, weights: Weights) -> Neurons:
        """Dimensions of the unembedding, which may be the embedding."""
        return Neurons("unembedding", {"w": self._unembedding(weights).T}, what="dimensions")

    def _unembedding(self, weights: Weights) -> FloatVectors:
        return weights["embedding" if self.tie_weights else "unembedding"]

    def norms(self, weights: Weights) -> dict[str, float]:
        """Of the embedding and the unembedding."""
        return {"norm_u": frobenius(weights["embedding"]), "norm_w": frobenius(self._unembedding(weights))}

    def why_not_prunable(self) -> str:
        """Its dimensions take part in everything."""
        return (
            f"this network is not one to prune ({self.describe()}): pruning is defined here for two-layer networks, "
            "whose neurons each have a row of U, a row of V and a column of W"
        )

    @property
    def neuron_count(self) -> int:
        """The dimensions of the embedding."""
        return self.embed

    @property
    def norm_curves(self) -> dict[str, str]:
        """Both ends."""
        return {"norm_u": "‖embedding‖", "norm_w": "‖unembedding‖"}

"""A network of your own: f(m, n) = W (U eₘ ∘ V eₙ), a product where the paper has the square of a sum.

    grokscope train --model examples/bilinear.py:Bilinear --set model.width=300 --weight-decay 2

The square (u + v)² is u² + 2uv + v². Only the product knows both operands, so a network with nothing else has less to
unlearn. Its neurons have a row of U, a row of V and a column of W like those of the paper, so that spectra, pruning and
audits work.
"""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

import grokscope as gs


class Bilinear(gs.Network):
    """One hidden layer of products."""

    width: Annotated[int, Field(ge=1)] = 500

    def check(self, task: gs.Task) -> None:
        """Pairs of tokens only."""
        if not task.inputs.tokens or task.inputs.size != 2:
            raise gs.SpecError(f"Bilinear reads pairs of tokens, and {task.describe()} has {task.inputs.describe()}")

    def initial_weights(self, task: gs.Task, seed: int, seeding: str = "independent") -> dict[str, np.ndarray]:
        """Gaussian, as large as the paper's."""
        N, p = self.width, task.inputs.vocabulary
        shapes = {"U": (N, p), "V": (N, p), "W": (task.classes, N)}
        scale = (16 * N) ** (-1 / 3)
        normals = {name: gs.normal(seed, number, shape) for number, (name, shape) in enumerate(shapes.items())}
        return {name: (scale * values).astype(np.float32) for name, values in normals.items()}

    def forward(self, weights: Mapping[str, Tensor], inputs: Tensor, layers: object) -> Tensor:
        """Logits [B, classes] of pairs [B, 2]."""
        u = weights["U"].T.index_select(0, inputs[:, 0])  # [B, N]
        v = weights["V"].T.index_select(0, inputs[:, 1])  # [B, N]
        return torch.nn.functional.linear(u * v, weights["W"])

    def input_neurons(self, weights: dict[str, np.ndarray]) -> gs.Neurons:
        """Which vectors belong to a neuron: what spectra and pruning look at."""
        return gs.Neurons("hidden", {"u": weights["U"], "v": weights["V"], "w": weights["W"].T})

    def why_not_prunable(self) -> None:
        """Without its vectors a neuron adds nothing to the logits, so it can be taken out."""
        return

    def hidden_layer(self, weights: dict[str, np.ndarray], inputs: np.ndarray) -> gs.HiddenLayer:
        """The activations of some examples, and the matrix that they are multiplied by."""
        hidden = weights["U"].T[inputs[:, 0]] * weights["V"].T[inputs[:, 1]]  # [n, N]
        return gs.HiddenLayer(np.ascontiguousarray(hidden), weights["W"])

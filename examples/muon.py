"""An optimiser that looks at whole matrices: Muon (Jordan et al., 2024) makes every step nearly orthogonal.

    grokscope train --optimizer examples/muon.py:Muon --lr .02 --set optimizer.momentum=.9

The momentum of a matrix is replaced by the orthogonal matrix next to it, which a few steps of Newton and Schulz find.
Vectors, such as those of a norm, take plain steps along their momentum.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

import grokscope as gs


class Muon(gs.Optimizer):
    """Orthogonalised momentum with decoupled weight decay."""

    moments: ClassVar[tuple[str, ...]] = ("momentum",)

    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    iterations: Annotated[int, Field(ge=1)] = 5

    def update(self, weight: Tensor, gradient: Tensor, moments: Mapping[str, Tensor], step: int) -> None:
        """Decay, then a step."""
        weight.mul_(1 - self.learning_rate * self.weight_decay)
        direction = moments["momentum"].mul_(self.momentum).add_(gradient)
        if weight.dim() == 2:
            direction = orthogonalised(direction, self.iterations)
        weight.sub_(self.learning_rate * direction)


def orthogonalised(matrix: Tensor, iterations: int) -> Tensor:
    """The singular values of a matrix moved towards 1, by the quintic iteration of Muon."""
    wide = matrix.shape[0] <= matrix.shape[1]
    x: Tensor = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(iterations):
        square = x @ x.T
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    return x if wide else x.T

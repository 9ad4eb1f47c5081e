"""What every engine reports about a network, whatever it computes with."""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from grokscope.arrays import Int64Array

Loss = Literal["mse", "cross-entropy"]


class Evaluation(NamedTuple):
    """What a network says about some examples."""

    predictions: Int64Array  # [n]
    losses: npt.NDArray[np.float64]  # [n]

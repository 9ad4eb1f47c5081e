"""Taking neurons out of a network."""

import numpy as np
import numpy.typing as npt

from grokscope.models.initial import Weights


def pruned(weights: Weights, neurons: npt.ArrayLike) -> Weights:
    """A copy in which these neurons have zero rows of U and V and zero columns of W; nothing is retrained.

    `neurons` are indices, or a mask with one entry per neuron.

    >>> from grokscope.models import analytic_weights
    >>> smaller = pruned(analytic_weights(modulus=11, width=50), [0, 1])
    >>> bool(smaller["U"][:2].any()), bool(smaller["U"][2].any())
    (False, True)
    """
    chosen = np.asarray(neurons)
    if chosen.dtype != np.bool_:
        chosen = chosen.astype(np.int64)
    copy = {name: array.copy() for name, array in weights.items()}
    copy["U"][chosen] = 0
    copy["V"][chosen] = 0
    copy["W"][:, chosen] = 0
    return copy

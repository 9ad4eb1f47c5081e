"""A two-layer network without the first 0, 1, 2, … N neurons of an order, all at once.

Neuron k adds W_k y_k to the logits of a pair, where y_k is its normalised activation, so one neuron more is a rank-one
update. It is made from the empty network on, the last neuron of the order first: nothing cancels. LayerNorm alone
couples neurons. With h the activations, zero for pruned neurons because φ(0) = 0, and μ, σ over all N of them,

    logits = (Σ W_k γ_k h_k) / σ − (μ/σ) Σ W_k γ_k + Σ W_k β_k        sums over the neurons that are left

so three sums grow by one neuron at a time instead of one, and what is shown is put together from them.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from grokscope.arrays import Int64Array
from grokscope.compiled import instruction_level, native_module
from grokscope.extension import ExtensionError
from grokscope.models import NORM_EPSILON, HiddenLayer, Loss

_ROWS_AT_ONCE = 256  # in numpy: their logits stay in the second cache at p = 97

Floats = npt.NDArray[np.floating]


class Prefixes(NamedTuple):
    """What each prefix says about some examples: row j is the network without the first j neurons of the order."""

    predictions: npt.NDArray[np.uint16]  # [N + 1, n]
    losses: npt.NDArray[np.float32]  # [N + 1, n]


def evaluate_prefixes(layer: HiddenLayer, order: Int64Array, labels: Int64Array, loss: Loss) -> Prefixes:
    """Predictions and losses of every prefix, on examples with these hidden activations and labels [n].

    >>> from grokscope.models import MLP, analytic_weights
    >>> layer = MLP().hidden_layer(analytic_weights(modulus=11, width=200), np.array([[3, 4], [9, 9]]))
    >>> said = evaluate_prefixes(layer, np.arange(200), np.array([7, 7]), "mse")
    >>> said.predictions[0].tolist(), said.predictions[200].tolist()  # all neurons, and none: the first of equal logits
    ([7, 7], [0, 0])
    """
    hidden, output, norm = layer
    if hidden.ndim != 2 or output.ndim != 2 or hidden.shape != (len(labels), output.shape[1]):
        raise ExtensionError(
            "hidden_layer() must give activations [n, N] and an output [classes, N], and gave "
            f"{list(hidden.shape)} and {list(output.shape)} for {len(labels)} examples"
        )
    kernel = native_module()
    if kernel is None:
        return in_numpy(hidden, output, order, labels, loss, *(norm or ()))
    arrays = (np.ascontiguousarray(hidden), np.ascontiguousarray(output), order, labels)
    return Prefixes(*kernel.evaluate_prefixes(instruction_level(), *arrays, loss, *(norm or ())))


def in_numpy(
    hidden: Floats,
    output: Floats,
    order: Int64Array,
    labels: Int64Array,
    loss: Loss,
    scale: Floats | None = None,
    shift: Floats | None = None,
) -> Prefixes:
    """What the compiled kernel does, more slowly.

    Logits are sums over neurons of output [p, N] times hidden [n, N]; with scale and shift [N], of a LayerNorm, hidden
    is normalised first.
    """
    (n, N), p = hidden.shape, len(output)
    scaled = output if scale is None else output * scale  # [p, N]
    shifted = np.zeros_like(output) if shift is None else output * shift  # [p, N]
    found = Prefixes(np.empty((N + 1, n), np.uint16), np.empty((N + 1, n), np.float32))
    for start in range(0, n, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        own = hidden[rows].astype(np.float64)  # [rows, N]
        sums = np.zeros((len(own), p))  # Σ W h, or Σ W γ h  [rows, p]
        scales, shifts = np.zeros(p), np.zeros(p)  # Σ W γ and Σ W β  [p]
        total, squares = np.zeros(len(own)), np.zeros(len(own))  # Σ h and Σ h²  [rows]
        for pruned in range(N, -1, -1):
            if pruned < N:
                k = order[pruned]
                sums += np.multiply.outer(own[:, k], scaled[:, k])
                scales += scaled[:, k]
                shifts += shifted[:, k]
                total += own[:, k]
                squares += own[:, k] ** 2
            logits = sums
            if scale is not None:
                mean = total / N
                # Rounding may leave less than nothing where all activations are the same.
                deviation = np.sqrt(np.maximum(squares / N - mean**2, 0) + NORM_EPSILON)  # [rows]
                logits = (sums - np.multiply.outer(mean, scales)) / deviation[:, None] + shifts  # [rows, p]
            found.predictions[pruned, rows] = logits.argmax(axis=1)
            found.losses[pruned, rows] = _losses(logits, labels[rows], loss)
    return found


def _losses(logits: Floats, labels: Int64Array, loss: Loss) -> Floats:
    """Of each row of logits [rows, p]."""
    own = logits[np.arange(len(logits)), labels]  # [rows]
    if loss == "mse":
        return np.asarray((np.square(logits).sum(axis=1) - 2 * own + 1) / logits.shape[1])
    highest = logits.max(axis=1)  # [rows]
    return np.asarray(np.log(np.exp(logits - highest[:, None]).sum(axis=1)) + highest - own)

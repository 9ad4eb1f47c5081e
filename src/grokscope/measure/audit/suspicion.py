"""How suspicious a training label looks to a network: scores of its logits, higher being more suspicious."""

import math

import numpy as np

from grokscope.arrays import FloatArray, Int64Array
from grokscope.models import Loss

_FITTED_PROBABILITY = 0.99


def softmax_temperature(loss: Loss, modulus: int) -> float:
    """What to divide logits by before the softmax, so that it means something.

    Cross-entropy trains the softmax of the logits themselves. MSE trains them towards 1 at the label and 0 elsewhere,
    where the softmax is hardly different from 1/p; at this temperature such an example has probability 0.99.

    >>> round(softmax_temperature("mse", 97), 3), softmax_temperature("cross-entropy", 97)
    (0.109, 1.0)
    """
    if loss == "cross-entropy":
        return 1.0
    odds = _FITTED_PROBABILITY / (1 - _FITTED_PROBABILITY)
    return 1 / math.log(odds * (modulus - 1))


def suspicion(logits: FloatArray, labels: Int64Array, loss: Loss) -> dict[str, FloatArray]:
    """Three scores of every example, from logits [n, p] and the labels trained on [n].

    margin: the best other logit minus that of the label; above 0 the network's answer is not the label.
    loss: the example's loss, as it is trained on.
    confidence: 1 minus the probability of the label, at `softmax_temperature`.

    >>> scores = suspicion(np.array([[0.0, 1.0], [0.75, 0.25]]), np.array([1, 1]), "mse")
    >>> scores["margin"].tolist(), scores["loss"].tolist(), scores["confidence"].round(2).tolist()
    ([-1.0, 0.5], [0.0, 0.5625], [0.01, 0.91])
    """
    rows = np.arange(len(labels))
    given = logits[rows, labels]
    others = logits.copy()
    others[rows, labels] = -np.inf
    margin = others.max(axis=1) - given
    # −log of the label's probability is log(1 + Σ exp(other − given)). The largest term is taken out so that none
    # overflows, and 1 is added last, so that labels that are nearly certain are not all the same.
    temperature = softmax_temperature(loss, logits.shape[1])
    terms = np.exp((others - given[:, None] - margin[:, None]) / temperature)  # [n, p], 0 at the label, at most 1
    surprise = np.logaddexp(0, margin / temperature + np.log(terms.sum(axis=1)))
    if loss == "cross-entropy":
        losses = surprise
    else:
        targets = np.zeros_like(logits)
        targets[rows, labels] = 1
        losses = np.square(logits - targets).mean(axis=1)
    return {"margin": margin, "loss": losses, "confidence": -np.expm1(-surprise)}


def softmax(logits: FloatArray, loss: Loss) -> FloatArray:
    """The probabilities behind `confidence`, [n, p]."""
    scaled = (logits - logits.max(axis=1, keepdims=True)) / softmax_temperature(loss, logits.shape[1])
    powers = np.exp(scaled)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))

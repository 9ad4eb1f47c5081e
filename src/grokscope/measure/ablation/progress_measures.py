"""Restricted and excluded loss: how much of what a network says is the rule's own waves, and how much is all else.

Each logit is a function of the pair. For addition, its Fourier components over (m, n) that depend on the answer alone
are cos and sin(2πσ(m + n)/p). The *restricted* logits keep of these the key frequencies, and the constant; the
*excluded* logits lack the key frequencies and have everything else. Nanda et al. (2023) define them so for a
Transformer.

A component that depends on the answer alone is a component of the mean over all pairs with that answer, so no
transform in two dimensions is needed, and the same holds over any group: for multiplication over the pairs of
invertible residues, with the group's waves.
"""

import numpy as np
import numpy.typing as npt

from grokscope.arrays import Int64Array
from grokscope.waves import Waves

Logits = npt.NDArray[np.float64]


def key_components(logits: Logits, answers: Int64Array, waves: Waves, key: Int64Array) -> tuple[Logits, Logits]:
    """The constant and the key components of logits, each [G², p], from logits [G², p] of all pairs of the group.

    `answers` [G²] are those of the pairs; `key` are places among `waves`, of which the constant (0) is never one.
    """
    size = len(waves.places)
    by_answer = np.argsort(answers, kind="stable")
    means = logits[by_answer].reshape(size, size, -1).mean(axis=1)  # [G, p]  every answer has G pairs
    table = np.zeros((logits.shape[1], logits.shape[1]))  # [p, p]  logit, answer
    table[:, np.sort(waves.places)] = means.T
    coefficients = waves.coefficients(table)  # [p, K]
    wanted = np.zeros(len(waves), dtype=bool)
    wanted[key] = True
    wanted[0] = False
    parts = waves.replaced(table, np.where(wanted, coefficients, 0))  # [p, p]
    return np.broadcast_to(logits.mean(axis=0), logits.shape), parts[:, answers].T


def restricted_logits(logits: Logits, answers: Int64Array, waves: Waves, key: Int64Array) -> Logits:
    """Only the constant and the key components.

    >>> waves, pairs = Waves(np.arange(5)), np.indices((5, 5)).reshape(2, -1)
    >>> answers = pairs.sum(axis=0) % 5
    >>> logits = np.cos(2 * np.pi * (answers[:, None] - np.arange(5)) / 5)
    >>> bool(np.allclose(restricted_logits(logits, answers, waves, np.array([1])), logits))
    True
    """
    constant, parts = key_components(logits, answers, waves, key)
    return constant + parts


def excluded_logits(logits: Logits, answers: Int64Array, waves: Waves, key: Int64Array) -> Logits:
    """Everything but the key components."""
    return logits - key_components(logits, answers, waves, key)[1]

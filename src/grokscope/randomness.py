"""All random numbers of a run, from one counter-based generator.

    >>> permutation(seed=0, stream=Stream.SPLIT, epoch=0, examples=np.arange(5)).tolist()
    [2, 0, 3, 4, 1]

A counter-based generator is a function, not a sequence: the bits at a place depend on nothing but
the seed and the place. So a run can be resumed at any step, runs can be spread over workers in any
order, and another engine, in C++ or on a GPU, can draw the same dropout mask and batch order.

The function is Philox4x32-10 (Salmon et al., 2011). Its key is the seed (low and high 32 bits); its counter is

    stream   c0              c1        c2      c3
    ------   -------------   -------   -----   -----------------
    SPLIT    example         0         0       0
    LABELS   example         0         0       1
    INIT     pair of values  tensor    0       2                  the tensor's number, see below
    BATCHES  example         0         epoch   3
    DROPOUT  neuron // 8     example   step    4 + 16 · layer
    ANALYTIC neuron          0 or 1    0       5                  frequencies, phases
    PRUNING  neuron          0         order   6                  random orders, counted from 0

where `example` is the place m·p + n of the pair (m, n) in the full grid, so that it does not depend on the
split, and steps count from 1. The tensors 0, 1, 2 of an MLP are U, V and W, and 3, 4, … are H2, H3, …; those of a
Transformer count in the order of `grokscope.models.initial`. Dropout counts the places where it acts as layers. These
definitions never change: a seed means the same run in every release.
"""

from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from grokscope.arrays import Int64Array

# A numpy array or torch tensor of int64: Philox below needs only operators that both have.
Words = TypeVar("Words", bound=Any)

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW32 = 0xFFFFFFFF

NEURONS_PER_BLOCK = 8  # one Philox block is 128 bits, and a dropout decision takes 16


class Stream(IntEnum):
    """What a random number is for; part of the counter, so that no two purposes share numbers."""

    SPLIT = 0
    LABELS = 1
    INIT = 2
    BATCHES = 3
    DROPOUT = 4
    ANALYTIC = 5
    PRUNING = 6


def philox(c0: Words, c1: Words, c2: Words, c3: Words, seed: int | Words) -> tuple[Words, Words, Words, Words]:
    """Philox4x32-10 at the counters (c0, c1, c2, c3), which broadcast against each other, as do several seeds.

    >>> counter = np.zeros(1, np.int64)
    >>> [hex(int(word[0])) for word in philox(counter, counter, counter, counter, seed=0)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']

    Words are int64 with values below 2³². A product of two of them may wrap around to a negative number; the
    mask after the shift takes the sign's copies off again.
    """
    key0, key1 = seed & _LOW32, (seed >> 32) & _LOW32
    for _ in range(10):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            ((product1 >> 32) & _LOW32) ^ c1 ^ key0,
            product1 & _LOW32,
            ((product0 >> 32) & _LOW32) ^ c3 ^ key1,
            product0 & _LOW32,
        )
        key0, key1 = (key0 + _WEYL[0]) & _LOW32, (key1 + _WEYL[1]) & _LOW32
    return c0, c1, c2, c3


def _bits64(seed: int, stream: Stream, epoch: int, examples: Int64Array) -> npt.NDArray[np.uint64]:
    """64 random bits for each example."""
    zero = np.zeros(1, np.int64)
    high, low, _, _ = philox(examples, zero, zero + epoch, zero + int(stream), seed)
    bits: npt.NDArray[np.uint64] = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return bits


def permutation(seed: int, stream: Stream, epoch: int, examples: Int64Array) -> Int64Array:
    """The order (as indices into `examples`) that sorting by each example's random bits gives."""
    return np.argsort(_bits64(seed, stream, epoch, examples), kind="stable").astype(np.int64)


def integers(seed: int, stream: Stream, examples: Int64Array, below: int) -> Int64Array:
    """A uniform number in 0 … below − 1 for each example."""
    return (_bits64(seed, stream, 0, examples) % np.uint64(below)).astype(np.int64)


def normal(seed: int, tensor: int, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Standard normal numbers, in row-major order: the initial values of the tensor with this number."""
    count = int(np.prod(shape))
    first, second = unit_interval(seed, Stream.INIT, tensor, (count + 1) // 2)
    # Box and Muller: two uniform numbers make two normal ones.
    radius = np.sqrt(-2 * np.log(first))
    values = np.stack([radius * np.cos(2 * np.pi * second), radius * np.sin(2 * np.pi * second)], axis=1)
    return values.reshape(-1)[:count].reshape(shape)


def unit_interval(seed: int, stream: Stream, tensor: int, pairs: int) -> tuple[npt.NDArray[np.float64], ...]:
    """Two arrays of `pairs` uniform numbers, strictly between 0 and 1, with 52 random bits each."""
    zero = np.zeros(1, np.int64)
    words = philox(np.arange(pairs, dtype=np.int64), zero + tensor, zero, zero + int(stream), seed)
    return tuple(((high << 20) + (low >> 12) + 0.5) / 2.0**52 for high, low in (words[:2], words[2:]))


def dropout_threshold(probability: float) -> int:
    """A neuron is dropped when its 16 bits are below this number."""
    return min(round(probability * 65536), 65535)


def dropout_scale(probability: float) -> float:
    """What a kept pre-activation is multiplied by, so that dropping changes no mean: 1/(1 − probability).

    The probability is the one that 16 bits can hold, which differs from the given one by at most 2⁻¹⁷.
    """
    return 65536 / (65536 - dropout_threshold(probability))


def dropout_words(
    seed: int | Words, step: int, examples: Words, neuron_blocks: Words, layer: int = 0
) -> tuple[Words, Words, Words, Words]:
    """The 128 bits of each example and block of eight neurons, as four words of 32.

    Neuron 8·b + j takes 16 bits of word j // 2 of block b: the low half if j is even, the high half if odd.
    `examples` and `neuron_blocks` broadcast: give shapes (B, 1) and (1, ⌈N/8⌉).
    """
    zero = neuron_blocks * 0
    return philox(neuron_blocks, examples, zero + step, zero + (Stream.DROPOUT + 16 * layer), seed)

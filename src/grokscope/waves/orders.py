"""In which order to read a weight vector so that the features of a rule are waves.

Addition is periodic in the index itself: `np.arange(p)`. Multiplication is periodic in the discrete logarithm of the
index: modulo a prime p the numbers g⁰, g¹, g², … run through 1 … p − 1, and mn becomes a sum of exponents. Modulo a
composite number the invertible residues are a product of such cycles, one or two for each prime power, and the
transform has as many dimensions as there are cycles. Residues without an inverse take no part in it.
"""

from functools import cache, reduce

import numpy as np

from grokscope.arrays import Int64Array


def logarithmic_order(modulus: int) -> Int64Array:
    """The invertible residues by their discrete logarithms, one axis for each cycle.

    >>> logarithmic_order(5).tolist()
    [1, 2, 4, 3]
    >>> logarithmic_order(15).shape  # 15 = 3 · 5
    (2, 4)
    """
    order = np.ones((), dtype=np.int64)
    for generator, length in _unit_cycles(modulus):
        powers = np.array([pow(generator, exponent, modulus) for exponent in range(length)], dtype=np.int64)
        order = order[..., None] * powers % modulus
    return order.reshape(order.shape or (1,))


def _unit_cycles(modulus: int) -> list[tuple[int, int]]:
    """Generators of the invertible residues and the lengths of their cycles: their product is the whole group."""
    cycles = []
    for prime, power in _prime_powers(modulus):
        if prime == 2:
            # Modulo 4, −1 generates; modulo higher powers of two, −1 and 5 together do; modulo 2 there is only 1.
            generators = [(power - 1, 2), (5, power // 4)] if power > 4 else [(3, 2)] if power == 4 else []
        else:
            generators = [(_primitive_root(prime, power), power - power // prime)]
        rest = modulus // power
        for generator, length in generators:
            # The residue that is `generator` modulo this prime power and 1 modulo the others.
            lifted = 1 + rest * ((generator - 1) * pow(rest, -1, power) % power)
            cycles.append((lifted % modulus, length))
    return cycles


def _prime_powers(number: int) -> list[tuple[int, int]]:
    """The primes in `number`, each with the highest power of it that divides `number`."""
    factors = []
    divisor = 2
    while number > 1:
        power = 1
        while number % divisor == 0:
            number //= divisor
            power *= divisor
        if power > 1:
            factors.append((divisor, power))
        divisor += 1
    return factors


def _primitive_root(prime: int, power: int) -> int:
    """The smallest number whose powers run through all invertible residues modulo a power of an odd prime."""
    size = power - power // prime
    factors = [factor for factor, _ in _prime_powers(size)]
    candidates = (g for g in range(2, power) if g % prime)
    return next(g for g in candidates if all(pow(g, size // factor, power) != 1 for factor in factors))


@cache
def distinct_waves(shape: tuple[int, ...]) -> Int64Array:
    """Places in the flattened output of `rfftn` that hold one of each pair of conjugate waves.

    In one dimension that is all of them. In more, `rfftn` halves only the last axis: where its frequency is
    its own conjugate (0, or half of an even length) the other axes still hold every wave twice.
    """
    half = (*shape[:-1], shape[-1] // 2 + 1)
    frequencies = np.indices(half).reshape(len(shape), -1)  # [dimensions, waves]
    lengths = np.array(shape)[:, None]
    conjugates = -frequencies % lengths
    steps = np.array([reduce(int.__mul__, shape[axis + 1 :], 1) for axis in range(len(shape))])
    return np.flatnonzero(steps @ frequencies <= steps @ conjugates)

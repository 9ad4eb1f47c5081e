"""How far a neuron is from the closed form of Equation 2.

The family of a neuron has one frequency σ, two phases and three amplitudes that are not negative:

    U_i = A cos(2πσi/p + φ),   V_j = B cos(2πσj/p + ψ),   W_q = C cos(2πσq/p + φ + ψ)

The amplitudes must not be negative because a neuron with the opposite sign of W speaks against the right answer. For
subtraction and division V turns the other way, and for multiplication and division i is a discrete logarithm.

The distance is √(mean of ‖x − x̂‖²/‖x‖² over x = U_k, V_k, W_k): 0 in the family, 1 if nothing of the neuron is. Each
vector counts relative to its own norm, because the family has a free amplitude for each.

The nearest member is found as follows. At a given σ a vector x has a best wave with phase a, and that wave holds a
share P of ‖x‖². A wave of phase a + θ, with its best amplitude, still holds P cos²θ, and none if cos θ < 0. So with the
shares P, Q, R and the mismatch D = phase(W) − phase(U) − phase(V) of the three best waves,

    held(σ) = max P cos²α + Q cos²β + R cos²γ   over   α + β + γ = D,   |D| ≤ π

Given γ, the best α and β have the closed form ½(P + Q + |P + Q exp(2i(D − γ))|), and what is left is one bounded angle,
searched on a grid and then by golden section. Where the mismatch is large it can be better to give one vector up
(amplitude 0) and fit the other two exactly. The search over σ goes through all of them. The waves that are their
own conjugates (σ = 0, or p/2) have no phase: there any three amplitudes fit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grokscope.arrays import BoolArray, ComplexArray, FloatArray, Int64Array
from grokscope.errors import GrokscopeError
from grokscope.waves import Waves

_GRID = 32  # places of γ, before the best of them is refined
_GOLDEN = (math.sqrt(5) - 1) / 2
_REFINEMENTS = 40  # each takes the interval to 62 %: the angle is exact to 1e-9


@dataclass(frozen=True)
class NearestMember:
    """The members of the family nearest to the neurons; of a dead neuron there is none."""

    vectors: FloatArray  # [3, N, p]  a dead neuron keeps its own
    frequency: Int64Array  # [N]  place of the common wave among `Waves`, -1 if dead
    distance: FloatArray  # [N]  relative, in [0, 1]; NaN if dead
    weight_distance: float  # ‖weights − members‖ / ‖weights‖ over all live neurons; NaN if there are none


def has_family(waves: Waves) -> bool:
    """Whether the task is a group's operation, so that Equation 2 has a form for it."""
    return waves.second_phase is not None


def nearest_member(vectors: FloatArray, waves: Waves) -> NearestMember:
    """Project neurons [3, N, p] onto the family.

    >>> from grokscope import MLP, TaskSpec, analytic_weights
    >>> neurons = MLP().input_neurons(analytic_weights(modulus=23, width=50))
    >>> member = nearest_member(neurons.stacked().astype(np.float64), TaskSpec(modulus=23).waves())
    >>> bool((member.distance < 1e-6).all())
    True
    """
    if not has_family(waves):
        raise GrokscopeError(
            f"the analytic family does not exist: the task is not a group operation ({waves.why_no_relation})"
        )
    squares = np.square(vectors[..., waves.places]).sum(axis=-1)  # [3, N]
    live = (squares > 0).all(axis=0)
    coefficients = waves.coefficients(vectors[:, live])  # [3, L, K]
    if waves.second_phase == -1:
        coefficients[1] = coefficients[1].conj()
    shares = waves.energies(coefficients) / squares[:, live, None]  # [3, L, K]
    angles, held = _best_angles(shares, _mismatch(coefficients), waves.self_conjugate)
    best = held.argmax(axis=-1)  # [L]

    neurons = np.arange(len(best))
    chosen = np.zeros_like(coefficients)
    turned = coefficients[:, neurons, best] * _turned(angles[:, neurons, best])  # [3, L]
    chosen[:, neurons, best] = turned
    if waves.second_phase == -1:
        chosen[1] = chosen[1].conj()
    members = vectors.copy()
    members[:, live] = waves.replaced(vectors[:, live], chosen)

    frequency = np.full(vectors.shape[1], -1, dtype=np.int64)
    frequency[live] = best
    distance = np.full(vectors.shape[1], np.nan)
    away = np.square((vectors - members)[..., waves.places]).sum(axis=-1)[:, live]  # [3, L]
    distance[live] = np.sqrt((away / squares[:, live]).mean(axis=0))
    total = squares[:, live].sum()
    return NearestMember(members, frequency, distance, float(np.sqrt(away.sum() / total)) if total else float("nan"))


def _mismatch(coefficients: ComplexArray) -> FloatArray:
    """D of each neuron and wave [L, K], in [−π, π]."""
    u, v, w = coefficients
    return np.asarray(np.angle(w * (u * v).conj()))


def _turned(angles: FloatArray) -> ComplexArray:
    """What a coefficient is multiplied with when its wave is turned by the angle at its best amplitude; 0 past π/2."""
    return np.asarray(np.maximum(np.cos(angles), 0) * np.exp(1j * angles))


def _best_angles(shares: FloatArray, mismatch: FloatArray, free: BoolArray) -> tuple[FloatArray, FloatArray]:
    """By which angles to turn the waves of U, V and W [3, L, K], and the share that is then held [L, K].

    Turning U and V forwards and W back closes the mismatch.
    """
    P, Q, R = shares
    D = np.abs(mismatch)
    lower, upper = np.maximum(0, D - np.pi / 2), np.minimum(D, np.pi / 2)

    def held(gamma: FloatArray) -> FloatArray:
        both = np.abs(P + Q * np.exp(2j * (D - gamma)))
        return np.asarray(R * np.square(np.cos(gamma)) + (P + Q + both) / 2)

    gamma = _maximum(held, lower, upper)
    alpha = np.angle(P + Q * np.exp(2j * (D - gamma))) / 2
    angles = np.stack([alpha, D - gamma - alpha, gamma])
    value = held(gamma)

    # Giving up the weakest: turned by a right angle it has no amplitude, and the others stay as they are.
    weakest = shares.argmin(axis=0)  # [L, K]
    without = shares.sum(axis=0) - shares.min(axis=0)
    give_up = without > value
    given_up = np.where(np.arange(3)[:, None, None] == weakest, np.pi / 2, 0.0)
    angles = np.where(give_up, given_up, angles)
    angles = np.where(free, 0.0, angles)
    value = np.where(free, shares.sum(axis=0), np.maximum(value, without))
    direction = np.sign(mismatch) * np.array([1, 1, -1])[:, None, None]
    return angles * direction, value


def _maximum(function: Callable[[FloatArray], FloatArray], lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Where the function is largest in each interval: the best place of a grid, refined between its neighbours."""
    best, value = lower, function(lower)
    for i in range(1, _GRID + 1):
        place = lower + (upper - lower) * (i / _GRID)
        candidate = function(place)
        best, value = np.where(candidate > value, place, best), np.maximum(candidate, value)
    left = np.maximum(lower, best - (upper - lower) / _GRID)
    right = np.minimum(upper, best + (upper - lower) / _GRID)
    for _ in range(_REFINEMENTS):
        first, second = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        keep_left = function(first) >= function(second)
        left, right = np.where(keep_left, left, first), np.where(keep_left, second, right)
    middle = (left + right) / 2
    return np.where(function(middle) >= value, middle, best)  # an end of the interval stays exactly where it is

"""Which neurons memorise: those of low IPR, and where low ends, without a look at the data.

>>> pruning_of("auto", np.array([0.05, 0.06, 0.04, 0.9, 0.95])).neurons.tolist()
[True, True, True, False, False]
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from grokscope.arrays import BoolArray, FloatArray
from grokscope.errors import GrokscopeError

# The variance that a cut in the middle takes from a flat histogram: more, and the neurons lie in two groups.
_FLAT = 0.75
_APART = 0.1  # in IPR: groups closer than that are neurons of one kind, or the rounding of equal ones


@dataclass(frozen=True)
class MemorisingNeurons:
    """Neurons to take out, and why these."""

    rule: str  # as it was asked for
    neurons: BoolArray  # [N]
    below: float | None  # the IPR that theirs are below; None if the rule has found none, or counts neurons
    live: int  # neurons that have an IPR; the others are left alone

    @property
    def count(self) -> int:
        """How many neurons are taken out."""
        return int(self.neurons.sum())

    def describe(self) -> str:
        """In a few words.

        >>> pruning_of("ipr<0.1", np.array([0.05, 0.9])).describe()
        '1 of 2 live neurons, those with an IPR below 0.1'
        """
        if self.rule == "auto" and self.below is None:
            return f"none of {self.live} live neurons, for their IPR does not fall into two groups"
        which = "those of the lowest IPR" if self.below is None else f"those with an IPR below {self.below:.3g}"
        return f"{self.count} of {self.live} live neurons, {which}"


def check_prune_rule(rule: str) -> None:
    """Refuse what is no rule.

    auto: below the valley between two groups, see `ipr_valley`. A number: this fraction of the live neurons, from
    the lowest IPR. ipr<X: those below X. none: no pruned network at all.
    """
    if rule in ("auto", "none") or _fraction(rule) is not None or _threshold(rule) is not None:
        return
    raise GrokscopeError(
        f"--prune = {rule!r} is not allowed: must be auto, none, a fraction of at least 0 and less than 1, "
        "or a threshold of at most 1 such as 'ipr<0.3'"
    )


def pruning_of(rule: str, ipr: FloatArray) -> MemorisingNeurons | None:
    """The neurons that a rule takes out, from the IPR of each [N], NaN if it is dead; None for the rule "none"."""
    check_prune_rule(rule)
    if rule == "none":
        return None
    live = ~np.isnan(ipr)
    fraction = _fraction(rule)
    if fraction is not None:
        lowest = np.argsort(ipr, kind="stable")[: math.floor(fraction * live.sum() + 1e-9)]  # NaN last
        neurons = np.zeros(len(ipr), np.bool_)
        neurons[lowest] = True
        return MemorisingNeurons(rule, neurons, None, int(live.sum()))
    below = ipr_valley(ipr[live]) if rule == "auto" else _threshold(rule)
    return MemorisingNeurons(rule, live & (ipr < (-np.inf if below is None else below)), below, int(live.sum()))


def ipr_valley(ipr: FloatArray) -> float | None:
    """Where two groups of neurons part: the cut that takes the most variance (Otsu's); None if there are not two.

    A flat histogram loses three quarters of its variance to the best cut and a bell-shaped one less, so a cut that
    does not take more parts nothing. Nor does one whose groups are less than 0.1 apart in the mean.

    >>> ipr_valley(np.array([0.125, 0.125, 0.625]))
    0.375
    >>> ipr_valley(np.linspace(0, 1, 100)) is None
    True
    """
    if len(ipr) < 2:
        return None
    ascending = np.sort(ipr)
    deviations = ascending - ascending.mean()
    total = float(np.square(deviations).sum())
    below = np.arange(1, len(ipr))  # neurons under each cut
    # The sum of squares between the groups: both means follow from the sum of deviations of the lower one.
    between = np.square(np.cumsum(deviations)[:-1]) * len(ipr) / (below * (len(ipr) - below))
    best = int(between.argmax())
    apart = ascending[best + 1 :].mean() - ascending[: best + 1].mean()
    if apart < _APART or between[best] <= _FLAT * total * (1 + 1e-3):  # a flat histogram of N bars is at .75 (1 + 1/N²)
        return None
    return float((ascending[best] + ascending[best + 1]) / 2)


def _fraction(rule: str) -> float | None:
    if not re.fullmatch(r"\d*\.?\d+|\d+\.", rule):
        return None
    return float(rule) if float(rule) < 1 else None


def _threshold(rule: str) -> float | None:
    match = re.fullmatch(r"ipr\s*<\s*(\d*\.?\d+)", rule.strip().lower())
    return float(match[1]) if match and float(match[1]) <= 1 else None

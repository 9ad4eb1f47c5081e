"""A claim of the paper, what to measure for it, and what the measurement says.

    Claim(
        "weight-decay-inverts",
        "Section 2",
        "With weight decay 15 the network generalises and memorises none of the corrupted labels.",
        needs=lambda scale: Needs(networks=(SPEC,), seeds=3),
        checks=(
            Check("test accuracy", lambda evidence: evidence.network(SPEC).final.test_accuracy, low=0.9),
            Check("corrupted accuracy", lambda evidence: evidence.network(SPEC).final.corrupted_accuracy, high=0.1),
        ),
    )

The bounds of a check are written down before it is measured, and stay when it fails: `note` then says what was seen.
Where something had been seen before, `foreknowledge.py` says what.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from grokscope.experiments.evidence import DivergedError, Evidence, Needs
from grokscope.experiments.scale import Scale
from grokscope.store import Store


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Check:
    """A number, and the bounds within which the claim holds. Not a number: there was nothing to measure."""

    what: str
    value: Callable[[Evidence], float]  # for one seed
    low: float = -math.inf
    high: float = math.inf

    @property
    def bounds(self) -> str:
        """In words.

        >>> Check("", lambda _: 0.0, low=0.9).bounds
        '≥ 0.9'
        """
        if math.isinf(self.high):
            return f"≥ {self.low:g}"
        return f"≤ {self.high:g}" if math.isinf(self.low) else f"{self.low:g} … {self.high:g}"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be checked, in our words."""

    id: str
    paper: str  # where the paper says it
    statement: str
    needs: Callable[[Scale], Needs]  # of single networks or of diagrams, as only the former have a number for each seed
    checks: tuple[Check, ...]
    note: str = ""  # what was seen where it does not hold, or what the reader should know


@dataclass(frozen=True)
class CheckResult:
    """A check over all seeds."""

    check: Check
    values: tuple[float, ...]

    @property
    def verdict(self) -> Verdict:
        """All seeds within the bounds, none, or some."""
        inside = [self.check.low <= value <= self.check.high for value in self.values]
        if any(map(math.isnan, self.values)):
            return Verdict.INCONCLUSIVE
        return Verdict.HOLDS if all(inside) else Verdict.INCONCLUSIVE if any(inside) else Verdict.FAILS

    @property
    def text(self) -> str:
        """The mean, with the standard deviation over seeds if there are several.

        >>> CheckResult(Check("test accuracy", lambda _: 0.0, low=0.9), (0.97, 0.99)).text
        'test accuracy 0.98 ± 0.014 (≥ 0.9)'
        >>> CheckResult(Check("test accuracy", lambda _: 0.0, low=0.9), (0.7,)).text
        'test accuracy 0.7 (≥ 0.9: fails)'
        """
        spread = f" ± {np.std(self.values, ddof=1):.2g}" if len(self.values) > 1 else ""
        verdict = "" if self.verdict is Verdict.HOLDS else f": {self.verdict}"
        return f"{self.check.what} {np.mean(self.values):.3g}{spread} ({self.check.bounds}{verdict})"


@dataclass(frozen=True)
class Finding:
    """What became of a claim at one scale."""

    claim: Claim
    scale: Scale
    measured: tuple[CheckResult, ...]  # empty if it was not run
    seeds: int

    @property
    def verdict(self) -> Verdict:
        """A claim fails if one of its checks fails, and holds if all hold."""
        if not self.measured:
            return Verdict.NOT_RUN
        verdicts = {measured.verdict for measured in self.measured}
        order = (Verdict.FAILS, Verdict.INCONCLUSIVE, Verdict.HOLDS)
        return next(verdict for verdict in order if verdict in verdicts)

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "id": self.claim.id,
            "paper": self.claim.paper,
            "statement": self.claim.statement,
            "scale": self.scale.name,
            "seeds": self.seeds,
            "verdict": self.verdict.value,
            "checks": [
                {
                    "what": measured.check.what,
                    "low": _finite(measured.check.low),
                    "high": _finite(measured.check.high),
                    "values": [_finite(value) for value in measured.values],
                    "verdict": measured.verdict.value,
                }
                for measured in self.measured
            ],
            "note": self.claim.note,
        }


def examine(claim: Claim, store: Store, scale: Scale) -> Finding:
    """Measure a claim on what the store has; if runs are missing it is "not run"."""
    needs = claim.needs(scale)
    evidence = Evidence(store, scale)
    # A diagram counts all of its seeds in one number; single networks give a number for each.
    samples = scale.seed_count(needs.seeds) if needs.networks else 1
    seeds = max((plan.seed_count for plan in needs.plans(scale)), default=samples)
    if evidence.missing(needs):
        return Finding(claim, scale, (), seeds)
    by_seed = [evidence.at_seed(seed) for seed in range(samples)]
    measured = tuple(CheckResult(check, tuple(_value(check, each) for each in by_seed)) for check in claim.checks)
    return Finding(claim, scale, measured, seeds)


def _value(check: Check, evidence: Evidence) -> float:
    try:
        return float(check.value(evidence))
    except DivergedError:
        return math.nan


def count_verdicts(findings: Sequence[Finding]) -> dict[Verdict, int]:
    """How many claims ended how."""
    return {verdict: sum(finding.verdict is verdict for finding in findings) for verdict in Verdict}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

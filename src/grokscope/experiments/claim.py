"""A claim of the paper, what to measure for it, and what the measurement says.

    Claim(
        "weight-decay-inverts",
        "Section 2",
        "With weight decay 15 the network generalises and memorises none of the corrupted labels.",
        checks=(
            Check("test accuracy", final("test_accuracy"), low=0.9, of=FULL),
            Check("gap", lambda result: result.final.test_accuracy - result.final.train_accuracy, low=0.25, of=FULL),
            Check("steps gained", lambda early, late: ..., low=10, of=(EARLY, LATE)),
        ),
    )

A check names what it looks at, so a claim knows its runs from its checks. Bounds are set before measuring and stay
when a claim fails: `note` then says what was seen. If something had been seen before, `seen_before` says what.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum

import numpy as np

from grokscope.errors import DamagedError, DamageWarning
from grokscope.experiments.evidence import DivergedError, Evidence, Needs, Subject, Subjects, subjects_at
from grokscope.experiments.scale import Scale

# What `seen_before` says of several claims.
SEEN_AT_QUICK_SCALE = "Stated after the figure had been seen at the quick scale."
MEASUREMENTS_READ = "Earlier measurements of such networks (docs/spectra.md, docs/pruning.md) had been read."


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Check:
    """A number, and the bounds within which the claim holds. NaN means that there was nothing to measure."""

    what: str
    measure: Callable[..., float]  # of what it looks at, one argument for each, for one seed
    low: float = -math.inf
    high: float = math.inf
    of: Subjects = ()  # the networks and diagrams that it looks at, or what is computed from them

    def subjects(self, scale: Scale) -> tuple[Subject, ...]:
        """What it looks at, at a scale."""
        return subjects_at(self.of, scale)

    def value(self, evidence: Evidence) -> float:
        """The number; NaN if a network diverged, or is damaged in the store, with a warning."""
        try:
            return float(self.measure(*map(evidence.look, self.subjects(evidence.scale))))
        except DivergedError:
            return math.nan
        except DamagedError as error:
            warnings.warn(str(error), DamageWarning, stacklevel=2)
            return math.nan

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
    checks: tuple[Check, ...]  # of networks or of diagrams, as only the former have a number for each seed
    _: KW_ONLY
    seeds: int = 3  # of the networks; a diagram has its own
    # Runs that have to be there though no check looks at them: all networks of the figure, so that claims that are told
    # about the same networks are judged at the same scale.
    beside: Subjects = ()
    note: str = ""  # what was seen where it does not hold, or what the reader should know
    seen_before: str = ""  # what was known when the bounds were set, or settings that the paper leaves open
    file: str = ""  # of a user's own

    def needs(self, scale: Scale) -> Needs:
        """The runs that its checks look at."""
        looked_at = [subject for check in self.checks for subject in check.subjects(scale)]
        return Needs.of([*looked_at, *subjects_at(self.beside, scale)], self.seeds)


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
    """The verdict on a claim at one scale, and what was measured."""

    claim: Claim
    scale: Scale
    measured: tuple[CheckResult, ...]  # empty if it was not run
    seeds: int

    def __repr__(self) -> str:
        measured = "; ".join(each.text for each in self.measured) or "nothing measured"
        return f"<Finding {self.claim.id} {self.verdict}: {measured}>"

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
            "seen_before": self.claim.seen_before,
        }


def examine(claim: Claim, evidence: Evidence) -> Finding:
    """Measure a claim on what the store has; if runs are missing it is "not run"."""
    scale = evidence.scale
    needs = claim.needs(scale)
    # A diagram counts all of its seeds in one number; single networks give a number for each.
    samples = scale.seed_count(needs.seeds) if needs.networks else 1
    seeds = max((plan.seed_count for plan in needs.plans(scale)), default=samples)
    if evidence.missing(needs):
        return Finding(claim, scale, (), seeds)
    by_seed = [evidence.at_seed(seed) for seed in range(samples)]
    measured = tuple(CheckResult(check, tuple(map(check.value, by_seed))) for check in claim.checks)
    return Finding(claim, scale, measured, seeds)


def count_verdicts(findings: Sequence[Finding]) -> dict[Verdict, int]:
    """How many claims have each verdict."""
    return {verdict: sum(finding.verdict is verdict for finding in findings) for verdict in Verdict}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

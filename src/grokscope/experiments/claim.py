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
when a claim fails: `note` then says what was seen, and `cause` why. If something had been seen before, `seen_before`
says what.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import TypedDict

import numpy as np

from grokscope.errors import DamagedError, DamageWarning
from grokscope.experiments.cause import Cause, Superseded
from grokscope.experiments.evidence import DivergedError, Evidence, Needs, Subject, Subjects, subjects_at
from grokscope.experiments.quantities.regions import Shares
from grokscope.experiments.scale import Scale

# What `seen_before`, or the note, says of several claims.
SEEN_AT_QUICK_SCALE = "Stated after the figure had been seen at the quick scale."
MEASUREMENTS_READ = "Earlier measurements of such networks (docs/spectra.md, docs/pruning.md) had been read."


_ROUNDING = 1e-9  # a value that is on a bound but for rounding is on it


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    HOLDS = "holds"
    CORRECTED = "holds as corrected"  # with an erratum of the paper
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"  # seeds disagree, or there was nothing to measure
    UNDECIDED = "undecided at this resolution"  # one cell of a diagram more or less would change the verdict
    SUPERSEDED = "superseded"  # by a claim that says better what the paper says
    NOT_RUN = "not run"


_WORST_FIRST = (Verdict.FAILS, Verdict.INCONCLUSIVE, Verdict.UNDECIDED, Verdict.HOLDS)


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

    def cell(self, scale: Scale) -> float:
        """How much one cell of the diagrams changes the number; 0 if it does not count cells."""
        if not isinstance(self.measure, Shares):
            return 0.0
        return max(map(self.measure.cell, Needs.of(self.subjects(scale), 1).plans(scale)), default=0.0)

    def allows(self, value: float) -> bool:
        """Whether a value lies within the bounds."""
        return self.low <= value <= self.high

    def one_cell_decides(self, value: float, cell: float) -> bool:
        """Whether a cell more or less would move a value across a bound.

        A share of 0 or 1 is none or all of the cells, which is what a bound close to it asks for.
        """
        if not cell or (value in (0, 1) and isinstance(self.measure, Shares) and not self.measure.difference):
            return False
        near = [self.low - _ROUNDING <= moved <= self.high + _ROUNDING for moved in (value - cell, value, value + cell)]
        return not (all(near) or not any(near))

    @property
    def bounds(self) -> str:
        """In words.

        >>> Check("", lambda _: 0.0, low=0.9).bounds
        '≥ 0.9'
        """
        if math.isinf(self.high):
            return f"≥ {self.low:g}"
        return f"≤ {self.high:g}" if math.isinf(self.low) else f"{self.low:g} … {self.high:g}"


class Remarks(TypedDict, total=False):
    """What is said about a claim beside its checks, for functions that make several claims."""

    note: str
    seen_before: str
    stated: str
    cause: Cause | None
    erratum: str
    superseded: Superseded | None


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
    stated: str = ""  # the day, of claims that came later than the others
    cause: Cause | None = None  # why it does not hold, where it does not
    erratum: str = ""  # what has to be corrected in the paper for it to hold
    superseded: Superseded | None = None
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
    cell: float = 0.0  # by how much one cell of a diagram changes the value

    @property
    def mean(self) -> float:
        """Over seeds."""
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """The standard deviation over seeds; NaN of one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    @property
    def verdict(self) -> Verdict:
        """All seeds within the bounds, none, or some; undecided if one cell of a diagram would change that."""
        inside = list(map(self.check.allows, self.values))
        if any(map(math.isnan, self.values)):
            return Verdict.INCONCLUSIVE
        if any(self.check.one_cell_decides(value, self.cell) for value in self.values):
            return Verdict.UNDECIDED
        return Verdict.HOLDS if all(inside) else Verdict.INCONCLUSIVE if any(inside) else Verdict.FAILS

    @property
    def text(self) -> str:
        """The mean, with the standard deviation over seeds if there are several.

        >>> CheckResult(Check("test accuracy", lambda _: 0.0, low=0.9), (0.97, 0.99)).text
        'test accuracy 0.98 ± 0.014 (≥ 0.9)'
        >>> CheckResult(Check("test accuracy", lambda _: 0.0, low=0.9), (0.7,)).text
        'test accuracy 0.7 (≥ 0.9: fails)'
        """
        known = [f"{value:.3g}" for value in self.values if not math.isnan(value)]
        if len(known) == len(self.values):
            return measured_text(self.check, self.mean, self.spread, self.verdict)
        found = f"{', '.join(known)} in {len(known)} of {len(self.values)} seeds" if known else "had nothing to measure"
        return f"{self.check.what} {found} ({self.check.bounds}: {self.verdict})"


def measured_text(check: Check, mean: float, spread: float, verdict: Verdict) -> str:
    """A line about a check: what was measured, within which bounds it should be, and whether it is."""
    deviation = "" if math.isnan(spread) else f" ± {spread:.2g}"
    said = "" if verdict is Verdict.HOLDS else f": {verdict}"
    return f"{check.what} {mean:.3g}{deviation} ({check.bounds}{said})"


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """What was measured, all checks together: fails if one of them fails, and holds if all hold."""
    found = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in found), Verdict.NOT_RUN)


def verdict_on(claim: Claim, measured: Verdict) -> Verdict:
    """The verdict on a claim: what was measured, unless it was superseded or needs an erratum to hold."""
    if claim.superseded:
        return Verdict.SUPERSEDED
    return Verdict.CORRECTED if measured is Verdict.HOLDS and claim.erratum else measured


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
    def found(self) -> Verdict:
        """What was measured says, even if the claim was superseded."""
        return overall(each.verdict for each in self.measured)

    @property
    def verdict(self) -> Verdict:
        """A claim fails if one of its checks fails, and holds if all hold."""
        return verdict_on(self.claim, self.found)

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "id": self.claim.id,
            "paper": self.claim.paper,
            "statement": self.claim.statement,
            "scale": self.scale.name,
            "seeds": self.seeds,
            "verdict": self.verdict.value,
            "measured": self.found.value,
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
            "stated": self.claim.stated,
            "cause": str(self.claim.cause or ""),
            "erratum": self.claim.erratum,
            "superseded": str(self.claim.superseded or ""),
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
    measured = tuple(CheckResult(check, tuple(map(check.value, by_seed)), check.cell(scale)) for check in claim.checks)
    return Finding(claim, scale, measured, seeds)


def count_verdicts(findings: Sequence[Finding]) -> dict[Verdict, int]:
    """How many claims have each verdict."""
    return {verdict: sum(finding.verdict is verdict for finding in findings) for verdict in Verdict}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

"""Why a claim does not hold here, and what stands in its place.

    cause=Cause(Reason.BOUND, "The test loss falls by 3 %, and we had asked for 5 %.")
    superseded=Superseded(("losses-part-again",), "2026-11-17", "The caption says so of small ξ only.")

A bound is never moved. Where a claim was read wrongly, or can hardly fail, it stays as it was with the date and the
reason, and another one takes its place.
"""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """What is to blame where a claim does not hold."""

    CONTRADICTION = "paper contradicts itself"
    UNPUBLISHED = "setting not published"
    REDUCED = "reduced scale"
    RESOLUTION = "resolution"
    SEEDS = "seeds"
    BOUND = "our bound"
    SETTING = "our setting"
    UNEXPLAINED = "unexplained"
    EXPECTATION = "our expectation was wrong"


@dataclass(frozen=True)
class Cause:
    """The reason, with a sentence of evidence for it."""

    reason: Reason
    evidence: str

    def __str__(self) -> str:
        return f"{self.reason}. {self.evidence}"


@dataclass(frozen=True)
class Superseded:
    """Which claims took the place of one, since when, and why."""

    by: tuple[str, ...]
    on: str  # 2026-11-17
    why: str

    def __str__(self) -> str:
        return f"by {' and '.join(self.by)} on {self.on}. {self.why}"

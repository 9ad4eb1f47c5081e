"""`python -m benchmarks.settling STORE SWEEP…`: how early is the phase known in which a run ends?

For all runs of the sweeps that went on to their last step: the first measured step from which the phase did not change
any more, by phase. And what `training.settle` would have done: how many steps it saves, and how many runs it ends in
another phase. Beside it is the plain rule, which does not look ahead: the phase was the same for so long.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grokscope.measure import Row
from grokscope.phases import Phase, classify
from grokscope.result import RunResult
from grokscope.settling import has_settled
from grokscope.spec import TrainingSpec
from grokscope.store import Store

PATIENCES = (100, 200, 400, 600, 1000)  # steps
Rule = Callable[[Sequence[Row], TrainingSpec, float], bool]


@dataclass(frozen=True)
class Course:
    """A whole run: its curve, and the phase at each measured step."""

    curve: Sequence[Row]
    training: TrainingSpec
    corruption: float

    @property
    def phases(self) -> list[Phase]:
        """The phase that the run would have had, had it ended there."""
        best = np.maximum.accumulate([row.test_accuracy for row in self.curve])
        return [
            classify(row.train_accuracy, row.test_accuracy, self.corruption, float(highest))
            for row, highest in zip(self.curve, best, strict=True)
        ]

    def known_at(self) -> float:
        """The part of the training after which the phase does not change any more."""
        phases = self.phases
        last = max((at for at, phase in enumerate(phases) if phase is not phases[-1]), default=-1)
        return self.curve[last + 1].step / self.training.steps

    def end(self, rule: Rule, patience: int) -> int:
        """The row at which a rule ends it; the last one if it never does."""
        training = self.training.model_copy(update={"settle": patience})
        ends = (at for at in range(len(self.curve)) if rule(self.curve[: at + 1], training, self.corruption))
        return next(ends, len(self.curve) - 1)


def same_for_so_long(curve: Sequence[Row], training: TrainingSpec, corruption: float) -> bool:
    """The plain rule.

    >>> rows = [Row({"step": step, "train_accuracy": 1.0, "test_accuracy": 0.8}) for step in (10, 20, 30)]
    >>> training = TrainingSpec(settle=20)
    >>> same_for_so_long(rows[:2], training, 0.0), same_for_so_long(rows, training, 0.0)
    (False, True)
    """
    now = classify(curve[-1].train_accuracy, curve[-1].test_accuracy, corruption, 0)
    for row in reversed(curve):
        if classify(row.train_accuracy, row.test_accuracy, corruption, 0) is not now:
            return False
        if curve[-1].step - row.step >= training.settle:
            return True
    return False


RULES: dict[str, Rule] = {"plain": same_for_so_long, "`settle`": has_settled}


def course_of(result: RunResult) -> Course:
    """What is needed of a run."""
    return Course(result.curve, result.spec.training, result.corruption)


def when_known(courses: Sequence[Course]) -> str:
    """By final phase: the part of the training after which it is known."""
    by_phase: dict[Phase, list[float]] = defaultdict(list)
    for course in courses:
        by_phase[course.phases[-1]].append(course.known_at())
    lines = ["| ends in | runs | median | nine in ten | latest |", "|---|---|---|---|---|"]
    for phase in Phase:
        if parts := by_phase[phase]:
            shown = " | ".join(f"{value:.0%}" for value in (np.median(parts), np.quantile(parts, 0.9), max(parts)))
            lines.append(f"| {phase.label} | {len(parts)} | {shown} |")
    return "\n".join(lines)


def what_rules_do(courses: Sequence[Course]) -> str:
    """By rule: the steps that it saves, and what it gets wrong."""
    lines = ["| rule | steps saved | ended in another phase | which |", "|---|---|---|---|"]
    total = sum(course.training.steps for course in courses)
    for patience in PATIENCES:
        for name, rule in RULES.items():
            ends = [(course, course.end(rule, patience)) for course in courses]
            saved = 1 - sum(course.curve[at].step for course, at in ends) / total
            wrong = Counter(
                f"{course.phases[-1].label} ended as {course.phases[at].label}"
                for course, at in ends
                if course.phases[at] is not course.phases[-1]
            )
            named = "; ".join(f"{count} {words}" for words, count in wrong.most_common()) or "–"
            lines.append(
                f"| {name}, {patience} steps | {saved:.0%} | {sum(wrong.values())} of {len(courses)} | {named} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Print both tables."""
    store = Store(Path(sys.argv[1]), create=False)
    run_ids = {cell.run_id for name in sys.argv[2:] for cell in store.cells_and_damaged(name)[0] if cell.outcome}
    results = [store.load(run_id) for run_id in sorted(run_ids)]
    courses = [course_of(result) for result in results if result.status == "finished" and not result.settled]
    sys.stdout.write(f"{len(courses)} runs\n\n{when_known(courses)}\n\n{what_rules_do(courses)}\n")


if __name__ == "__main__":
    main()

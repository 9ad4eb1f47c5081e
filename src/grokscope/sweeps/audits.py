"""The label audit of every network that a sweep has left: where the networks tell which labels are wrong.

map = audit_sweep(store, "fig3a")
map.mean("auroc", "margin")      # [panels, rows, columns], as the phase diagram has them
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grokscope.arrays import short_repr
from grokscope.errors import DamagedError, StoreError
from grokscope.measure import audit_labels
from grokscope.store import CellOutcome, Store
from grokscope.sweeps.diagram import PhaseDiagram, cells_of_places, diagram_axes, phase_diagram


@dataclass(frozen=True)
class AuditedRun:
    """One place of a sweep. What was not audited has a reason, and no figures."""

    place: int
    run_id: str
    outcome: str | None  # a phase's value, "diverged" or "failed"; None if the run is still to be done
    test_accuracy: float | None
    reason: str | None  # why it was not audited
    examples: int | None = None
    wrong: int | None = None
    pruned_neurons: int | None = None  # None if there is no pruned network
    scores: dict[str, dict[str, float | None]] | None = None  # of each score, the figures by name


@dataclass(frozen=True)
class SweepAudit:
    """All places of a sweep, in their order."""

    diagram: PhaseDiagram
    runs: list[AuditedRun]

    __repr__ = short_repr

    @property
    def score_names(self) -> list[str]:
        """The scores that at least one network has, in their order."""
        return list(dict.fromkeys(name for run in self.runs for name in run.scores or ()))

    def mean(self, figure: str, score: str) -> npt.NDArray[np.float64]:
        """A figure of a score for every cell, over its seeds [panels, rows, columns]; NaN where it does not exist."""
        plan, (width, height) = self.diagram.plan, diagram_axes(self.diagram.plan).size
        cells = cells_of_places(plan, diagram_axes(plan))  # [places]
        found = [(run.scores or {}).get(score, {}).get(figure) for run in self.runs]
        values = np.array(found, dtype=np.float64)  # [places]
        there = ~np.isnan(values)
        size = len(self.diagram.panels) * height * width
        counts = np.bincount(cells[there], minlength=size)
        sums = np.bincount(cells[there], values[there], minlength=size)
        means = np.full(size, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means.reshape(len(self.diagram.panels), height, width)

    def table(self) -> dict[str, Sequence[object]]:
        """One row for each place: the fields of the axes, what became of it, and every figure of every score."""
        plan = self.diagram.plan
        fields = [
            {
                path: value
                for axis, i in zip(plan.axes, plan.indices(run.place), strict=True)
                for path, value in axis.at(i).items()
            }
            for run in self.runs
        ]
        columns: dict[str, Sequence[object]] = {path: [row[path] for row in fields] for path in fields[0]}
        for name in ("run_id", "outcome", "test_accuracy", "reason", "examples", "wrong", "pruned_neurons"):
            columns[name] = [getattr(run, name) for run in self.runs]
        for score in self.score_names:
            figures = next(run.scores[score] for run in self.runs if run.scores and score in run.scores)
            for figure in figures:
                columns[f"{figure}_{score}"] = [(run.scores or {}).get(score, {}).get(figure) for run in self.runs]
        return columns


def audit_sweep(
    store: Store,
    name: str,
    *,
    prune: str = "auto",
    baseline: str | None = None,
    on_run: Callable[[int, int], None] | None = None,
) -> SweepAudit:
    """Audit every finished run of a sweep that was stored with its weights; see `audit_labels`.

    `on_run` hears after each place how many of all are done.
    """
    diagram = phase_diagram(store, name)
    cells = store.cells(name)
    runs = []
    for done, cell in enumerate(cells, start=1):
        runs.append(_audited(store, cell, prune, baseline))
        if on_run is not None:
            on_run(done, len(cells))
    if all(run.scores is None for run in runs):
        raise StoreError(
            f"no run of the sweep {name} in the store {store.path} has stored weights, which an audit needs: "
            "run the sweep again with --save-weights"
        )
    return SweepAudit(diagram, runs)


def _audited(store: Store, cell: CellOutcome, prune: str, baseline: str | None) -> AuditedRun:
    known = (cell.place, cell.run_id, cell.outcome, cell.test_accuracy)
    stored = store.find(cell.run_id)
    if stored is None or stored.status != "finished":
        return AuditedRun(*known, reason=cell.outcome or "not run yet")
    if not stored.has_weights:
        return AuditedRun(*known, reason="no stored weights")
    try:
        result = store.load(cell.run_id).resolved()
    except DamagedError:
        return AuditedRun(*known, reason="damaged")
    audit = audit_labels(result.spec, result.trained_weights(), result.dataset(), prune=prune, baseline=baseline)
    return AuditedRun(
        *known,
        reason=None,
        examples=len(audit.wrong),
        wrong=int(audit.wrong.sum()),
        pruned_neurons=audit.pruning.count if audit.pruning else None,
        scores={score: found.metrics() for score, found in audit.scores.items()},
    )

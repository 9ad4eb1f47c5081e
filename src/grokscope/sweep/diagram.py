"""The phase diagram of a sweep, finished or not: what each cell's runs show together.

diagram = phase_diagram(store, "fig3a")
diagram.panels[0].cells[row][column].outcome
diagram.to_csv()
"""

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from grokscope.errors import StoreError, did_you_mean
from grokscope.phases import Phase
from grokscope.store import CellOutcome, Store, StoredSweep
from grokscope.sweep.plan import SEED, Axis, Plan
from grokscope.sweep.refine import Place, refine

DIVERGED = "diverged"
OUTCOMES = (*(phase.value for phase in Phase), DIVERGED)
Source = Literal["run", "inferred", "failed", "missing"]


@dataclass(frozen=True)
class Cell:
    """One cell over all of its seeds."""

    source: Source  # inferred: no seed was run, and those around agree
    counts: dict[str, int]  # how many seeds ended how; inferred ones count as well
    runs: int  # seeds that were run
    train_accuracy: float | None  # means over the seeds that were run
    test_accuracy: float | None

    @property
    def outcome(self) -> str | None:
        """A phase's value or "diverged": what most seeds show. Of equals, the first in the order of the phases."""
        return max(OUTCOMES, key=lambda name: self.counts.get(name, 0)) if self.counts else None

    @property
    def seeds_agree(self) -> bool:
        """Whether all seeds show the same."""
        return len(self.counts) < 2

    def interval(self, outcome: str) -> tuple[float, float, float]:
        """The fraction of seeds with this outcome, and the bounds of its 95 % confidence interval."""
        return wilson_interval(self.counts.get(outcome, 0), sum(self.counts.values()))


@dataclass(frozen=True)
class Panel:
    """One point of the axes that are neither of the two of the diagram nor the seeds."""

    fields: dict[str, object]
    cells: list[list[Cell]]  # [row][column]


@dataclass(frozen=True)
class PhaseDiagram:
    """All panels of a sweep."""

    plan: Plan
    columns: Axis
    rows: Axis | None  # None if the sweep has a single axis
    panels: list[Panel]

    @property
    def many_seeds(self) -> bool:
        """Whether cells have more than one seed."""
        return self.plan.seed_axis is not None and len(self.plan.axes[self.plan.seed_axis]) > 1

    def all_cells(self) -> Iterator[Cell]:
        """Every cell of every panel."""
        return (cell for panel in self.panels for row in panel.cells for cell in row)

    def to_csv(self) -> str:
        """One line for each cell: its fields, what it shows, and the probability of each phase with its interval."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        fields = [path for axis in self.plan.axes if axis.fields != (SEED,) for path in axis.fields]
        heads = [f"{outcome}{bound}" for outcome in OUTCOMES for bound in ("", "_low", "_high")]
        writer.writerow([*fields, "source", "outcome", "runs", "train_accuracy", "test_accuracy", *heads])
        for panel in self.panels:
            for row, cells in enumerate(panel.cells):
                for column, cell in enumerate(cells):
                    values = self.columns.at(column) | (self.rows.at(row) if self.rows else {}) | panel.fields
                    chances = [bound for outcome in OUTCOMES for bound in cell.interval(outcome)]
                    writer.writerow(
                        [
                            *(values[path] for path in fields),
                            cell.source,
                            cell.outcome or "",
                            cell.runs,
                            *(_text(value) for value in (cell.train_accuracy, cell.test_accuracy)),
                            *(_text(value if cell.counts else None) for value in chances),
                        ]
                    )
        return text.getvalue()


def wilson_interval(successes: int, trials: int) -> tuple[float, float, float]:
    """A fraction and its 95 % confidence interval after Wilson, which is sensible for few trials.

    >>> [round(bound, 3) for bound in wilson_interval(3, 3)]
    [1.0, 0.438, 1.0]
    """
    if not trials:
        return math.nan, math.nan, math.nan
    z = 1.959964  # of the normal distribution, 2.5 % lie above
    fraction = successes / trials
    scale = 1 + z * z / trials
    middle = (fraction + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(fraction * (1 - fraction) / trials + (z / (2 * trials)) ** 2)
    return fraction, max(0.0, middle - half), min(1.0, middle + half)


def find_sweep(store: Store, name: str) -> StoredSweep:
    """The sweep of this name; an error that names the others if there is none."""
    sweeps = {sweep.name: sweep for sweep in store.sweeps()}
    if name not in sweeps:
        known = f"it has {', '.join(sweeps)}" if sweeps else "it has none"
        raise StoreError(f"there is no sweep {name!r} in the store {store.path}: {known}{did_you_mean(name, sweeps)}")
    return sweeps[name]


def phase_diagram(store: Store, name: str) -> PhaseDiagram:
    """The diagram of a sweep as the store has it now."""
    sweep = find_sweep(store, name)
    return assemble(Plan.from_dict(name, sweep.definition), store.cells(name), refined=sweep.refined)


def assemble(plan: Plan, outcomes: Sequence[CellOutcome], *, refined: bool) -> PhaseDiagram:
    """A diagram from what became of each place."""
    shape = diagram_axes(plan)
    slices = slices_of(plan, outcomes)
    grids: dict[tuple[int, ...], dict[Place, list[tuple[CellOutcome, str | None]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for (panel, _), cells in slices.items():
        known = {place: outcome for place, cell in cells.items() if (outcome := outcome_of(cell))}
        inferred = refine(*shape.size, known).inferred if refined else {}
        for place, cell in cells.items():
            grids[panel][place].append((cell, known.get(place) or inferred.get(place)))
    panels = []
    for panel, grid in grids.items():
        fields: dict[str, object] = {}
        for axis, index in zip(shape.panels, panel, strict=True):
            fields |= plan.axes[axis].at(index)
        width, height = shape.size
        panels.append(Panel(fields, [[_cell(grid[column, row]) for column in range(width)] for row in range(height)]))
    rows = plan.axes[shape.rows] if shape.rows is not None else None
    return PhaseDiagram(plan, plan.axes[shape.columns], rows, panels)


@dataclass(frozen=True)
class DiagramAxes:
    """Which axis of a plan is what in its diagram."""

    columns: int
    rows: int | None
    panels: tuple[int, ...]
    size: Place


def diagram_axes(plan: Plan) -> DiagramAxes:
    """The first axis that is not the seeds lies horizontally, the second vertically, the others make panels."""
    order = [i for i in range(len(plan.axes)) if i != plan.seed_axis] or [0]
    rows = order[1] if len(order) > 1 else None
    size = (len(plan.axes[order[0]]), len(plan.axes[rows]) if rows is not None else 1)
    return DiagramAxes(order[0], rows, tuple(order[2:]), size)


Slice = tuple[tuple[int, ...], int]  # a panel, and the place on the axis of seeds


def slices_of(plan: Plan, outcomes: Sequence[CellOutcome]) -> dict[Slice, dict[Place, CellOutcome]]:
    """The cells of each panel and seed."""
    shape = diagram_axes(plan)
    slices: dict[Slice, dict[Place, CellOutcome]] = defaultdict(dict)
    for cell in outcomes:
        indices = plan.indices(cell.place)
        seed = indices[plan.seed_axis] if plan.seed_axis is not None and plan.seed_axis != shape.columns else 0
        place = (indices[shape.columns], indices[shape.rows] if shape.rows is not None else 0)
        slices[tuple(indices[axis] for axis in shape.panels), seed][place] = cell
    return slices


def outcome_of(cell: CellOutcome) -> str | None:
    """A phase's value, "diverged" or "failed"; None if the run is still to be done."""
    return cell.phase.value if cell.phase and cell.status != "failed" else cell.status


def _cell(seeds: list[tuple[CellOutcome, str | None]]) -> Cell:
    done = [cell for cell, _ in seeds if cell.status in ("finished", DIVERGED)]
    counts = Counter(outcome for _, outcome in seeds if outcome in OUTCOMES)
    source: Source = "missing"
    if done:
        source = "run"
    elif any(cell.status == "failed" for cell, _ in seeds):
        source = "failed"
    elif counts:
        source = "inferred"
    return Cell(
        source,
        dict(counts),
        len(done),
        _mean([cell.train_accuracy for cell in done if cell.train_accuracy is not None]),
        _mean([cell.test_accuracy for cell in done if cell.test_accuracy is not None]),
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"

"""The phase diagram of a sweep, finished or not: what each cell's runs show together.

diagram = phase_diagram(store, "fig3a")
diagram.panels[0].cells[row][column].outcome
diagram.to_csv()
"""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from grokscope.errors import StoreError, did_you_mean
from grokscope.phases import Phase
from grokscope.store import CellOutcome, Store, StoredSweep
from grokscope.sweeps.plan import SEED, Axis, Plan
from grokscope.sweeps.refine import Place, refine

DIVERGED = "diverged"
OUTCOMES = (*(phase.value for phase in Phase), DIVERGED)
Source = Literal["run", "inferred", "failed", "missing"]


@dataclass(frozen=True)
class Cell:
    """One cell over all of its seeds."""

    source: Source  # inferred: no seed was run, and those around agree
    counts: dict[str, int]  # how many seeds ended how; inferred ones count as well
    runs: int  # seeds that were run
    failed: int  # seeds that failed
    missing: int  # seeds that are still to be done
    run_ids: tuple[str, ...]  # of the seeds that were run
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

    def all_cells(self) -> Iterator[Cell]:
        """Every cell of every panel."""
        return (cell for panel in self.panels for row in panel.cells for cell in row)

    def to_columns(self) -> dict[str, Sequence[object]]:
        """For each cell: its fields, what it shows, the probability of each phase with its interval, and its runs."""
        shown = (axis for axis in self.plan.axes if axis.fields != (SEED,) or axis is self.columns)
        fields = [path for axis in shown for path in axis.fields]
        heads = [f"{outcome}{bound}" for outcome in OUTCOMES for bound in ("", "_low", "_high")]
        names = [*fields, "source", "outcome", "runs", "train_accuracy", "test_accuracy", "failed", "missing", *heads]
        rows: list[list[object]] = []
        for panel in self.panels:
            for row, cells in enumerate(panel.cells):
                for column, cell in enumerate(cells):
                    values = self.columns.at(column) | (self.rows.at(row) if self.rows else {}) | panel.fields
                    chances = [bound for outcome in OUTCOMES for bound in cell.interval(outcome)]
                    rows.append(
                        [
                            *(values[path] for path in fields),
                            cell.source,
                            cell.outcome or "",
                            cell.runs,
                            *(_text(value) for value in (cell.train_accuracy, cell.test_accuracy)),
                            cell.failed,
                            cell.missing,
                            *(_text(value if cell.counts else None) for value in chances),
                            " ".join(cell.run_ids),
                        ]
                    )
        columns = zip(*rows, strict=True)
        return {name: list(column) for name, column in zip([*names, "run_ids"], columns, strict=True)}

    def to_csv(self) -> str:
        """The columns, one line for each cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = self.to_columns()
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return text.getvalue()


def wilson_interval(successes: int, trials: int) -> tuple[float, float, float]:
    """A fraction and its 95 % confidence interval after Wilson, which is sensible for few trials.

    >>> [round(bound, 2) for bound in wilson_interval(3, 3)]
    [1.0, 0.44, 1.0]
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


def assemble(plan: Plan, cells: Sequence[CellOutcome], *, refined: bool) -> PhaseDiagram:
    """A diagram from what became of each place. Many seeds make many runs, so they are counted as arrays."""
    axes = diagram_axes(plan)
    width, height = axes.size
    panels = math.prod(len(plan.axes[axis]) for axis in axes.panels)
    cell_of = cells_of_places(plan, axes)  # [places]: which cell of which panel
    codes = np.array([_CODES[cell.outcome] for cell in cells])
    shown = codes.copy()
    for places in _slices(plan).values() if refined else ():
        known = {place: outcome for place, at in places.items() if (outcome := cells[at].outcome)}
        for place, outcome in refine(width, height, known).inferred.items():
            shown[places[place]] = _CODES[outcome]

    def per_cell(values: npt.NDArray[Any], where: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        return np.bincount(cell_of[where], values[where], panels * width * height)

    ones = np.ones(len(cells))
    counts = np.stack([per_cell(ones, shown == code) for code in range(len(OUTCOMES))], axis=-1).astype(int)
    runs = per_cell(ones, codes >= 0).astype(int)
    failed = per_cell(ones, codes == _CODES["failed"]).astype(int)
    missing = per_cell(ones, shown == _CODES[None]).astype(int)
    means = []
    for column in ("train_accuracy", "test_accuracy"):
        values = np.array([getattr(cell, column) for cell in cells], float)
        with np.errstate(invalid="ignore"):
            means.append(per_cell(values, np.isfinite(values)) / per_cell(ones, np.isfinite(values)))
    run_ids: dict[int, list[str]] = defaultdict(list)
    for cell, at in zip(cells, cell_of.tolist(), strict=True):
        if _CODES[cell.outcome] >= 0:
            run_ids[at].append(cell.run_id)
    flat = [
        Cell(
            "run" if runs[i] else "failed" if failed[i] else "inferred" if counts[i].any() else "missing",
            {OUTCOMES[code]: int(counts[i, code]) for code in np.flatnonzero(counts[i])},
            int(runs[i]),
            int(failed[i]),
            int(missing[i]),
            tuple(run_ids[i]),
            *(None if math.isnan(mean[i]) else float(mean[i]) for mean in means),
        )
        for i in range(panels * width * height)
    ]
    made = []
    for panel in range(panels):
        fields: dict[str, object] = {}
        rest = panel
        for axis in axes.panels:
            rest, index = divmod(rest, len(plan.axes[axis]))
            fields |= plan.axes[axis].at(index)
        start = panel * width * height
        made.append(Panel(fields, [flat[start + row * width : start + (row + 1) * width] for row in range(height)]))
    rows = plan.axes[axes.rows] if axes.rows is not None else None
    return PhaseDiagram(plan, plan.axes[axes.columns], rows, made)


_CODES: dict[str | None, int] = {None: -1, "failed": -2, **{name: code for code, name in enumerate(OUTCOMES)}}


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


def wanted_places(plan: Plan, cells: Sequence[CellOutcome]) -> list[int]:
    """Of a refined sweep, the cells to run next; of all panels and seeds at once, each run once."""
    wanted = {}
    for places in _slices(plan).values():
        known = {place: outcome for place, at in places.items() if (outcome := cells[at].outcome)}
        for place in refine(*diagram_axes(plan).size, known).wanted:
            wanted[cells[places[place]].run_id] = places[place]
    return sorted(wanted.values())


def _slices(plan: Plan) -> dict[tuple[int, ...], dict[Place, int]]:
    """For each panel and seed, where its cells are among all."""
    axes = diagram_axes(plan)
    slices: dict[tuple[int, ...], dict[Place, int]] = defaultdict(dict)
    for at in range(plan.size):
        indices = plan.indices(at)
        place = (indices[axes.columns], indices[axes.rows] if axes.rows is not None else 0)
        others = tuple(index for axis, index in enumerate(indices) if axis not in (axes.columns, axes.rows))
        slices[others][place] = at
    return slices


def cells_of_places(plan: Plan, axes: DiagramAxes) -> npt.NDArray[np.int64]:
    """The cell of every place: column, then row, then panels, the first running fastest; seeds share a cell."""
    indices = np.unravel_index(np.arange(plan.size), [len(axis) for axis in plan.axes], order="F")
    cell = np.zeros(plan.size, np.int64)
    stride = 1
    for axis in (axes.columns, *([] if axes.rows is None else [axes.rows]), *axes.panels):
        cell += stride * indices[axis]
        stride *= len(plan.axes[axis])
    return cell


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"

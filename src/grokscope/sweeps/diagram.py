"""The phase diagram of a sweep, finished or not: what each cell's runs show together.

diagram = phase_diagram(store, "fig3a")
diagram.panels[0].cells[row][column].outcome
diagram.to_csv()
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from grokscope.errors import GrokscopeError, StoreError, did_you_mean
from grokscope.phases import Phase
from grokscope.store import CellOutcome, Store, StoredSweep
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import SEED, Plan
from grokscope.sweeps.refine import Place, refine
from grokscope.tables import csv_text, data_frame, optional_module

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

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


@dataclass(frozen=True, repr=False)
class PhaseDiagram:
    """All panels of a sweep. In a notebook it shows itself."""

    plan: Plan
    columns: Axis
    rows: Axis | None  # None if the sweep has a single axis
    panels: list[Panel]

    def all_cells(self) -> Iterator[Cell]:
        """Every cell of every panel."""
        return (cell for panel in self.panels for row in panel.cells for cell in row)

    def describe(self) -> str:
        """How large it is and how far, in plain words."""
        width, height = len(self.columns), len(self.rows) if self.rows else 1
        panels = f" in {len(self.panels)} panels" if len(self.panels) > 1 else ""
        sources = Counter(cell.source for cell in self.all_cells())
        said = f"{width} × {height} cells{panels}: " + ", ".join(f"{n} {source}" for source, n in sources.items())
        return f"{said}; {settling}" if (settling := self.settling()) else said

    def settling(self) -> str:
        """How runs end that need not reach their last step; empty if all do."""
        steps = self.plan.base.training.settle
        return f"runs end when their phase has settled ({steps} steps)" if steps else ""

    def __repr__(self) -> str:
        return f"<PhaseDiagram {self.plan.name}, {self.describe()}>"

    def plot(self, *, accuracies: bool = False) -> "Figure":
        """The picture that `grokscope phase-diagram` draws."""
        from grokscope.plots import draw_phase_diagram

        return draw_phase_diagram(self, accuracies=accuracies)

    def _repr_html_(self) -> str:
        from grokscope.plots.inline import inline_image

        words = f"<p><b>{escape(self.plan.name)}</b>, {self.describe()}</p>"
        try:
            return words + inline_image(self.plot(), f"Phase diagram of the sweep {self.plan.name}")
        except GrokscopeError as error:  # more panels than fit into a picture
            return f"{words}<p>{escape(str(error))}</p>"

    def table(self) -> dict[str, list[object]]:
        """For each cell: its fields, what it shows, the probability of each phase with its interval, and its runs."""
        shown = (axis for axis in self.plan.axes if axis.fields != (SEED,) or axis is self.columns)
        columns: dict[str, list[object]] = {path: [] for axis in shown for path in axis.fields}
        for name in CELL_COLUMNS:
            columns[name] = []
        for panel in self.panels:
            for row, cells in enumerate(panel.cells):
                for column, cell in enumerate(cells):
                    values = self.columns.at(column) | (self.rows.at(row) if self.rows else {}) | panel.fields
                    for name, found in {**values, **_cell_columns(cell)}.items():
                        columns[name].append(found)
        return columns

    def to_columns(self) -> dict[str, Sequence[object]]:
        """The table with numbers to six digits, as a text file has them; None where there is nothing."""
        return {
            name: [_rounded(value) for value in values] if name in CELL_COLUMNS else values
            for name, values in self.table().items()
        }

    def to_csv(self) -> str:
        """One line for each cell."""
        return csv_text(self.to_columns())

    def to_pandas(self) -> "pd.DataFrame":
        """One row for each cell, with the columns of `table`."""
        return data_frame(self.table())

    def to_xarray(self) -> "xr.Dataset":
        """Arrays whose dimensions are the axes; an outcome that is not known is empty.

        `probability`, the fraction of seeds with each outcome, has the dimension `phase` too.
        """
        axes = diagram_axes(self.plan)
        places = [*reversed(axes.panels), *([] if axes.rows is None else [axes.rows]), axes.columns]
        shown = [self.plan.axes[place] for place in places]
        names, shape = [_dimension(axis) for axis in shown], [len(axis) for axis in shown]
        cells = list(self.all_cells())
        fractions = [[cell.interval(outcome)[0] for outcome in OUTCOMES] for cell in cells]
        variables = {
            "outcome": (names, _array([cell.outcome or "" for cell in cells], str, shape)),
            "source": (names, _array([cell.source for cell in cells], str, shape)),
            "runs": (names, _array([cell.runs for cell in cells], np.int64, shape)),
            "train_accuracy": (names, _array([cell.train_accuracy for cell in cells], np.float64, shape)),
            "test_accuracy": (names, _array([cell.test_accuracy for cell in cells], np.float64, shape)),
            "probability": ([*names, "phase"], _array(fractions, np.float64, [*shape, len(OUTCOMES)])),
        }
        coordinates: dict[str, object] = {"phase": list(OUTCOMES)}
        for axis, name in zip(shown, names, strict=True):
            for path, values in zip(axis.fields, zip(*axis.points, strict=True), strict=True):
                coordinates[path] = (name, list(values))
        return optional_module("xarray").Dataset(variables, coordinates, {"sweep": self.plan.name})


CELL_COLUMNS = (
    *("source", "outcome", "runs", "train_accuracy", "test_accuracy", "failed", "missing"),
    *(f"{outcome}{bound}" for outcome in OUTCOMES for bound in ("", "_low", "_high")),
    "run_ids",
)


def _cell_columns(cell: Cell) -> dict[str, object]:
    chances = [bound if cell.counts else None for outcome in OUTCOMES for bound in cell.interval(outcome)]
    values = (
        *(cell.source, cell.outcome, cell.runs, cell.train_accuracy, cell.test_accuracy, cell.failed, cell.missing),
        *chances,
        " ".join(cell.run_ids),
    )
    return dict(zip(CELL_COLUMNS, values, strict=True))


def _dimension(axis: Axis) -> str:
    """The field's name, or the names of all fields that change together; each of those is a coordinate."""
    return " and ".join(axis.fields)


def _array(values: Sequence[object], kind: type, shape: Sequence[int]) -> npt.NDArray[Any]:
    return np.array(values, dtype=kind).reshape(shape)


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
    # At the ends the bounds are exactly 0 and 1, which rounding would miss.
    return fraction, middle - half if successes else 0.0, middle + half if successes < trials else 1.0


def find_sweep(store: Store, name: str) -> StoredSweep:
    """The sweep of this name; an error that names the others if there is none."""
    sweeps = {sweep.name: sweep for sweep in store.sweeps()}
    if name not in sweeps:
        known = f"it has {', '.join(sweeps)}" if sweeps else "it has none"
        raise StoreError(f"there is no sweep {name!r} in the store {store.path}: {known}{did_you_mean(name, sweeps)}")
    return sweeps[name]


def phase_diagram(store: Store, name: str | Plan) -> PhaseDiagram:
    """The diagram of a sweep as the store has it now; of a plan too, whose runs may have been done in any way."""
    if isinstance(name, Plan):
        return assemble(name, store.outcomes(spec.run_id for spec in name.specs()), refined=False)
    sweep = find_sweep(store, name)
    return assemble(Plan.stored(name, sweep.definition), store.cells(name), refined=sweep.refined)


def assemble(plan: Plan, cells: Sequence[CellOutcome], *, refined: bool) -> PhaseDiagram:
    """A diagram from what became of each place; in a refined one, cells that agree all around are inferred."""
    axes = diagram_axes(plan)
    shown = _with_inferred(plan, cells) if refined else _codes(cells)
    rows = plan.axes[axes.rows] if axes.rows is not None else None
    return PhaseDiagram(plan, plan.axes[axes.columns], rows, panels_of(plan, axes, _counted(plan, axes, cells, shown)))


def _codes(cells: Sequence[CellOutcome]) -> npt.NDArray[np.int64]:
    """What became of each place, as a number."""
    return np.array([_CODES[cell.outcome] for cell in cells])


def _with_inferred(plan: Plan, cells: Sequence[CellOutcome]) -> npt.NDArray[np.int64]:
    """The same, with what the cells around say of those that were not run."""
    codes = _codes(cells)
    for places in _slices(plan).values():
        known = {place: outcome for place, at in places.items() if (outcome := cells[at].outcome)}
        for place, outcome in refine(*diagram_axes(plan).size, known).inferred.items():
            codes[places[place]] = _CODES[outcome]
    return codes


def _counted(
    plan: Plan, axes: "DiagramAxes", places: Sequence[CellOutcome], shown: npt.NDArray[np.int64]
) -> list[Cell]:
    """The seeds of each cell together. Many seeds make many runs, so they are counted as arrays."""
    cell_of = cells_of_places(plan, axes)  # [places]: which cell of which panel
    size = int(cell_of.max()) + 1

    def count(where: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.bincount(cell_of[where], minlength=size)

    def mean(column: str) -> npt.NDArray[np.float64]:
        values = np.array([getattr(place, column) for place in places], float)
        there = np.isfinite(values)
        with np.errstate(invalid="ignore"):
            return np.bincount(cell_of[there], values[there], size) / count(there)

    codes = _codes(places)
    counts = np.stack([count(shown == code) for code in range(len(OUTCOMES))], axis=-1)  # [cells, outcomes]
    runs, failed, missing = count(codes >= 0), count(codes == _CODES["failed"]), count(shown == _CODES[None])
    train_accuracy, test_accuracy = mean("train_accuracy"), mean("test_accuracy")
    run_ids: dict[int, list[str]] = defaultdict(list)
    for at in np.flatnonzero(codes >= 0).tolist():
        run_ids[int(cell_of[at])].append(places[at].run_id)
    return [
        Cell(
            "run" if runs[i] else "failed" if failed[i] else "inferred" if counts[i].any() else "missing",
            {OUTCOMES[code]: int(counts[i, code]) for code in np.flatnonzero(counts[i])},
            int(runs[i]),
            int(failed[i]),
            int(missing[i]),
            tuple(run_ids[i]),
            _or_none(train_accuracy[i]),
            _or_none(test_accuracy[i]),
        )
        for i in range(size)
    ]


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def panels_of(plan: Plan, axes: "DiagramAxes", cells: Sequence[Cell]) -> list[Panel]:
    """The cells, panel after panel and row after row."""
    width, height = axes.size
    panels = []
    for start in range(0, len(cells), width * height):
        fields: dict[str, object] = {}
        rest = start // (width * height)
        for axis in axes.panels:
            rest, index = divmod(rest, len(plan.axes[axis]))
            fields |= plan.axes[axis].at(index)
        rows = [list(cells[first : first + width]) for first in range(start, start + width * height, width)]
        panels.append(Panel(fields, rows))
    return panels


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


def _rounded(value: object) -> object:
    """To six digits; what is whole as a whole number, which is shorter in a file."""
    if not isinstance(value, float):
        return value
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short

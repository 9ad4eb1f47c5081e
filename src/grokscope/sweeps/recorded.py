"""Diagrams that are known from a table of cells, where the runs themselves are not at hand.

    diagram = read_diagram(Path("docs/data/fig09-paper.csv"))
    outcomes = read_outcomes(Path("docs/data"))
    outcomes["2319174e03782b1c"].outcome

The tables are those that `PhaseDiagram.to_csv` writes. A run id is a hash of all settings, so what a table says about a
run is true wherever the run was trained.
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from types import MappingProxyType

from grokscope.errors import GrokscopeError
from grokscope.spec import RunSpec
from grokscope.store import CellOutcome, Store
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import (
    CELL_COLUMNS,
    OUTCOMES,
    Cell,
    PhaseDiagram,
    Source,
    assemble,
    diagram_axes,
    find_sweep,
    panels_of,
)
from grokscope.sweeps.plan import Plan

_FIRST = CELL_COLUMNS[0]
_SOURCES: tuple[Source, ...] = ("run", "inferred", "failed", "missing")

Row = Mapping[str, str]
Recorded = Mapping[str, CellOutcome]  # what tables of cells say, by the id of a run
NOTHING_RECORDED: Recorded = MappingProxyType({})


def read_diagram(path: Path) -> PhaseDiagram:
    """The diagram that a table of cells describes. Fields that are the same in all cells are not known."""
    rows = _rows(path)
    fields = list(rows[0])[: list(rows[0]).index(_FIRST)]
    points = [tuple(_value(row[name]) for name in fields) for row in rows]
    axes: list[Axis] = []
    at = 0
    for size in _fields_together(points):
        values = dict.fromkeys(point[at : at + size] for point in points)
        axes.append(Axis(tuple(fields[at : at + size]), tuple(values)))
        at += size
    content = {"base": RunSpec().model_dump(mode="json"), "axes": list(map(vars, axes)), "derived": {}}
    plan = Plan.from_dict(path.stem, content)
    whole = [tuple(chain(*reversed(each))) for each in product(*[axis.points for axis in reversed(axes)])]
    if points != whole:
        raise GrokscopeError(f"{path} is not the table of a whole diagram: cells are missing, or in another order")
    own = diagram_axes(plan)
    vertical = None if own.rows is None else plan.axes[own.rows]
    return PhaseDiagram(plan, plan.axes[own.columns], vertical, panels_of(plan, own, _cells(path, rows)))


def read_outcomes(tables: Path, *, others: bool = False) -> dict[str, CellOutcome]:
    """The outcome of every run in a table, or in all tables of a directory, by the run's id.

    With `others` there may be tables of something else in the directory.
    """
    paths = sorted(tables.glob("*.csv")) if tables.is_dir() else [tables]
    if not paths:
        raise GrokscopeError(f"there is no table of cells (.csv) in {tables}")
    found: dict[str, CellOutcome] = {}
    for path in paths:
        if others and not _is_of_cells(path):
            continue
        for cell in _cells(path, _rows(path)):
            if not cell.seeds_agree:
                continue  # the table does not say which seed shows what
            alone = cell.runs == 1
            accuracies = (cell.train_accuracy, cell.test_accuracy) if alone else (None, None)
            for run_id in cell.run_ids:
                outcome = CellOutcome(0, run_id, cell.outcome, *accuracies)
                if found.setdefault(run_id, outcome).outcome != outcome.outcome:
                    raise GrokscopeError(f"the tables in {tables} contradict each other about run {run_id}")
                if alone:  # a cell of several seeds does not say which of them had which accuracies
                    found[run_id] = outcome
    return found


def completed(cells: Iterable[CellOutcome], recorded: Recorded) -> list[CellOutcome]:
    """The cells, with what the tables say about runs that have no outcome here."""
    return [
        recorded.get(cell.run_id, cell)._replace(place=cell.place) if cell.outcome is None else cell for cell in cells
    ]


def stored_diagram(store: Store, name: str, recorded: Recorded = NOTHING_RECORDED) -> PhaseDiagram:
    """The diagram of a sweep as the store has it now, and what tables of cells add."""
    sweep = find_sweep(store, name)
    return assemble(Plan.stored(name, sweep.definition), completed(store.cells(name), recorded), refined=sweep.refined)


def _is_of_cells(path: Path) -> bool:
    """Whether every row of a table is a cell."""
    with path.open(encoding="utf-8", newline="") as file:
        return all(row.get(_FIRST) in _SOURCES and row.get("runs") for row in csv.DictReader(file))


def _rows(path: Path) -> list[Row]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows: list[Row] = list(csv.DictReader(file, restval=""))
    except OSError as error:
        raise GrokscopeError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise GrokscopeError(f"{path} is not a table of cells: it cannot be read as CSV") from None
    missing = [name for name in CELL_COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise GrokscopeError(
            f"{path} is not a table of cells, as `grokscope phase-diagram SWEEP --out cells.csv` writes it: "
            + (f"it has no column {missing[0]}" if rows else "it is empty")
        )
    return rows


def _cells(path: Path, rows: Sequence[Row]) -> list[Cell]:
    try:
        numbers = [{name: int(row[name]) for name in ("runs", "failed", "missing")} for row in rows]
        seeds = max(sum(each.values()) for each in numbers)
        return [_cell(row, each, seeds) for row, each in zip(rows, numbers, strict=True)]
    except ValueError as error:
        raise GrokscopeError(f"{path} is not a table of cells: {error}") from None


def _cell(row: Row, numbers: Mapping[str, int], seeds: int) -> Cell:
    source = next((source for source in _SOURCES if source == row["source"]), None)
    if source is None:
        raise ValueError(f"the source of a cell is {row['source']!r}, not one of {', '.join(_SOURCES)}")
    known = seeds - numbers["failed"] - numbers["missing"]
    counts = {name: round(float(row[name]) * known) for name in OUTCOMES if row[name] and float(row[name])}
    return Cell(
        source=source,
        counts=counts,
        run_ids=tuple(row["run_ids"].split()),
        train_accuracy=_number(row["train_accuracy"]),
        test_accuracy=_number(row["test_accuracy"]),
        **numbers,
    )


def _number(text: str) -> float | None:
    return float(text) if text else None


def _value(text: str) -> object:
    """A value of a field as it was before it became text.

    >>> _value("8"), _value("0.5"), _value("True"), _value("relu")
    (8, 0.5, True, 'relu')
    """
    if text in ("True", "False"):
        return text == "True"
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def _fields_together(points: Sequence[tuple[object, ...]]) -> list[int]:
    """How many fields each axis has: a field that another one determines changes together with it.

    >>> _fields_together([(0.1, 8, 400), (0.2, 8, 400), (0.1, 64, 50), (0.2, 64, 50)])
    [1, 2]
    """
    sizes: list[int] = []
    at = 0
    while at < len(points[0]):
        size = 1
        while at + size < len(points[0]) and _determined(points, at, size):
            size += 1
        sizes.append(size)
        at += size
    return sizes


def _determined(points: Sequence[tuple[object, ...]], at: int, size: int) -> bool:
    """Whether the field after some others takes several values, but one for each of theirs."""
    alone = len({point[at : at + size] for point in points})
    values = len({point[at + size] for point in points})
    return values > 1 and len({point[at : at + size + 1] for point in points}) == alone

"""A phase diagram for a fraction of its runs: most cells lie inside a phase, and only boundaries need every run.

A coarse grid is run first, then grids of half the spacing. A new cell is run if the cells of the coarser grid around it
disagree; if they agree, it is inferred to be like them. At the end every inferred cell beside a cell of another outcome
is run too, and so on until none is left: what is inferred lies inside a phase on all sides.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Place = tuple[int, int]
COARSEST = 4  # the spacing of the first grid
FEWEST = 3  # points of the first grid along an axis, as far as there are so many: corners alone would say little


@dataclass(frozen=True)
class Refinement:
    """What is known so far: which cells to run next, and those that need not be, with their outcome."""

    wanted: frozenset[Place]
    inferred: Mapping[Place, str]


def refine(columns: int, rows: int, known: Mapping[Place, str]) -> Refinement:
    """The next cells to run, given how those went that were run. None are wanted when the diagram is done."""
    inferred: dict[Place, str] = {}
    spacing = _first_spacing(min((size for size in (columns, rows) if size > 1), default=1))
    coarse_columns, coarse_rows = _grid(columns, spacing), _grid(rows, spacing)
    wanted = {place for place in _product(coarse_columns, coarse_rows) if place not in known}
    while not wanted and spacing > 1:
        spacing //= 2
        finer_columns, finer_rows = _grid(columns, spacing), _grid(rows, spacing)
        found: dict[Place, str] = {}
        for place in _product(finer_columns, finer_rows):
            if place in known or place in inferred:
                continue
            around = {
                _outcome(corner, known, inferred)
                for corner in _product(_around(place[0], coarse_columns), _around(place[1], coarse_rows))
            }
            if len(around) == 1:
                found[place] = around.pop()
            else:
                wanted.add(place)
        inferred |= found
        coarse_columns, coarse_rows = finer_columns, finer_rows
    if not wanted:
        wanted = {place for place in inferred if _differs_beside(place, known, inferred)}
        inferred = {place: outcome for place, outcome in inferred.items() if place not in wanted}
    return Refinement(frozenset(wanted), inferred)


def _first_spacing(size: int) -> int:
    """The coarsest that leaves enough points on the shorter axis.

    >>> [_first_spacing(size) for size in (4, 5, 8, 9, 17)]
    [1, 2, 2, 4, 4]
    """
    spacing = COARSEST
    while spacing > 1 and (size - 1) // spacing + 1 < FEWEST:
        spacing //= 2
    return spacing


def _grid(size: int, spacing: int) -> list[int]:
    """Every `spacing`-th index, and the last."""
    return sorted({*range(0, size, spacing), size - 1})


def _product(columns: list[int], rows: list[int]) -> Iterator[Place]:
    return ((column, row) for row in rows for column in columns)


def _around(index: int, grid: list[int]) -> list[int]:
    """The index itself if the grid has it, else the grid's nearest on both sides."""
    if index in grid:
        return [index]
    return [max(i for i in grid if i < index), min(i for i in grid if i > index)]


def _outcome(place: Place, known: Mapping[Place, str], inferred: Mapping[Place, str]) -> str:
    return known[place] if place in known else inferred[place]


def _differs_beside(place: Place, known: Mapping[Place, str], inferred: Mapping[Place, str]) -> bool:
    column, row = place
    beside = [(column - 1, row), (column + 1, row), (column, row - 1), (column, row + 1)]
    outcomes = {_outcome(other, known, inferred) for other in beside if other in known or other in inferred}
    return not outcomes <= {inferred[place]}

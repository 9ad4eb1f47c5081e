"""Regions of a phase diagram: how much of a panel is in which phase, and where networks generalise.

>>> region = Region((0.3, 0.6, 0.9), (0.0, 0.45), (("memorization", "coexistence", "coexistence"),
...                                               ("memorization", "memorization", "full_inversion")))
>>> region.share(*GENERALISING), region.first_data_fraction(0.45), region.robustness(0.6)
(0.5, 0.9, 0.0)

Every cell counts the same, so all numbers make sense on a coarse grid as well as on the paper's.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from grokscope.errors import GrokscopeError
from grokscope.phases import Phase
from grokscope.sweeps.diagram import Panel, PhaseDiagram
from grokscope.sweeps.plan import GRID, Plan

INVERTING = (Phase.PARTIAL_INVERSION, Phase.FULL_INVERSION)
GENERALISING = (Phase.COEXISTENCE, *INVERTING)


@dataclass(frozen=True)
class Shares:
    """A measure for checks that counts cells, or compares such counts: what is less than a cell it cannot tell."""

    measure: Callable[..., float]
    panels: int = 1  # of a diagram, that are counted together
    difference: bool = False  # of two shares, or a share itself

    def __call__(self, *looked_at: Any) -> float:
        """The number."""
        return self.measure(*looked_at)

    def cell(self, plan: Plan) -> float:
        """How much one cell of this diagram is of what is counted.

        >>> from grokscope.sweeps.axes import Axis
        >>> Shares(min).cell(Plan("line", axes=(Axis.over("task.corruption", (0, 0.2, 0.4, 0.6)),)))
        0.25
        """
        return 1 / (self.panels * math.prod(len(axis) for axis in plan.axes if axis.fields[0] in GRID))


@dataclass(frozen=True)
class Region:
    """A panel of a diagram, or a rectangle cut out of one."""

    data_fractions: tuple[float, ...]  # ascending
    corruptions: tuple[float, ...]  # ascending
    outcomes: tuple[tuple[str | None, ...], ...]  # [corruption][data fraction]; None is unknown

    def share(self, *outcomes: str) -> float:
        """The share of cells with one of these outcomes; NaN if nothing is known."""
        return _share((outcome for row in self.outcomes for outcome in row), outcomes)

    def within(
        self, *, data_fractions: tuple[float, float] = (0, 1), corruptions: tuple[float, float] = (0, 1)
    ) -> "Region":
        """The cells whose data and corruption fractions lie between two values, both included."""
        columns = _between(self.data_fractions, *data_fractions)
        rows = _between(self.corruptions, *corruptions)
        return Region(
            tuple(self.data_fractions[column] for column in columns),
            tuple(self.corruptions[row] for row in rows),
            tuple(tuple(self.outcomes[row][column] for column in columns) for row in rows),
        )

    def first_data_fraction(self, corruption: float, outcomes: Iterable[str] = GENERALISING) -> float:
        """The smallest α with one of these outcomes, in the row nearest to a corruption; NaN if it has none."""
        row = self.outcomes[_nearest(self.corruptions, corruption)]
        wanted = set(outcomes)
        found = (alpha for alpha, outcome in zip(self.data_fractions, row, strict=True) if outcome in wanted)
        return min(found, default=math.nan)

    def robustness(self, data_fraction: float) -> float:
        """The largest ξ at which a network still generalises, in the column nearest to α; NaN if there is none."""
        column = _nearest(self.data_fractions, data_fraction)
        found = (xi for xi, row in zip(self.corruptions, self.outcomes, strict=True) if row[column] in GENERALISING)
        return max(found, default=math.nan)


def share(*outcomes: str) -> Shares:
    """For checks: the share of a region's cells with one of these outcomes."""
    return Shares(lambda region: region.share(*outcomes))


def largest_share(*outcomes: str) -> Shares:
    """For checks: the largest of several regions' shares."""
    return Shares(lambda *regions: max(region.share(*outcomes) for region in regions))


def larger_share(*outcomes: str) -> Shares:
    """For checks: by how much the first region's share is larger than the second's."""
    return Shares(lambda first, second: first.share(*outcomes) - second.share(*outcomes), difference=True)


def share_of(panels: Iterable[Panel], outcomes: Collection[str]) -> float:
    """The share of cells of several panels together, inferred ones included, with one of these outcomes."""
    return _share((cell.outcome for panel in panels for row in panel.cells for cell in row), outcomes)


def share_gain(more: Iterable[Panel], less: Iterable[Panel], outcomes: Collection[str]) -> float:
    """By how much the first panels' share of the outcomes is larger; NaN if both shares are 0: nothing to compare."""
    shares = share_of(more, outcomes), share_of(less, outcomes)
    return shares[0] - shares[1] if any(shares) else math.nan


def share_grown(*outcomes: str) -> Shares:
    """For checks: by how much the last panel of a diagram has a larger share of the outcomes than the first."""

    def value(diagram: PhaseDiagram) -> float:
        return share_of(diagram.panels[-1:], outcomes) - share_of(diagram.panels[:1], outcomes)

    return Shares(value, difference=True)


def _share(found: Iterable[str | None], outcomes: Collection[str]) -> float:
    known = [outcome for outcome in found if outcome is not None]
    return sum(outcome in outcomes for outcome in known) / len(known) if known else math.nan


def panel_at(diagram: PhaseDiagram, fields: Mapping[str, object] | None = None) -> Panel:
    """The panel with these values of its fields; without values, the only panel."""
    wanted = fields or {}
    found = [panel for panel in diagram.panels if all(panel.fields.get(path) == wanted[path] for path in wanted)]
    if len(found) != 1:
        shown = ", ".join(f"{path} = {value}" for path, value in wanted.items()) or "any fields"
        raise GrokscopeError(f"the sweep {diagram.plan.name} has {len(found)} panels with {shown}, not one")
    return found[0]


def median_in(
    fields: Mapping[str, object], phase: Phase, value: Callable[[float, float, float], float]
) -> Callable[[PhaseDiagram], float]:
    """For checks: the median over the cells of a panel that were run and are in a phase; the value is of train
    accuracy, test accuracy and ξ.
    """

    def measure(diagram: PhaseDiagram) -> float:
        corruptions = [_number(xi) for (xi,) in diagram.rows.points] if diagram.rows else []
        values = [
            value(cell.train_accuracy, cell.test_accuracy, xi)
            for xi, row in zip(corruptions, panel_at(diagram, fields).cells, strict=True)
            for cell in row
            if cell.outcome == phase and cell.train_accuracy is not None and cell.test_accuracy is not None
        ]
        return median(values) if values else math.nan

    return measure


def region(diagram: PhaseDiagram, fields: Mapping[str, object] | None = None) -> Region:
    """The outcomes of the panel with these values of its fields. Cells that were inferred count as if they were run."""
    outcomes = tuple(tuple(cell.outcome for cell in row) for row in panel_at(diagram, fields).cells)
    alphas, xis = diagram.columns.points, diagram.rows.points if diagram.rows else ((0.0,),)
    return Region(tuple(_number(*point) for point in alphas), tuple(_number(*point) for point in xis), outcomes)


def agreement(first: Region, second: Region) -> float:
    """The share of cells with the same outcome in both, of those that are known in both."""
    pairs = [(here, there) for here, there in _pairs(first, second) if here is not None and there is not None]
    return sum(here == there for here, there in pairs) / len(pairs) if pairs else math.nan


def share_of_these(first: Region, outcomes: Iterable[str], second: Region, then: Iterable[str]) -> float:
    """Where the first has one of these outcomes, the share of cells where the second has one of `then`; NaN if none."""
    wanted, allowed = set(outcomes), set(then)
    chosen = [there for here, there in _pairs(first, second) if here in wanted and there is not None]
    return sum(there in allowed for there in chosen) / len(chosen) if chosen else math.nan


def boundary_shift(first: Region, second: Region) -> float:
    """How much less data the second needs to generalise, on average over the corruptions at which either does.

    One that generalises at no α is taken to do so at α = 1, where there is no test set left.
    """
    shifts = []
    for corruption in first.corruptions:
        here, there = first.first_data_fraction(corruption), second.first_data_fraction(corruption)
        if not (math.isnan(here) and math.isnan(there)):
            shifts.append((1.0 if math.isnan(here) else here) - (1.0 if math.isnan(there) else there))
    return sum(shifts) / len(shifts) if shifts else math.nan


def _pairs(first: Region, second: Region) -> list[tuple[str | None, str | None]]:
    if (first.data_fractions, first.corruptions) != (second.data_fractions, second.corruptions):
        raise GrokscopeError("two panels can be compared only on the same grid")
    rows = zip(first.outcomes, second.outcomes, strict=True)
    return [pair for here, there in rows for pair in zip(here, there, strict=True)]


def _between(values: tuple[float, ...], low: float, high: float) -> list[int]:
    return [index for index, value in enumerate(values) if low <= value <= high]


def _nearest(values: tuple[float, ...], wanted: float) -> int:
    """Of two that are equally near, the smaller one."""
    return min(range(len(values)), key=lambda index: (round(abs(values[index] - wanted), 9), index))


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise GrokscopeError(f"the axes of a diagram must be numbers, not {value!r}")
    return float(value)

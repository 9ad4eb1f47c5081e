"""What was measured for every claim, docs/claims.json: the pages of claims and of the report are made from it.

    entries = renewed(read_record(Path("docs/claims.json"), CLAIMS), findings)
    entries[0].verdict

The runs behind the claims take days, and no store lives for ever. So what was measured is kept, and a claim is renewed
whenever a store, or a table of cells, has all that it needs at a scale that is as good. A claim that took the place of
another one and asks for the same numbers is judged by what was measured for that one.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from grokscope.errors import GrokscopeError
from grokscope.experiments.claim import Check, CheckResult, Claim, Finding, Verdict, measured_text, overall, verdict_on
from grokscope.experiments.scale import MIXED, PAPER, QUICK, SCALES, TINY, Scale

_BEST_FIRST = tuple(scale.name for scale in (PAPER, MIXED, QUICK, TINY))
_LINE = re.compile(r"(?P<mean>\S+)(?: ± (?P<spread>\S+))? \((?P<bounds>[^:]+)(?:: (?P<verdict>.+))?\)")


@dataclass(frozen=True)
class Remembered:
    """A check of which only the mean and the standard deviation over seeds were kept."""

    check: Check
    mean: float
    spread: float  # NaN of one seed
    seeds: int
    said: Verdict  # about the seeds
    cell: float = 0.0
    values: tuple[float, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What was said about the seeds, unless one cell of a diagram would change it."""
        undecided = self.check.one_cell_decides(self.mean, self.cell)
        return Verdict.UNDECIDED if undecided else self.said

    @property
    def text(self) -> str:
        """As that of a check whose values are known."""
        return measured_text(self.check, self.mean, self.spread, self.verdict)

    def under(self, check: Check) -> "Remembered":
        """The same number within the bounds of another check.

        No value is further from the mean than (n − 1)/√n standard deviations, so all are inside, or outside, if that
        whole range is. Otherwise nothing can be said.
        """
        reach = 0.0 if math.isnan(self.spread) else self.spread * (self.seeds - 1) / math.sqrt(self.seeds)
        low, high = self.mean - reach, self.mean + reach
        if check.allows(low) and check.allows(high):
            said = Verdict.HOLDS
        else:
            outside = high < check.low or low > check.high
            said = Verdict.FAILS if outside else Verdict.INCONCLUSIVE
        return replace(self, check=check, said=said)


@dataclass(frozen=True)
class Entry:
    """What is known about a claim."""

    claim: Claim
    scale: str
    seeds: int
    results: tuple[CheckResult | Remembered, ...] = ()  # of each check; empty if it was not run
    grid: tuple[int, int] | None = None  # of its diagrams, if it is not that of the scale

    @classmethod
    def of(cls, finding: Finding) -> "Entry":
        """The entry of a finding."""
        scale, needs = finding.scale, finding.claim.needs(finding.scale)
        same = needs.plans(scale) == needs.plans(replace(scale, grid=SCALES[scale.name].grid))
        grid = None if same else scale.other_grid
        return cls(finding.claim, scale.name, finding.seeds, finding.measured, grid)

    @property
    def measured_at(self) -> Scale:
        """The scale, with the grid of the diagrams."""
        own = SCALES[self.scale]
        return replace(own, grid=self.grid or own.grid)

    @property
    def size(self) -> str:
        """The scale in words."""
        return "{} on {} × {} cells".format(self.scale, *self.grid) if self.grid else self.scale

    @property
    def measured(self) -> tuple[str, ...]:
        """A line for each check."""
        return tuple(each.text for each in self.results)

    @property
    def found(self) -> Verdict:
        """What was measured says, even if the claim was superseded."""
        return overall(each.verdict for each in self.results)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim."""
        return verdict_on(self.claim, self.found)

    @property
    def rank(self) -> tuple[bool, int, int, float]:
        """The smaller, the better: measured at all, the scale, the number of seeds, the weight of a cell."""
        cell = max((each.cell for each in self.results), default=0.0)
        return not self.results, _BEST_FIRST.index(self.scale), -self.seeds, cell


def renewed(record: Mapping[str, Entry], findings: Iterable[Finding]) -> list[Entry]:
    """An entry for each finding: its own, unless the record has a better one."""
    entries = []
    for entry in map(Entry.of, findings):
        known = record.get(entry.claim.id, entry)
        best = known if known.rank < entry.rank else entry
        entries.append(best if best.results else inherited(best, record))
    return entries


def inherited(entry: Entry, record: Mapping[str, Entry]) -> Entry:
    """The entry of a claim that was not run, from those that it took the place of, if they have all of its numbers."""
    for older in record.values():
        if older.claim.superseded is None or entry.claim.id not in older.claim.superseded.by:
            continue
        known = {each.check.what: each for each in older.results}
        if all(check.what in known for check in entry.claim.checks):
            taken = tuple(_under(known[check.what], check) for check in entry.claim.checks)
            return replace(entry, scale=older.scale, seeds=older.seeds, results=taken, grid=older.grid)
    return entry


def _under(result: CheckResult | Remembered, check: Check) -> CheckResult | Remembered:
    return result.under(check) if isinstance(result, Remembered) else replace(result, check=check)


def read_record(path: Path, claims: Mapping[str, Claim]) -> dict[str, Entry]:
    """The entries of a record, by the ids of their claims; claims that are no more are left out."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {one["id"]: _entry(one, claims[one["id"]]) for one in content if one["id"] in claims}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GrokscopeError(f"{path} is not a record of claims: {error}") from None


def _entry(one: Mapping[str, object], claim: Claim) -> Entry:
    scale, seeds, lines, values = one["scale"], one["seeds"], one["measured"], one["values"]
    if not (isinstance(scale, str) and isinstance(seeds, int) and isinstance(lines, list) and isinstance(values, list)):
        raise TypeError(f"{claim.id} has fields of other types")
    if not lines:
        return Entry(claim, scale, seeds)
    if len(lines) != len(claim.checks):
        raise ValueError(f"{claim.id} has {len(claim.checks)} checks, and {len(lines)} were measured")
    cells = one.get("cells")  # entries from before the size of a cell was kept are of a scale's own grid
    results: list[CheckResult | Remembered] = []
    for place, (check, line) in enumerate(zip(claim.checks, lines, strict=True)):
        cell = float(cells[place]) if isinstance(cells, list) else check.cell(SCALES[scale])
        if values:
            of_seeds = tuple(math.nan if value is None else float(value) for value in values[place])
            results.append(CheckResult(check, of_seeds, cell))
        else:
            results.append(_remembered(check, line, seeds, cell))
    grid = one.get("grid")
    return Entry(claim, scale, seeds, tuple(results), (int(grid[0]), int(grid[1])) if isinstance(grid, list) else None)


def _remembered(check: Check, line: str, seeds: int, cell: float) -> Remembered:
    found = _LINE.fullmatch(line.removeprefix(f"{check.what} "))
    if not found or found["bounds"] != check.bounds:
        raise ValueError(f"{line!r} was not measured for the check {check.what!r} with the bounds {check.bounds}")
    said = Verdict(found["verdict"] or Verdict.HOLDS)
    if said is Verdict.UNDECIDED:  # that is told from the number
        said = Verdict.HOLDS if check.allows(float(found["mean"])) else Verdict.FAILS
    spread = float(found["spread"]) if found["spread"] else math.nan
    return Remembered(check, float(found["mean"]), spread, seeds, said, cell)


def record_text(entries: Iterable[Entry]) -> str:
    """A record of these entries, a line for each."""
    lines = (
        json.dumps(
            {
                "id": entry.claim.id,
                "scale": entry.scale,
                **({"grid": entry.grid} if entry.grid else {}),
                "seeds": entry.seeds,
                "verdict": entry.verdict.value,
                "measured": entry.measured,
                "values": [list(map(_finite, each.values)) for each in entry.results if each.values],
                **(
                    {"cells": [each.cell for each in entry.results]} if any(each.cell for each in entry.results) else {}
                ),
            },
            ensure_ascii=False,
            allow_nan=False,
        )
        for entry in entries
    )
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

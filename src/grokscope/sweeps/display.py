"""A sweep while it runs: in a terminal the phase diagram fills in, in a log or a notebook there are plain lines.

A log has a line for each finished run, but no more than a few a minute once the sweep is longer than a minute.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from grokscope.notes import Volume, note, shows_bars, volume
from grokscope.phases import Phase
from grokscope.spec import RunSpec
from grokscope.store import CellOutcome
from grokscope.sweeps.diagram import DIVERGED, diagram_axes
from grokscope.sweeps.estimate import relative_cost
from grokscope.sweeps.labels import said, short_field, short_value
from grokscope.sweeps.messages import Expected, Failed, Finished, Progress, Started, StillWaiting, Waiting
from grokscope.sweeps.plan import SEED, Plan

FAILED, RUNNING, MISSING = "failed", "running", "missing"
LOG_EVERY_RUN_SECONDS = 60.0  # for this long, a log has a line for every run
LOG_SECONDS = 15.0  # between two lines after that
_COLORS = {phase.value: phase.color for phase in Phase} | {
    DIVERGED: "#000000",
    FAILED: "#ff00ff",
    RUNNING: "#ffffff",
    MISSING: "#303030",
}
# Where there are fewer colours than these, or none, a cell is a letter. The legend explains them.
_LETTERS = {
    Phase.COEXISTENCE.value: "C",
    Phase.PARTIAL_INVERSION.value: "P",
    Phase.FULL_INVERSION.value: "F",
    Phase.MEMORIZATION.value: "M",
    Phase.FORGETTING.value: "L",  # lost
    Phase.CONFUSION.value: "N",  # neither
    DIVERGED: "D",
    FAILED: "X",
    RUNNING: "*",
    MISSING: ".",
}
_ENOUGH_COLORS = ("256", "truecolor")


class SweepDisplay:
    """Shows what happens in a sweep over the cells of its plan."""

    def __init__(self, plan: Plan, specs: Sequence[RunSpec], cells: Sequence[CellOutcome]) -> None:
        self._plan, self._specs, self._axes = plan, specs, diagram_axes(plan)
        self._outcomes: dict[int, str] = {cell.place: cell.outcome for cell in cells if cell.outcome}
        self._places: dict[tuple[tuple[int, ...], int, int], list[int]] = defaultdict(list)
        for place in range(plan.size):
            indices = plan.indices(place)
            row = indices[self._axes.rows] if self._axes.rows is not None else 0
            panel = tuple(indices[axis] for axis in self._axes.panels)
            self._places[panel, indices[self._axes.columns], row].append(place)
        self._panels = sorted({panel for panel, _, _ in self._places})
        self._newest = self._panels[0]
        self._todo, self._done, self._failed = 0, 0, 0
        self._waiting: dict[int, str] = {}  # runs that another process has, and which
        self._work, self._work_done, self._started = 0.0, 0.0, time.monotonic()
        self._console = Console(stderr=True)
        self._letters = self._console.no_color or self._console.color_system not in _ENOUGH_COLORS
        self._live = Live(console=self._console, get_renderable=self._render, refresh_per_second=2, transient=False)
        self._terminal = shows_bars()
        self._logged = self._started  # when there was a line last
        self._unlogged = False  # whether a run has finished since

    def __enter__(self) -> Self:
        if self._terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal:
            with suppress(OSError):  # the terminal may be closed
                self._live.stop()
        elif self._unlogged:
            note(self._summary().plain)

    def update(self, event: Progress | Expected) -> None:
        """Take note of an event."""
        match event:
            case Expected(places):
                self._todo += len(places)
                self._work += sum(relative_cost(self._specs[place]) for place in places)
            case Started(index):
                self._waiting.pop(index, None)
                self._outcomes[index] = RUNNING
                self._newest = self._panel_of(index)
            case Finished(index, phase, seconds):
                self._end(index, phase.value if phase else DIVERGED)
                self._log(index, f"{phase.label if phase else 'Diverged'} ({seconds:.1f} s)")
            case Waiting(index, owner):
                self._waiting[index] = owner
                if not self._terminal:
                    note(f"{self._specs[index].run_id} is being trained by {owner}: waiting for it.")
            case StillWaiting() if not self._terminal:
                note(str(event))
            case Failed(index, error):
                self._failed += 1
                self._end(index, FAILED)
                self._log(index, f"FAILED: {error}", always=True)

    def _end(self, index: int, outcome: str) -> None:
        self._outcomes[index] = outcome
        self._waiting.pop(index, None)
        self._done += 1
        self._work_done += relative_cost(self._specs[index])

    def _log(self, index: int, what: str, *, always: bool = False) -> None:
        if self._terminal:
            return
        now = time.monotonic()
        early = now - self._started < LOG_EVERY_RUN_SECONDS
        every = always or early or volume() == Volume.VERBOSE
        self._unlogged = not (every or now - self._logged >= LOG_SECONDS)
        if not self._unlogged:
            self._logged = now
            run = f"{self._specs[index].run_id} {_point(self._plan, index)}"
            note(f"{self._done} of {self._todo}: {run}: {what}; {self._outlook()}")

    def _panel_of(self, place: int) -> tuple[int, ...]:
        indices = self._plan.indices(place)
        return tuple(indices[axis] for axis in self._axes.panels)

    # ---- drawing ------------------------------------------------------------------------------------------------

    def _render(self) -> RenderableType:
        columns = self._axes.size[0]
        wide = 2 if (2 * columns + 3) * len(self._panels) <= self._console.width else 1
        room = max(1, self._console.width // (wide * columns + 3))
        first = max(0, min(self._panels.index(self._newest) - room // 2, len(self._panels) - room))
        shown = self._panels[first : first + room]
        grid = Table.grid(padding=(0, 3, 0, 0))
        for _ in shown:
            grid.add_column()
        grid.add_row(*(self._title(panel) for panel in shown))
        grid.add_row(*(self._panel(panel, wide) for panel in shown))
        hidden = len(self._panels) - len(shown)
        more = [Text(f"{hidden} more panels beside these", style="dim")] if hidden else []
        return Group(self._summary(), self._legend(), grid, *more)  # a terminal that is too low cuts the end

    def _title(self, panel: tuple[int, ...]) -> Text:
        fields: dict[str, object] = {}
        for axis, index in zip(self._axes.panels, panel, strict=True):
            fields |= self._plan.axes[axis].at(index)
        return Text(_in_short(fields) or self._plan.name)

    def _panel(self, panel: tuple[int, ...], wide: int) -> Text:
        """Two rows of cells to a line: the upper half of a character has one colour, the lower half another."""
        columns, rows = self._axes.size
        if self._letters:
            lines = ([self._majority(panel, column, row) for column in range(columns)] for row in reversed(range(rows)))
            return Text("\n".join("".join(_LETTERS[outcome].ljust(wide) for outcome in line) for line in lines))
        text = Text()
        for row in range(rows - 1, -1, -2):
            for column in range(columns):
                upper = _COLORS[self._majority(panel, column, row)]
                lower = _COLORS[self._majority(panel, column, row - 1)] if row else None
                text.append("▀" * wide, style=f"{upper} on {lower}" if lower else upper)
            text.append("\n")
        text.rstrip()
        return text

    def _majority(self, panel: tuple[int, ...], column: int, row: int) -> str:
        places = self._places[panel, column, row]
        if len(places) == 1:
            return self._outcomes.get(places[0], MISSING)
        outcomes = Counter(outcome for place in places if (outcome := self._outcomes.get(place)))
        return outcomes.most_common(1)[0][0] if outcomes else MISSING

    def _legend(self) -> Text:
        text, length = Text(), 0  # of the last line: a mark and its words are not parted
        for outcome in dict.fromkeys([*(phase.value for phase in Phase), *self._outcomes.values(), MISSING]):
            mark = Text(f"{_LETTERS[outcome]} ") if self._letters else Text("█ ", style=_COLORS[outcome])
            mark.append(outcome.replace("_", " "))
            if length + len(mark) > self._console.width:
                text, length = text.append("\n"), 0
            text.append_text(mark).append("  ")
            length += len(mark) + 2
        return text

    def _summary(self) -> Text:
        text = Text(f"{self._done} of {self._todo} runs" if self._todo else "0 runs so far")
        if self._failed:
            text.append(f", {self._failed} failed", style="bold red")
        if self._done:
            rate = self._done / (time.monotonic() - self._started) * 60
            text.append(f", {rate:,.0f} a minute" if rate >= 10 else f", {rate:.2g} a minute")
            text.append(f", {self._outlook()}")
        if self._waiting:
            text.append(f", {len(self._waiting)} of them with {', '.join(sorted(set(self._waiting.values())))}")
        return text

    def _outlook(self) -> str:
        """What is left, from the time that the finished runs took."""
        if self._done == self._todo:
            return "none left"
        if not self._work_done:  # all of them failed at once
            return f"{self._todo - self._done} left"
        seconds = (self._work - self._work_done) / self._work_done * (time.monotonic() - self._started)
        return f"{self._todo - self._done} left, about {duration(seconds)}"


def duration(seconds: float) -> str:
    """In words, to two places.

    >>> duration(4000), duration(95), duration(5)
    ('1 h 6 min', '1 min 35 s', '5 s')
    """
    whole = round(seconds)
    if whole >= 86400:
        return f"{whole // 86400} d {whole % 86400 // 3600} h"
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def _point(plan: Plan, place: int) -> str:
    """The fields of a cell in short, without the seed if there is only one."""
    fields: dict[str, object] = {}
    for axis, index in zip(plan.axes, plan.indices(place), strict=True):
        if len(axis) > 1 or axis.fields != (SEED,):
            fields |= axis.at(index)
    return _in_short(fields)


def _in_short(fields: Mapping[str, object]) -> str:
    return ", ".join(f"{short_field(path)} {short_value(path, value)}" for path, value in said(fields).items())

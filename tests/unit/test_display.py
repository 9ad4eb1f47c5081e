"""What a log says while a sweep runs."""

from types import SimpleNamespace

import pytest
from rich.console import Console

import grokscope as gs
from grokscope import notes
from grokscope.sweeps import display
from grokscope.sweeps.display import SweepDisplay
from grokscope.sweeps.messages import Expected, Failed, Finished, Started, StillWaiting, Waiting

PLAN = gs.Plan.over({"task.corruption": [0, 0.1, 0.2, 0.3, 0.4]}).with_seeds(20)


class Clock:
    """A time that only the test moves on."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(display, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def shown() -> SweepDisplay:
    made = SweepDisplay(PLAN, list(PLAN.specs()), [])
    made.update(Expected(tuple(range(PLAN.size))))
    return made


def finish(sweep: SweepDisplay, index: int) -> None:
    sweep.update(Started(index))
    sweep.update(Finished(index, gs.Phase.CONFUSION, 1.0))


def test_a_log_has_a_line_for_every_run_at_first(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with shown() as sweep:
        for index in range(3):
            clock.now += 10
            finish(sweep, index)
    lines = capsys.readouterr().err.splitlines()
    first = next(PLAN.specs())
    assert lines[0] == (f"1 of 100: {first.run_id} corruption 0, seed 0: Confusion (1.0 s); 99 left, about 16 min 30 s")
    assert [line[:8] for line in lines] == ["1 of 100", "2 of 100", "3 of 100"]


def test_a_long_sweep_has_a_few_lines_a_minute(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    clock.now = 1000.0
    with shown() as sweep:
        for index in range(PLAN.size - 1):
            clock.now += 2  # 30 runs a minute
            finish(sweep, index)
        clock.now += 1
        sweep.update(Started(PLAN.size - 1))
        sweep.update(Failed(PLAN.size - 1, "no such luck"))
    lines = capsys.readouterr().err.splitlines()
    in_the_first_minute, later = lines[:29], lines[29:]
    assert all(line.startswith(f"{i} of 100: ") for i, line in enumerate(in_the_first_minute, start=1))
    assert [int(line.split()[0]) for line in later] == [37, 45, 53, 61, 69, 77, 85, 93, 100]
    assert "FAILED: no such luck" in later[-1]
    assert later[-1].endswith("; none left")


def test_the_last_line_says_how_far_it_came(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with shown() as sweep:
        clock.now = 100.0
        finish(sweep, 0)
        clock.now = 101.0
        finish(sweep, 1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "2 of 100 runs, 1.2 a minute, 98 left, about 1 h 22 min"


def test_nothing_is_said_of_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with shown():
        pass
    assert capsys.readouterr().err == ""


def test_who_is_waited_for_is_said(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with shown() as sweep:
        sweep.update(Waiting(0, "process 4711"))
        sweep.update(StillWaiting(("process 4711",), 1, 20.0))
        assert sweep._summary().plain == "0 of 100 runs, 1 of them with process 4711"  # as a terminal shows it
        clock.now = 30.0
        finish(sweep, 0)
        assert "4711" not in sweep._summary().plain
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{next(PLAN.specs()).run_id} is being trained by process 4711: waiting for it."
    assert lines[1].startswith("Waiting for process 4711, with 1 run, for 20 s now.")


@pytest.mark.parametrize("terminal", [{"TERM": "xterm"}, {"TERM": "linux"}, {"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_where_colours_are_few_phases_are_letters(terminal: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "FORCE_COLOR": "1", **terminal}.items():
        monkeypatch.setenv(name, value)
    if terminal.get("TERM") == "dumb":
        monkeypatch.delenv("FORCE_COLOR")
    plan = gs.Plan.over({"task.data_fraction": [0.1 * k for k in range(1, 9)], "task.corruption": [0, 0.3]})
    sweep = SweepDisplay(plan, list(plan.specs()), [])
    sweep.update(Expected(tuple(range(plan.size))))
    for index, phase in enumerate(gs.Phase):
        sweep.update(Finished(index, phase, 1.0))
    sweep.update(Failed(6, "on purpose"))
    sweep.update(Started(7))
    console = Console(width=100)
    with console.capture() as captured:
        console.print(sweep._render())
    lines = [line.strip() for line in captured.get().splitlines()]
    assert "C P F M L N X *" in lines
    assert ". . . . . . . ." in lines
    assert "▀" not in captured.get()
    assert "L forgetting" in captured.get()


@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_legend_breaks_between_its_entries(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    lines = shown()._legend().plain.splitlines()
    assert all(len(line.rstrip()) <= width for line in lines)
    assert len(lines) > 1
    entries = [entry.split(" ", 1) for line in lines for entry in line.split("  ") if entry]
    assert [words for _, words in entries] == [*(phase.value.replace("_", " ") for phase in gs.Phase), "missing"]


def test_a_dumb_terminal_gets_lines_since_nothing_there_can_be_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert notes.shows_bars()
    monkeypatch.setenv("TERM", "dumb")
    assert not notes.shows_bars()

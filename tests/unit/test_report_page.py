"""The report: made from what is committed, with every figure and every claim once."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.cause import Superseded
from grokscope.experiments.claim import Check, CheckResult, Claim, Verdict
from grokscope.experiments.record import Entry, Remembered, read_record
from grokscope.experiments.report_page import Compute, Shown, read_gallery, report
from grokscope.experiments.sections import SECTIONS
from grokscope.experiments.strips import strip
from grokscope.experiments.summary import by_blindness, by_size, size_of, summary, superseded_words
from grokscope.spec import RunSpec

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "report.md").read_text()


def test_the_committed_report_is_made_from_what_is_committed() -> None:
    projected = json.loads((ROOT / "benchmarks" / "cluster.json").read_text())["paper"]
    compute = Compute(projected["runs"], projected["core_hours"])
    record = read_record(DOCS / "claims.json", CLAIMS)
    assert report(record.values(), read_gallery(DOCS / "gallery"), compute) == PAGE, "run: make pages"


def test_every_figure_has_its_section() -> None:
    named = [name for section in SECTIONS for name in section.figures]
    assert sorted(named) == sorted(set(EXPERIMENTS) - {"fig03", "fig07"})  # their halves are there


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_every_claim_is_told_once(claim_id: str) -> None:
    assert PAGE.count(f"\n**{claim_id}: ") == 1


def entry(claim_id: str, value: float, scale: str = "paper", seeds: int = 1, seen: str = "") -> Entry:
    check = Check("share", lambda result: 0.0, low=0.4, of=RunSpec())
    claim = Claim(claim_id, "Section 2", "It is so.", (check,), seen_before=seen)
    return Entry(claim, scale, seeds, (CheckResult(check, (value,) * seeds),))


def test_the_summary_says_how_much_is_behind_what_holds() -> None:
    entries = [
        entry("a", 0.5, seeds=3),
        entry("b", 0.5, seen="Half of it."),
        entry("c", 0.5, "quick"),
        entry("d", 0.3),
        replace(entry("e", 0.5), results=()),
        replace(entry("f", 0.5), grid=(9, 10)),
    ]
    assert summary(entries) == [
        "The paper's: 6 claims (holds: 4, fails: 1, not run: 1).",
        "Behind the 4 that hold: 1 at the paper's size with 3 or more seeds, 1 at the paper's size with 1 seed, "
        "1 at the paper's size on a coarser grid, 1 at a reduced scale; not blind: 1.",
    ]
    assert by_size(entries)[1:] == [["holds", "", "1", "1", "1", "1"], ["fails", "", "", "1", "", ""]]
    assert size_of(replace(entries[0], claim=CLAIMS["descent-settles-with-the-rule"])) == "at a reduced scale"
    assert by_blindness(entries)[1] == ["holds", "3", "1"]
    assert summary([]) == []


def superseded(older: Entry, newer: str) -> Entry:
    return replace(older, claim=replace(older.claim, superseded=Superseded((newer,), "2026-11-19", "It was vague.")))


def test_the_summary_says_how_superseded_claims_and_their_successors_fared() -> None:
    entries = [
        superseded(entry("a", 0.3), "b"),  # failed, and its successor holds
        entry("b", 0.5),
        superseded(entry("c", 0.5), "d"),  # held, and its successor fails
        entry("d", 0.3),
        superseded(entry("e", 0.5), "f"),  # held, and its successor was not run
        replace(entry("f", 0.5), results=()),
    ]
    assert superseded_words(entries) == (
        "Of 3 superseded claims 1 had not held; of the 1 in their places 1 hold. The other 2 had held; of the 1 in "
        "their places 1 do not."
    )
    assert superseded_words([entries[1]]) == ""


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.39, 0.4, 0.41, 7.0])
def test_a_strip_shows_on_which_side_of_a_bound_a_value_is(value: float) -> None:
    check = Check("share", lambda: 0.0, low=0.4)
    line = strip(CheckResult(check, (value,)))
    assert len(line) == 33
    assert ("●" in line) == check.allows(value)
    if "[" in line:
        assert (line.index("[") < line.index("●")) if value > 0.4 else (line.index("○") < line.index("["))


def test_a_strip_of_what_is_remembered_shows_the_deviation() -> None:
    line = strip(Remembered(Check("share", lambda: 0.0, low=0.4, high=0.9), 0.6, 0.1, 3, Verdict.HOLDS))
    assert line.count("●") == 1
    left, right = line.split("●")
    assert abs(left.count("─") - right.count("─")) <= 1
    assert left.count("─") > 1
    assert strip(CheckResult(Check("share", lambda: 0.0), (float("nan"),))) == ""


def test_seeds_with_nothing_to_measure_do_not_hide_the_others() -> None:
    check = Check("share", lambda: 0.0, low=0.4)
    some = CheckResult(check, (0.5, float("nan"), 0.25))
    assert some.text == "share 0.5, 0.25 in 2 of 3 seeds (≥ 0.4: inconclusive)"
    assert (strip(some).count("●"), strip(some).count("○")) == (1, 1)
    none = CheckResult(check, (float("nan"),))
    assert none.text == "share had nothing to measure (≥ 0.4: inconclusive)"


def test_a_figure_on_a_coarser_grid_is_of_the_papers_size_and_says_so() -> None:
    sweeps = ("fig3b-9x10: 222 runs in 360 cells, of which 138 are inferred from those around",)
    coarse = Shown("grokscope figure fig03b --scale paper --grid 9x10 --refine", sweeps)
    assert (coarse.full, coarse.coarse) == (True, True)
    assert coarse.remarks == ["on a coarser grid than the paper's", *sweeps]
    quick = Shown("grokscope figure fig03b --scale quick --grid 9x10", ())
    assert (quick.full, quick.coarse, quick.remarks) == (False, False, ["not at the paper's size"])
    paper = Shown("grokscope figure fig03b --scale paper", ())
    assert (paper.full, paper.coarse, paper.remarks) == (True, False, [])

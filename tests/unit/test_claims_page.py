"""The record of what was measured, and how it is renewed."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grokscope.errors import GrokscopeError
from grokscope.experiments.catalogue import CLAIMS
from grokscope.experiments.cause import Superseded
from grokscope.experiments.claim import Check, CheckResult, Claim, Finding, Verdict
from grokscope.experiments.claims_page import page
from grokscope.experiments.record import Entry, Remembered, read_record, record_text, renewed
from grokscope.experiments.scale import PAPER, QUICK, Scale, scales_of

DOCS = Path(__file__).parents[2] / "docs"
CLAIM = Claim("found", "Section 2", "It is found.", (Check("share", lambda: 0.5, low=0.4),))


def finding(value: float | None, scale: Scale = PAPER, seeds: int = 1) -> Finding:
    measured = () if value is None else (CheckResult(CLAIM.checks[0], (value,) * seeds),)
    return Finding(CLAIM, scale, measured, seeds)


@pytest.mark.parametrize(
    ("known", "new", "kept"),
    [
        (finding(0.5, QUICK), finding(0.3, PAPER), 0.3),
        (finding(0.5, PAPER), finding(0.3, QUICK), 0.5),
        (finding(0.5), finding(0.3), 0.3),  # as good, and newer
        (finding(0.5, seeds=3), finding(0.3, seeds=1), 0.5),
        (finding(0.5, QUICK), finding(None), 0.5),
        (finding(None), finding(0.3, QUICK), 0.3),
    ],
)
def test_an_entry_is_renewed_by_one_that_is_as_good(known: Finding, new: Finding, kept: float) -> None:
    (entry,) = renewed({"found": Entry.of(known)}, [new])
    assert entry.results[0].values[0] == kept


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    entries = [
        Entry.of(finding(0.5, seeds=2)),
        replace(Entry.of(finding(0.3)), claim=replace(CLAIM, id="low")),
        replace(Entry.of(finding(None)), claim=replace(CLAIM, id="none")),
    ]
    claims = {name: replace(CLAIM, id=name) for name in ("found", "low", "none")} | {"found": CLAIM}
    path = tmp_path / "claims.json"
    path.write_text(record_text(entries))
    assert list(read_record(path, claims).values()) == entries
    assert list(read_record(path, {"found": CLAIM})) == ["found"]  # the other claims are no more
    assert read_record(tmp_path / "none.json", {}) == {}
    path.write_text('[{"id": "found"}]')
    with pytest.raises(GrokscopeError, match="not a record of claims"):
        read_record(path, {"found": CLAIM})


def test_a_record_keeps_the_grid_of_diagrams_and_the_finer_one_wins(tmp_path: Path) -> None:
    claim = CLAIMS["dropout-confusion"]
    coarse = scales_of("paper", grid="9x10")[0]
    found = {
        scale: Finding(claim, scale, tuple(CheckResult(check, (0.5,), check.cell(scale)) for check in claim.checks), 1)
        for scale in (PAPER, coarse)
    }
    entry = Entry.of(found[coarse])
    assert (entry.grid, entry.size, entry.measured_at) == ((9, 10), "paper on 9 × 10 cells", coarse)
    path = tmp_path / "claims.json"
    path.write_text(record_text([entry]))
    assert read_record(path, CLAIMS) == {claim.id: entry}
    assert [each.grid for each in renewed({claim.id: entry}, [found[PAPER]])] == [None]
    assert [each.grid for each in renewed({claim.id: Entry.of(found[PAPER])}, [found[coarse]])] == [None]
    networks = Finding(CLAIMS["two-peaks"], coarse, (), 1)
    assert Entry.of(networks).grid is None, "it has no diagram"


def test_a_record_keeps_that_there_was_nothing_to_measure(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    path.write_text(record_text([Entry.of(finding(math.nan))]))
    entry = read_record(path, {"found": CLAIM})["found"]
    assert math.isnan(entry.results[0].mean)
    assert entry.verdict is Verdict.INCONCLUSIVE


def test_numbers_that_were_measured_for_other_checks_are_no_record_of_a_claim(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    path.write_text(record_text([old_entry("share 0.5 ± 0.1 (≥ 0.4)")]))
    assert read_record(path, {"found": CLAIM})["found"].results[0].mean == 0.5
    for check in (replace(CLAIM.checks[0], low=0.3), replace(CLAIM.checks[0], what="part")):
        with pytest.raises(GrokscopeError, match="was not measured for the check"):
            read_record(path, {"found": replace(CLAIM, checks=(check,))})


def old_entry(line: str, seeds: int = 3) -> Entry:
    """As entries were when the values of the seeds were not kept."""
    mean, spread = (float(word) for word in re.findall(r"-?[\d.]+", line)[:2])
    said = Verdict.FAILS if "fails" in line else Verdict.HOLDS
    return Entry(CLAIM, "paper", seeds, (Remembered(CLAIM.checks[0], mean, spread, seeds, said),))


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=6), st.floats(-10, 10), st.floats(0, 10))
def test_what_is_said_of_seeds_from_their_mean_and_deviation_is_true(
    values: list[float], low: float, width: float
) -> None:
    check = Check("number", lambda: 0.0, low, low + width)
    exact = CheckResult(check, tuple(values))
    known = Remembered(Check("", lambda: 0.0), exact.mean, exact.spread, len(values), Verdict.HOLDS).under(check)
    assume(min(abs(value - bound) for value in values for bound in (check.low, check.high)) > 1e-9)
    assert known.verdict in (exact.verdict, Verdict.INCONCLUSIVE)


def test_a_successor_that_asks_for_the_same_numbers_is_judged_by_them() -> None:
    superseded = Superseded(("later",), "2026-11-17", "The bound was too high.")
    older = Claim("earlier", "", "", (Check("share", lambda: 0.0, low=0.9),), superseded=superseded)
    later = Claim("later", "", "", (Check("share", lambda: 0.0, low=0.4),), stated="2026-11-17")
    other = Claim("later", "", "", (Check("other share", lambda: 0.0, low=0.4),), stated="2026-11-17")
    record = {"earlier": Entry(older, "paper", 1, (CheckResult(older.checks[0], (0.5,)),))}
    assert (record["earlier"].verdict, record["earlier"].found) == (Verdict.SUPERSEDED, Verdict.FAILS)
    (entry,) = renewed(record, [Finding(later, QUICK, (), 1)])
    assert (entry.verdict, entry.scale, entry.measured) == (Verdict.HOLDS, "paper", ("share 0.5 (≥ 0.4)",))
    (entry,) = renewed(record, [Finding(other, QUICK, (), 1)])
    assert entry.verdict is Verdict.NOT_RUN


def test_every_claim_that_fails_here_has_a_cause() -> None:
    for entry in read_record(DOCS / "claims.json", CLAIMS).values():
        if entry.verdict in (Verdict.FAILS, Verdict.INCONCLUSIVE):
            assert entry.claim.cause, entry.claim.id


def test_what_took_the_place_of_a_claim_is_there_and_was_stated_then() -> None:
    for claim in CLAIMS.values():
        for name in claim.superseded.by if claim.superseded else ():
            assert claim.superseded
            assert CLAIMS[name].stated == claim.superseded.on
            assert not CLAIMS[name].superseded


def test_the_committed_page_is_made_from_the_committed_record() -> None:
    record = read_record(DOCS / "claims.json", CLAIMS)
    assert list(record) == list(CLAIMS)
    assert page(record.values()) == (DOCS / "claims.md").read_text()


def test_a_claim_that_was_measured_has_a_line_for_each_check() -> None:
    for entry in read_record(DOCS / "claims.json", CLAIMS).values():
        assert (len(entry.measured) > 0) == (entry.found is not Verdict.NOT_RUN)

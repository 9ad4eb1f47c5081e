"""The record of what was measured, and how it is renewed."""

from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.errors import GrokscopeError
from grokscope.experiments.catalogue import CLAIMS
from grokscope.experiments.claim import Check, CheckResult, Claim, Finding, Verdict
from grokscope.experiments.claims_page import Entry, page, read_record, record_text, renewed
from grokscope.experiments.scale import PAPER, QUICK, Scale

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
    assert entry.values[0][0] == kept


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    entries = [
        Entry.of(finding(0.5, seeds=2)),
        replace(Entry.of(finding(float("nan"))), claim=replace(CLAIM, id="nan")),
    ]
    path = tmp_path / "claims.json"
    path.write_text(record_text(entries))
    assert list(read_record(path, {"found": CLAIM, "nan": replace(CLAIM, id="nan")}).values()) == entries
    assert list(read_record(path, {"found": CLAIM})) == ["found"]  # the other claim is no more
    assert read_record(tmp_path / "none.json", {}) == {}
    path.write_text('[{"id": "found"}]')
    with pytest.raises(GrokscopeError, match="not a record of claims"):
        read_record(path, {"found": CLAIM})


def test_the_committed_page_is_made_from_the_committed_record() -> None:
    record = read_record(DOCS / "claims.json", CLAIMS)
    assert list(record) == list(CLAIMS)
    assert page(record.values()) == (DOCS / "claims.md").read_text()


def test_a_claim_that_was_measured_has_a_line_for_each_check() -> None:
    for entry in read_record(DOCS / "claims.json", CLAIMS).values():
        assert (len(entry.measured) > 0) == (entry.verdict is not Verdict.NOT_RUN)

"""The verdicts on claims: for programs, for readers, and for notebooks.

findings = gs.claims(["fig06"])
findings.counts
findings.to_pandas()
"""

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from grokscope.errors import GrokscopeError
from grokscope.experiments.claim import Finding, Verdict, count_verdicts
from grokscope.experiments.claims_page import page
from grokscope.experiments.record import Entry
from grokscope.experiments.tables import from_rows
from grokscope.outputs import write_text
from grokscope.tables import data_frame

LEDGER_ENDINGS = (".md", ".json")


@dataclass(frozen=True)
class Findings(Sequence[Finding]):
    """The verdicts on some claims. A notebook shows them as a table."""

    findings: tuple[Finding, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> "Findings": ...
    def __getitem__(self, index: int | slice) -> "Finding | Findings":
        return Findings(self.findings[index]) if isinstance(index, slice) else self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        return f"<Findings: {', '.join(f'{finding.claim.id} {finding.verdict}' for finding in self) or 'none'}>"

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many claims have each verdict."""
        return count_verdicts(self.findings)

    def to_dict(self) -> dict[str, object]:
        """Everything, for JSON."""
        counts = {verdict.value: count for verdict, count in self.counts.items()}
        return {"verdicts": counts, "claims": [finding.to_dict() for finding in self]}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1, ensure_ascii=False)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each seed of each check; a claim that was not run has one row."""
        rows: list[tuple[object, ...]] = []
        for finding in self:
            head = finding.claim.id, finding.claim.paper, finding.claim.statement, finding.scale.name
            if not finding.measured:
                rows.append((*head, "", None, None, None, None, finding.verdict.value))
            for result in finding.measured:
                check = result.check
                rows += [
                    (*head, check.what, check.low, check.high, seed, value, finding.verdict.value)
                    for seed, value in enumerate(result.values)
                ]
        names = ("claim", "paper", "statement", "scale", "check", "low", "high", "seed", "value", "verdict")
        return data_frame(from_rows(names, rows))

    def to_markdown(self) -> str:
        """A page for readers: the count, a table, and below it what was seen where a claim does not hold."""
        return page(map(Entry.of, self))

    def save(self, path: Path | str) -> Path:
        """Write the page (.md) or everything (.json); the absolute path."""
        path = Path(path)
        check_ledger_path(path)
        return write_text(path, f"{self.to_json()}\n" if path.suffix == ".json" else self.to_markdown())

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{cell}</td>" for cell in (statement, paper, measured, verdict)) + "</tr>"
            for statement, paper, measured, verdict in map(_html_cells, self)
        )
        heads = "".join(f"<th>{head}</th>" for head in ("claim", "paper", "measured", "verdict"))
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items() if count)
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{counts}</p>"


def check_ledger_path(path: Path) -> None:
    """Refuse a path whose ending names no format, before anything is run for it."""
    if path.suffix not in LEDGER_ENDINGS:
        raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .md or .json")


def _html_cells(finding: Finding) -> tuple[str, str, str, str]:
    claim = finding.claim
    measured = "<br>".join(html.escape(each.text) for each in finding.measured) or "–"
    statement = f"<b>{html.escape(claim.id)}</b><br>{html.escape(claim.statement)}"
    return statement, html.escape(claim.paper), measured, finding.verdict.value

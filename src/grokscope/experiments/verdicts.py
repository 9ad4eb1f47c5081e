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
from grokscope.experiments.tables import from_rows
from grokscope.outputs import write_text
from grokscope.tables import data_frame

_NOT_THE_PAPERS = "ours", "beyond the paper"
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
        return _page(self)

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


def _page(findings: Findings) -> str:
    ours = [finding for finding in findings if finding.claim.paper.startswith(_NOT_THE_PAPERS)]
    papers = [finding for finding in findings if finding not in ours]
    lines = [
        "# Claims of the paper, checked",
        "",
        "Sentences of the paper that can be checked with a number. Bounds stand in parentheses. They were fixed before "
        "measuring and are never moved; exceptions are listed under Not blind. With several seeds a claim holds if "
        "every seed lies within its bounds, fails if none does, and is inconclusive if they disagree; ± is the "
        "standard deviation over seeds.",
        "",
        "Scales: paper, the paper's networks and grids; quick, its two-layer networks with one seed, and smaller "
        "networks in coarse diagrams (p = 59, N = 300). Transformers and deep MLPs are smaller at the quick scale "
        "everywhere (p = 47, d = 64 or N = 160, 2.5 times the weight decay). The quick scale was chosen after trials: "
        "with p = 47 the claims on weight decay in Figure 3 failed, because weight decay 15 already forgets there. "
        "Since then the diagrams of two-layer networks have p = 59. Of MNIST's 60,000 images the quick scale has "
        "6,000.",
        "",
        f"The paper's: {_count(papers)}. Ours, about the paper or beyond it: {_count(ours)}.",
        "",
        "| claim | paper | measured | scale, seeds | verdict |",
        "|---|---|---|---|---|",
    ]
    for finding in findings:
        claim = finding.claim
        measured = "<br>".join(each.text for each in finding.measured) or "–"
        statement = f"**{claim.id}**: {claim.statement}"
        cells = statement, claim.paper, measured, f"{finding.scale.name}, {finding.seeds}", finding.verdict
        # |γ| is no end of a cell.
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    noted = [finding for finding in findings if finding.claim.note]
    if noted:
        lines += ["", "## Notes", ""]
        lines += [f"- **{finding.claim.id}** ({finding.verdict}): {finding.claim.note}" for finding in noted]
    if known := [finding.claim for finding in findings if finding.claim.seen_before]:
        lines += [
            "",
            "## Not blind",
            "",
            "What was known when bounds, or settings that the paper leaves open, were set:",
        ]
        lines += ["", *(f"- **{claim.id}**: {claim.seen_before}" for claim in known)]
    if open_ones := [finding.claim.id for finding in findings if finding.verdict is Verdict.NOT_RUN]:
        lines += ["", f"Not run: {', '.join(open_ones)}."]
    return "\n".join(lines) + "\n"


def _count(findings: Sequence[Finding]) -> str:
    counts = ", ".join(f"{verdict}: {count}" for verdict, count in count_verdicts(findings).items() if count)
    return f"{len(findings)} claims ({counts})"

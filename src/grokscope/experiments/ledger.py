"""The ledger of claims as a page and as JSON."""

from collections.abc import Sequence

from grokscope.experiments.claim import Finding, Verdict, count_verdicts
from grokscope.experiments.foreknowledge import SEEN_BEFORE

_NOT_THE_PAPERS = "ours", "beyond the paper"


def ledger_json(findings: Sequence[Finding]) -> dict[str, object]:
    """Everything, for programs."""
    counts = {verdict.value: count for verdict, count in count_verdicts(findings).items()}
    claims = [finding.to_dict() | {"seen_before": SEEN_BEFORE.get(finding.claim.id, "")} for finding in findings]
    return {"verdicts": counts, "claims": claims}


def ledger_markdown(findings: Sequence[Finding]) -> str:
    """A page for readers: the count, a table, and below it what was seen where a claim does not hold."""
    ours = [finding for finding in findings if finding.claim.paper.startswith(_NOT_THE_PAPERS)]
    papers = [finding for finding in findings if finding not in ours]
    lines = [
        "# Claims of the paper, checked",
        "",
        "Sentences of the paper that can be checked with a number, from all of its sections but Appendix H, which is "
        "about images. The bounds in parentheses were written down before the measurement, but for the claims below "
        "under Not blind, and are not moved after it. With several seeds a claim holds if every seed lies within its "
        "bounds, fails if none does, and is inconclusive if they disagree; ± is the standard deviation over seeds.",
        "",
        "Scales: paper, the paper's networks and grids; quick, its two-layer networks with one seed, and smaller "
        "networks in coarse diagrams (p = 59, N = 300). Transformers and deep MLPs are smaller at the quick scale "
        "everywhere (p = 47, d = 64 or N = 160, 2.5 times the weight decay). It was itself chosen after trials: with "
        "p = 47 the claims on weight decay in Figure 3 failed, because weight decay 15 forgets there already, and the "
        "diagrams of two-layer networks have had p = 59 since.",
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
    if known := [finding.claim.id for finding in findings if finding.claim.id in SEEN_BEFORE]:
        lines += [
            "",
            "## Not blind",
            "",
            "What had been seen when bounds, or settings the paper leaves open, were fixed:",
        ]
        lines += ["", *(f"- **{name}**: {SEEN_BEFORE[name]}" for name in known)]
    if open_ones := [finding.claim.id for finding in findings if finding.verdict is Verdict.NOT_RUN]:
        lines += ["", f"Not run: {', '.join(open_ones)}."]
    return "\n".join(lines) + "\n"


def _count(findings: Sequence[Finding]) -> str:
    counts = ", ".join(f"{verdict}: {count}" for verdict, count in count_verdicts(findings).items() if count)
    return f"{len(findings)} claims ({counts})"

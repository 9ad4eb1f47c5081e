"""The page of all claims, docs/claims.md.

write_text(Path("docs/claims.md"), page(read_record(Path("docs/claims.json"), CLAIMS).values()))
"""

from collections.abc import Iterable, Sequence

from grokscope.experiments.cause import Cause, Reason
from grokscope.experiments.claim import Claim, Verdict
from grokscope.experiments.record import Entry

_NOT_THE_PAPERS = "ours", "beyond the paper"
_INTRODUCTION = (
    "Sentences of the paper that can be checked with a number. Bounds stand in parentheses. They were fixed before "
    "measuring and are never moved; exceptions are listed under Not blind. With several seeds a claim holds if every "
    "seed lies within its bounds, fails if none does, and is inconclusive if they disagree; ± is the standard "
    "deviation over seeds. Where shares of a diagram are counted and one cell more or less would change the verdict, "
    "the claim is undecided at this resolution. A claim that was read wrongly, or could hardly fail, is superseded by "
    "a later one and keeps its bounds and its numbers. Some hold as corrected: with an erratum of the paper.\n\n"
    "Scales: paper, the paper's networks and grids; quick, its two-layer networks with one seed, and smaller networks "
    "in coarse diagrams (p = 59, N = 300). Transformers and deep MLPs are smaller at the quick scale everywhere "
    "(p = 47, d = 64 or N = 160, 2.5 times the weight decay). The quick scale was chosen after trials: with p = 47 the "
    "claims on weight decay in Figure 3 failed, because weight decay 15 already forgets there. Since then the "
    "diagrams of two-layer networks have p = 59. Of MNIST's 60,000 images the quick scale has 6,000."
)


def is_the_papers(claim: Claim) -> bool:
    """Whether the paper says it, and not we about the paper or beyond it."""
    return not claim.paper.startswith(_NOT_THE_PAPERS)


def page(all_entries: Iterable[Entry]) -> str:
    """The page: the count, a table, and below it what was seen where a claim does not hold, and why."""
    entries = list(all_entries)
    papers = [entry for entry in entries if is_the_papers(entry.claim)]
    ours = [entry for entry in entries if not is_the_papers(entry.claim)]
    lines = [
        "# Claims of the paper, checked",
        "",
        _INTRODUCTION,
        "",
        f"The paper's: {counted(papers)}. Ours, about the paper or beyond it: {counted(ours)}.",
        "",
        "| claim | paper | measured | scale, seeds | verdict |",
        "|---|---|---|---|---|",
        *map(_row, entries),
        *_notes(entries),
        *_not_blind([entry.claim for entry in entries]),
    ]
    if open_ones := [entry.claim.id for entry in entries if entry.verdict is Verdict.NOT_RUN]:
        lines += ["", f"Not run: {', '.join(open_ones)}."]
    return "\n".join(lines) + "\n"


def counted(entries: Sequence[Entry]) -> str:
    """How many claims there are, and how many with each verdict."""
    numbers = {verdict: sum(entry.verdict is verdict for entry in entries) for verdict in Verdict}
    counts = ", ".join(f"{verdict}: {count}" for verdict, count in numbers.items() if count)
    return f"{len(entries)} claims ({counts})"


def verdict_words(entry: Entry) -> str:
    """The verdict; of a superseded claim also what was measured."""
    return f"{entry.verdict} ({entry.found})" if entry.verdict is Verdict.SUPERSEDED else str(entry.verdict)


def cause_of(entry: Entry) -> Cause | None:
    """Why a claim does not hold, where it was measured and does not."""
    if entry.verdict is Verdict.UNDECIDED:
        cell = max(each.cell for each in entry.results)
        return Cause(
            Reason.RESOLUTION,
            f"One cell is {cell:.2g} of what is counted, and one more or less would change the verdict.",
        )
    return entry.claim.cause if entry.verdict in (Verdict.FAILS, Verdict.INCONCLUSIVE) else None


def explanations(entry: Entry) -> list[str]:
    """What there is to say about a verdict: the cause, the erratum, the successor, and what was seen."""
    claim = entry.claim
    words = []
    if claim.superseded:
        words.append(f"Superseded {claim.superseded}")
    if claim.erratum:
        words.append(f"Erratum: {claim.erratum}")
    if cause := cause_of(entry):
        words.append(f"Cause: {cause}")
    if entry.verdict is Verdict.NOT_RUN:
        words.append("Its runs have not been done since it was stated.")
    if claim.note:
        words.append(claim.note)
    return words


def _row(entry: Entry) -> str:
    claim = entry.claim
    cells = (
        f"**{claim.id}**: {claim.statement}",
        claim.paper,
        "<br>".join(entry.measured) or "–",
        f"{entry.size}, {entry.seeds}",
        verdict_words(entry),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"  # |γ| is no end of a cell


def _notes(entries: Sequence[Entry]) -> list[str]:
    noted = [(entry, words) for entry in entries if (words := explanations(entry))]
    lines = [f"- **{entry.claim.id}** ({verdict_words(entry)}): {' '.join(words)}" for entry, words in noted]
    return ["", "## Notes", "", *lines] if lines else []


def _not_blind(claims: Sequence[Claim]) -> list[str]:
    """What was known before, each time with the claims that it is about: the same is often so of many."""
    known: dict[str, list[str]] = {}
    for claim in claims:
        if claim.seen_before:
            known.setdefault(claim.seen_before, []).append(claim.id)
    if not known:
        return []
    lines = [f"- {words} ({', '.join(names)})" for words, names in known.items()]
    introduction = "What was known when bounds, or settings that the paper leaves open, were set, and of which claims:"
    return ["", "## Not blind", "", introduction, "", *lines]

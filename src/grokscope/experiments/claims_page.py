"""The page of all claims, docs/claims.md, and the record that it is made from, docs/claims.json.

    entries = renewed(read_record(Path("docs/claims.json")), findings)
    write_text(Path("docs/claims.md"), page(entries))

The runs behind the claims take days, and no store lives for ever. So what was measured is kept, and a claim is renewed
whenever a store, or a table of cells, has all that it needs at a scale that is as good.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grokscope.errors import GrokscopeError
from grokscope.experiments.claim import Claim, Finding, Verdict
from grokscope.experiments.scale import MIXED, PAPER, QUICK, TINY

_NOT_THE_PAPERS = "ours", "beyond the paper"
_BEST_FIRST = tuple(scale.name for scale in (PAPER, MIXED, QUICK, TINY))


@dataclass(frozen=True)
class Entry:
    """What the page says about a claim."""

    claim: Claim
    scale: str
    seeds: int
    verdict: Verdict
    measured: tuple[str, ...]  # a line for each check
    values: tuple[tuple[float | None, ...], ...] = ()  # of each check, one for each seed; of older entries unknown

    @classmethod
    def of(cls, finding: Finding) -> "Entry":
        """The entry of a finding."""
        checks = finding.to_dict()["checks"]
        assert isinstance(checks, list)
        return cls(
            finding.claim,
            finding.scale.name,
            finding.seeds,
            finding.verdict,
            tuple(each.text for each in finding.measured),
            tuple(tuple(check["values"]) for check in checks),
        )

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The smaller, the better: measured at all, the scale, the number of seeds."""
        return self.verdict is Verdict.NOT_RUN, _BEST_FIRST.index(self.scale), -self.seeds


def renewed(record: Mapping[str, Entry], findings: Iterable[Finding]) -> list[Entry]:
    """An entry for each finding: its own, unless the record has a better one."""
    entries = []
    for entry in map(Entry.of, findings):
        known = record.get(entry.claim.id, entry)
        entries.append(known if known.rank < entry.rank else entry)
    return entries


def read_record(path: Path, claims: Mapping[str, Claim]) -> dict[str, Entry]:
    """The entries of a record, by the ids of their claims; claims that are no more are left out."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {
            one["id"]: Entry(
                claims[one["id"]],
                one["scale"],
                one["seeds"],
                Verdict(one["verdict"]),
                tuple(one["measured"]),
                tuple(map(tuple, one["values"])),
            )
            for one in content
            if one["id"] in claims
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GrokscopeError(f"{path} is not a record of claims: {error}") from None


def record_text(entries: Iterable[Entry]) -> str:
    """A record of these entries, a line for each."""
    lines = (
        json.dumps(
            {
                "id": entry.claim.id,
                "scale": entry.scale,
                "seeds": entry.seeds,
                "verdict": entry.verdict.value,
                "measured": entry.measured,
                "values": entry.values,
            },
            ensure_ascii=False,
            allow_nan=False,
        )
        for entry in entries
    )
    return "[\n" + ",\n".join(lines) + "\n]\n"


def page(all_entries: Iterable[Entry]) -> str:
    """The page: the count, a table, and below it what was seen where a claim does not hold."""
    entries = list(all_entries)
    ours = [entry for entry in entries if entry.claim.paper.startswith(_NOT_THE_PAPERS)]
    papers = [entry for entry in entries if entry not in ours]
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
    for entry in entries:
        claim = entry.claim
        measured = "<br>".join(entry.measured) or "–"
        statement = f"**{claim.id}**: {claim.statement}"
        cells = statement, claim.paper, measured, f"{entry.scale}, {entry.seeds}", entry.verdict
        # |γ| is no end of a cell.
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    noted = [entry for entry in entries if entry.claim.note]
    if noted:
        lines += ["", "## Notes", ""]
        lines += [f"- **{entry.claim.id}** ({entry.verdict}): {entry.claim.note}" for entry in noted]
    if known := [entry.claim for entry in entries if entry.claim.seen_before]:
        lines += [
            "",
            "## Not blind",
            "",
            "What was known when bounds, or settings that the paper leaves open, were set:",
        ]
        lines += ["", *(f"- **{claim.id}**: {claim.seen_before}" for claim in known)]
    if open_ones := [entry.claim.id for entry in entries if entry.verdict is Verdict.NOT_RUN]:
        lines += ["", f"Not run: {', '.join(open_ones)}."]
    return "\n".join(lines) + "\n"


def _count(entries: Sequence[Entry]) -> str:
    numbers = {verdict: sum(entry.verdict is verdict for entry in entries) for verdict in Verdict}
    counts = ", ".join(f"{verdict}: {count}" for verdict, count in numbers.items() if count)
    return f"{len(entries)} claims ({counts})"

"""The reproducibility report, docs/report.md, made from the record of claims and the captions of the gallery.

write_text(Path("docs/report.md"), report(entries, read_gallery(Path("docs/gallery")), compute))
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grokscope.experiments.catalogue import EXPERIMENTS
from grokscope.experiments.claim import CheckResult, Verdict
from grokscope.experiments.claims_page import explanations, is_the_papers, verdict_words
from grokscope.experiments.record import Entry, Remembered
from grokscope.experiments.report_facts import ERRATA, SETTINGS
from grokscope.experiments.scale import PAPER
from grokscope.experiments.sections import BEYOND, SECTIONS, entries_of
from grokscope.experiments.strips import strip
from grokscope.experiments.summary import (
    by_blindness,
    by_part,
    by_part_in_detail,
    by_size,
    holding,
    in_force,
    reasons,
    summary,
    superseded_words,
)

_SMALLER = "not at the paper's size"


@dataclass(frozen=True)
class Shown:
    """What the gallery says about a figure: the command that made it, and its diagrams."""

    command: str
    sweeps: tuple[str, ...]  # "fig9: 356 runs in 969 cells, of which 613 are inferred from those around"

    @property
    def full(self) -> bool:
        """Whether its networks are the paper's, perhaps with fewer cells or seeds."""
        return f"--scale {PAPER.name}" in self.command

    @property
    def coarse(self) -> bool:
        """Whether its networks are the paper's on a coarser grid."""
        return self.full and "--grid" in self.command

    @property
    def remarks(self) -> list[str]:
        """What a reader should know: that it is smaller than the paper's, and how much of it was inferred."""
        smaller = ["on a coarser grid than the paper's"] if self.coarse else [] if self.full else [_SMALLER]
        return smaller + [sweep for sweep in self.sweeps if "of which 0 are" not in sweep]


@dataclass(frozen=True)
class Compute:
    """What everything at the paper's size takes, as it was last projected."""

    runs: int
    core_hours: float


def read_gallery(directory: Path) -> dict[str, Shown]:
    """What the gallery has, by the names of figures."""
    shown = {}
    for path in sorted(directory.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        command = text.rpartition("Made with: ")[2].strip()
        shown[path.stem] = Shown(command, tuple(re.findall(r"^Sweep (.*)$", text, re.MULTILINE)))
    return shown


def report(all_entries: Iterable[Entry], gallery: Mapping[str, Shown], compute: Compute) -> str:
    """The whole report."""
    entries = list(all_entries)
    parts = [(section, _entries(section.figures, entries)) for section in SECTIONS]
    lines = [
        "# Reproducibility report",
        "",
        *_summary(entries, gallery, compute),
        *_matrix([(section.title, found) for section, found in parts], entries),
        *_smaller(gallery, entries),
        *_settings(),
        "## Errata",
        "",
        "What contradicts itself, or has to be corrected for a claim to hold:",
        "",
        *(f"{number}. {erratum}" for number, erratum in enumerate(ERRATA, start=1)),
        "",
        "## Section by section",
        "",
        "Below each figure are its claims. A line shows a check: [ and ] are its bounds, ═ what they allow, ● a seed "
        "inside and ○ one outside. Of some checks only the mean and the standard deviation over seeds were kept: there "
        "the mark is the mean, and ─ reaches as far as the deviation. Numbers in full are in [the ledger](claims.md).",
        "",
    ]
    for section, found in parts:
        lines += [f"## {section.title}", ""]
        told: set[str] = set()
        for name in section.figures:
            mine = [entry for entry in entries_of(name, found) if entry.claim.id not in told]
            told |= {entry.claim.id for entry in mine}
            lines += _figure(name, gallery.get(name), mine)
    return "\n".join(lines).rstrip() + "\n"


def _entries(figures: Sequence[str], entries: Sequence[Entry]) -> list[Entry]:
    found = {entry.claim.id: entry for name in figures for entry in entries_of(name, entries)}
    return list(found.values())


def _summary(entries: Sequence[Entry], gallery: Mapping[str, Shown], compute: Compute) -> list[str]:
    lines = [
        "A reproduction of Doshi, Das, He and Gromov, [*To grok or not to grok*](https://arxiv.org/abs/2310.13061). "
        "This page is made by the program from what was measured (`make pages`).",
        "",
        "## Summary",
        "",
    ]
    for words in summary_words(entries, gallery, compute):
        topic, dot, rest = words.partition(".")
        lines += [f"**{topic}{dot}**{rest}", ""]
    return lines


def summary_words(entries: Sequence[Entry], gallery: Mapping[str, Shown], compute: Compute) -> list[str]:
    """The summary, a paragraph for each topic."""
    papers = [name for section in SECTIONS if section is not BEYOND for name in section.figures]
    full = [gallery[name] for name in papers if name in gallery and gallery[name].full]
    coarse = sum(shown.coarse for shown in full)
    coarser = f", {coarse} of them on coarser grids" if coarse else " and its grids"
    claims = sum(is_the_papers(entry.claim) for entry in in_force(entries))
    causes = reasons([entry for entry in entries if is_the_papers(entry.claim)])
    easy = _share(("fig01", "fig02", "fig04", "fig06", "fig17", "fig18", "fig19", "fig23"), entries)
    hard = _share(("fig07a", "fig07b", "fig12", "fig13", "fig14", "fig15"), entries)
    return [
        f"Scope. All figures and tables of the paper, and {claims} claims that check its statements with a number, "
        f"some of them under settings that it leaves open. Of {len(papers)} pictures (figures, the two halves of "
        f"Figures 3 and 7, tables, and one of the theory) {len(full)} are drawn at the paper's size: p = 97 and its "
        f"widths{coarser}, diagrams with one seed. The others are smaller, and named as such. {_run_cells(full)}",
        "Method. A statement is a claim with one or more checks, each a number with bounds. They were fixed before "
        "measuring, except where a claim is marked as not blind, and are never moved. Of a few claims a check was "
        "added, changed or taken out after a first result, which is said with each. A claim that was read wrongly, "
        "could hardly fail, or asked for more than the paper says stays, superseded by a later one. "
        f"{superseded_words(entries)} Settings that the paper leaves open come from the authors' code or are our "
        "choice; a table below says which. Runs were trained on several CPUs, and with kernels that differ in their "
        "rounding. The same run then differs in the third digit, and by more where training is chaotic, so that one "
        "run can have two numbers in two places.",
        f"Result. {' '.join(summary(entries))} Causes of the paper's claims that fail or are open: {causes}.",
        "What was easy. The two-layer network with full batches: nearly all its settings are published, and its "
        "phases, its neurons and its pruning come out with them. Of the paper's claims about Figures 1, 2, 4, 6, 17, "
        f"18, 19 and 23, {easy}.",
        "What was hard. Transformers and deep MLPs: the optimiser scheme of Figures 7 and 12 is not published, and "
        "neither are most of their weight decays, nor the learning rate of Figure 15. Of the paper's claims about "
        f"Figures 7 and 12 to 15, {hard}. With mini-batches networks go on from Inversion to memorising, so the "
        "number of steps decides what Figures 20 to 22 show. Figures 29 and 30 need networks of 5000 neurons, and have "
        "fewer here.",
        "Compute. Appendix B of the paper names 72 hours of an RTX 3090 for Figure 3, 60 hours of a seventh of an "
        "A100 for Figure 7, and 300 GPU hours for exploration and the diagrams of the appendix. Here everything "
        "runs on "
        f"CPU cores: all figures with all seeds at the paper's size were projected at {compute.core_hours:.0f} core "
        f"hours for {compute.runs:,} runs (docs/scaling.md). Diagrams are refined: only cells near a "
        "boundary are run, and the others inferred from their neighbours; each says how many.",
    ]


def _run_cells(shown: Iterable[Shown]) -> str:
    """How many cells of some diagrams were run, in words.

    >>> _run_cells([Shown("", ("fig9: 356 runs in 969 cells, of which 613 are inferred from those around",))])
    'Of 969 cells in their diagrams 356 were run (37 %), and the others inferred.'
    """
    sweeps = {sweep for each in shown for sweep in each.sweeps}
    found = [re.search(r" in (\d+) cells, of which (\d+) are inferred", sweep) for sweep in sweeps]
    cells, inferred = (sum(int(each[place]) for each in found if each) for place in (1, 2))
    if not cells:
        return ""
    run = cells - inferred
    return f"Of {cells} cells in their diagrams {run} were run ({100 * run / cells:.0f} %), and the others inferred."


def _share(figures: Sequence[str], entries: Sequence[Entry]) -> str:
    """How many of the paper's claims about some figures hold, and why not the others, in words."""
    found = [entry for entry in in_force(_entries(figures, entries)) if is_the_papers(entry.claim)]
    run = [entry for entry in found if entry.results]
    left = len(found) - len(run)
    words = f"{len(holding(run))} of the {len(run)} that were run hold"
    if causes := reasons(run):
        words += f" (the others: {causes})"
    return f"{words}; {left} have not been run" if left else words


def _matrix(parts: Sequence[tuple[str, Sequence[Entry]]], entries: Sequence[Entry]) -> list[str]:
    papers = [entry for entry in entries if is_the_papers(entry.claim)]
    return [
        "## Verdicts",
        "",
        "By the section whose figures show it, all claims:",
        "",
        *_table(by_part(parts)),
        "",
        "The same in two columns, hold or do not, with how many of them were stated blind, how many were measured "
        "with 3 or more seeds at the paper's size, and how many at a reduced scale or on a coarser grid:",
        "",
        *_table(by_part_in_detail(parts)),
        "",
        "The paper's claims by the networks that they were measured on. In diagrams of the paper's size about two "
        "thirds of the cells are inferred; a list below has the numbers:",
        "",
        *_table(by_size(papers)),
        "",
        "And by whether anything was known when the bounds, or settings that the paper leaves open, were set:",
        "",
        *_table(by_blindness(papers)),
        "",
    ]


def _smaller(gallery: Mapping[str, Shown], entries: Sequence[Entry]) -> list[str]:
    lines = ["## Not at the paper's size", ""]
    lines += [
        f"- **{name}** ({EXPERIMENTS[name].title}): `{gallery[name].command}`"
        for section in SECTIONS
        for name in section.figures
        if name in gallery and not gallery[name].full
    ]
    coarse = [name for section in SECTIONS for name in section.figures if name in gallery and gallery[name].coarse]
    if coarse:
        lines += ["", "The paper's networks on a coarser grid than its own:", ""]
        lines += [f"- **{name}** ({EXPERIMENTS[name].title}): `{gallery[name].command}`" for name in coarse]
    lines += [
        "",
        "Figure 32 is drawn from one seed of the paper's 40.",
        "",
        "Diagrams of which cells were inferred:",
        "",
    ]
    lines += [
        f"- **{name}**: {sweep}"
        for section in SECTIONS
        for name in section.figures
        for sweep in (gallery[name].sweeps if name in gallery else ())
        if "of which 0 are" not in sweep
    ]
    if missing := [entry.claim.id for entry in entries if entry.verdict is Verdict.NOT_RUN]:
        lines += ["", f"Claims whose runs have not been done: {', '.join(missing)}."]
    return [*lines, ""]


def _settings() -> list[str]:
    rows = [["where", "here", "source"], *map(list, SETTINGS)]
    words = "Where the settings come from. What others do to single networks is in [settings.md](settings.md)."
    return ["## Settings", "", words, "", *_table(rows), ""]


def _figure(name: str, shown: Shown | None, entries: Sequence[Entry]) -> list[str]:
    experiment = EXPERIMENTS[name]
    lines = [f"### {name}: {experiment.title}", ""]
    if shown:
        lines += [f"![{experiment.title}](gallery/{name}.png)", ""]
    lines += [experiment.caption, ""]
    if shown:
        words = "; ".join([f"`{shown.command}`", *shown.remarks])
        lines += [f"{words} · [settings and runs](gallery/{name}.txt)", ""]
    if failing := [entry.claim.id for entry in entries if entry.verdict is Verdict.FAILS]:
        lines += [f"Claims that fail: {', '.join(failing)}.", ""]
    if not entries:
        lines += ["No claims of its own.", ""]
    said: dict[str, str] = {}  # explanations, and the first claim with each
    for entry in entries:
        lines += _claim(entry, said)
    return lines


def _claim(entry: Entry, said: dict[str, str]) -> list[str]:
    claim = entry.claim
    blind = "[not blind](claims.md#not-blind)" if claim.seen_before else "blind"
    stated = f", stated {claim.stated}" if claim.stated else ""
    lines = [f"**{claim.id}: {verdict_words(entry)}.** {claim.statement} *({claim.paper})*", ""]
    if entry.results:
        lines += ["```text", *(_line(result) for result in entry.results), "```", ""]
    command = f"`grokscope claims --only {claim.id}{_flags(entry)}`"
    seeds = "1 seed" if entry.seeds == 1 else f"{entry.seeds} seeds"
    size = f"{entry.size}, {seeds}, " if entry.results else ""
    lines += [f"{size}{blind}{stated} · {command}{_runs(entry)}", ""]
    words = [_once(words, claim.id, said) for words in explanations(entry)]
    return [*lines, *([" ".join(words), ""] if words else [])]


def _once(words: str, claim_id: str, said: dict[str, str]) -> str:
    """An explanation; of a cause that stands already, where it stands.

    >>> said: dict[str, str] = {}
    >>> [_once("Cause: seeds. One of three differs.", name, said) for name in ("first", "second")]
    ['Cause: seeds. One of three differs.', 'Cause: as for first.']
    >>> [_once("A note.", name, said) for name in ("first", "second")]
    ['A note.', 'A note.']
    """
    first = said.setdefault(words, claim_id)
    return words if first == claim_id or not words.startswith("Cause: ") else f"Cause: as for {first}."


def _flags(entry: Entry) -> str:
    """The flags that repeat what was measured, or that would measure it at the paper's size."""
    scale = entry.measured_at if entry.results else PAPER
    needs = entry.claim.needs(scale)
    fewer = entry.results and scale.full and needs.networks and entry.seeds < needs.seeds
    refined = scale.full and needs.diagrams
    return f"{scale.flags()}{f' --seeds {entry.seeds}' if fewer else ''}{' --refine' if refined else ''}"


def _line(result: CheckResult | Remembered) -> str:
    """A check: its strip, what was measured, and in words what it is."""
    return f"{strip(result):<33}  {result.text}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    heading, *others = rows
    lines = [_row(heading), "|" + "---|" * len(heading)]
    return [*lines, *map(_row, others)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _runs(entry: Entry) -> str:
    """The runs behind a claim: ids of networks, and names of diagrams."""
    if not entry.results:
        return ""
    scale = replace(entry.measured_at, seeds=entry.seeds)
    needs = entry.claim.needs(scale)
    ids = [spec.run_id[:8] for spec in needs.specs(scale)]
    words = [f"runs {', '.join(ids)}"] if ids else []
    words += [f"diagram {plan.name}" for plan in needs.plans(entry.measured_at)]
    return f" · {' · '.join(words)}" if words else ""

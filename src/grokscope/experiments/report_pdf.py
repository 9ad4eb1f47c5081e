"""The report as a PDF: a summary with the matrix of verdicts, then each figure with its caption and its claims.

write_file(Path("report.pdf"), report_pdf(figures, entries))
"""

from collections.abc import Sequence
from dataclasses import dataclass

from grokscope.experiments.catalogue import EXPERIMENTS
from grokscope.experiments.claim import Verdict
from grokscope.experiments.claims_page import explanations, verdict_words
from grokscope.experiments.record import Entry
from grokscope.experiments.report_facts import ERRATA, SETTINGS
from grokscope.experiments.sections import SECTIONS, entries_of
from grokscope.experiments.strips import strip
from grokscope.experiments.summary import (
    COARSE,
    ONE,
    REDUCED,
    SEVERAL,
    UNTRAINED,
    Table,
    by_blindness,
    by_part,
    by_size,
    summary,
)
from grokscope.plots.pages import Pages
from grokscope.plots.palette import BLUE, GREEN, VERMILION

_GREY = "#666666"
_CLAIM, _CHECK = 48, 9  # points that a claim takes, without and for each of its checks
_COLORS = {
    Verdict.HOLDS: GREEN,
    Verdict.CORRECTED: GREEN,
    Verdict.FAILS: VERMILION,
    Verdict.INCONCLUSIVE: BLUE,
    Verdict.UNDECIDED: BLUE,
    Verdict.SUPERSEDED: _GREY,
    Verdict.NOT_RUN: _GREY,
}
_SHORT: dict[str, str] = {  # in headings of tables
    Verdict.CORRECTED: "corrected",
    Verdict.INCONCLUSIVE: "inconcl.",
    Verdict.UNDECIDED: "undecided",
    Verdict.SUPERSEDED: "supers.",
    UNTRAINED: "untrained",
    SEVERAL: "full size, 3+ seeds",
    ONE: "full size, 1 seed",
    COARSE: "coarser grid",
    REDUCED: "reduced",
}


@dataclass(frozen=True)
class FigurePage:
    """A figure as the report shows it."""

    name: str
    title: str
    caption: str
    command: str
    picture: bytes  # PNG


def report_pdf(figures: Sequence[FigurePage], entries: Sequence[Entry], words: Sequence[str] = ()) -> bytes:
    """The report; `words` are paragraphs of a summary, by default the counts alone."""
    pages = Pages()
    pages.heading("Reproducibility report", 20)
    pages.text("To grok or not to grok (Doshi, Das, He and Gromov), reproduced with grokscope", color=_GREY)
    pages.space(10)
    for paragraph in words or summary(entries):
        pages.text(paragraph, size=8.5)
        pages.space(4)
    _matrix(pages, entries)
    for figure in figures:
        pages.new_page()
        _figure(pages, figure, entries_of(figure.name, entries) if figure.name in EXPERIMENTS else entries)
    _facts(pages)
    return pages.pdf()


def _matrix(pages: Pages, entries: Sequence[Entry]) -> None:
    told: set[str] = set()
    parts = []
    for section in SECTIONS:
        names = {entry.claim.id for name in section.figures for entry in entries_of(name, entries)} - told
        told |= names
        parts.append((section.title, [entry for entry in entries if entry.claim.id in names]))
    for title, table in (
        ("Claims by section and verdict", by_part(parts)),
        ("By the networks that they were measured on, and by what was known before", _beside(entries)),
    ):
        pages.space(6)
        pages.text(title, bold=True)
        for line in _aligned(table):
            pages.text(line, size=6.5, mono=True)


def _beside(entries: Sequence[Entry]) -> Table:
    """Both splits in one table."""
    sizes, blindness = by_size(entries), by_blindness(entries)
    known = {row[0]: row[1:] for row in sizes}
    return [[row[0], *known.get(row[0], [""] * (len(sizes[0]) - 1)), *row[1:]] for row in blindness]


def _aligned(table: Table) -> list[str]:
    """The rows of a table in columns."""
    short = {str(long): word for long, word in _SHORT.items()}
    rows = [[short.get(cell, cell) if row == 0 else cell for cell in cells] for row, cells in enumerate(table)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _figure(pages: Pages, figure: FigurePage, entries: Sequence[Entry]) -> None:
    pages.heading(f"{figure.name}: {figure.title}")
    pages.picture(figure.picture)
    pages.text(figure.caption)
    pages.text(figure.command, size=7, color=_GREY)
    pages.space(8)
    for entry in entries:
        pages.need(_CLAIM + _CHECK * len(entry.results))
        pages.text(f"{entry.claim.id}: {verdict_words(entry)}", bold=True, color=_COLORS[entry.verdict])
        pages.text(f"{entry.claim.statement} ({entry.claim.paper})")
        for result in entry.results:
            pages.text(f"{strip(result):<33}  {result.text}", size=6.5, mono=True)
        about = "not blind" if entry.claim.seen_before else "blind"
        seeds = "1 seed" if entry.seeds == 1 else f"{entry.seeds} seeds"
        pages.text(f"{entry.scale}, {seeds}, {about}" if entry.results else about, size=7, color=_GREY)
        for each in explanations(entry):
            pages.text(each, size=7.5)
        pages.space(5)


def _facts(pages: Pages) -> None:
    pages.new_page()
    pages.heading("Settings")
    for setting in SETTINGS:
        pages.text(f"{setting.where}: {setting.value}. {setting.source.capitalize()}.", size=8)
    pages.space(10)
    pages.heading("Errata")
    for number, erratum in enumerate(ERRATA, start=1):
        pages.text(f"{number}. {erratum.replace('**', '')}", size=8)

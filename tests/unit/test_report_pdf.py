"""The report as a PDF."""

import io
import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from grokscope.errors import GrokscopeError
from grokscope.experiments.claim import Check, CheckResult, Claim
from grokscope.experiments.record import Entry
from grokscope.experiments.report_pdf import FigurePage, report_pdf
from grokscope.experiments.reproduction import check_report_path
from grokscope.plots.pages import Pages


def picture() -> bytes:
    content = io.BytesIO()
    Figure(figsize=(2, 1)).savefig(content, format="png")
    return content.getvalue()


def page_count(pdf: bytes) -> int:
    return len(re.findall(rb"/Type /Page\b", pdf))


def test_pages_begin_where_there_is_no_room_left() -> None:
    pages = Pages()
    for _ in range(200):
        pages.text("A line.")
    assert page_count(pages.pdf()) == 4  # some 60 lines of 9 points fit on a page
    assert page_count(Pages().pdf()) == 1


def test_a_picture_that_does_not_fit_goes_to_the_next_page() -> None:
    pages = Pages()
    pages.picture(picture())
    assert page_count(pages.pdf()) == 1
    pages.picture(picture())
    pages.picture(picture())
    assert page_count(pages.pdf()) == 2


def test_a_report_has_a_summary_a_page_for_each_figure_and_the_settings() -> None:
    check = Check("share", lambda: 0.0, low=0.4)
    entry = Entry(Claim("a-claim", "Section 2", "It is so.", (check,)), "paper", 1, (CheckResult(check, (0.5,)),))
    figures = [FigurePage(name, "A figure", "What is seen.", "grokscope figure", picture()) for name in ("one", "two")]
    pdf, without_figures = report_pdf(figures, [entry]), report_pdf([], [entry])
    assert page_count(without_figures) >= 2
    assert page_count(pdf) == page_count(without_figures) + len(figures)
    assert pdf == report_pdf(figures, [entry])


def test_a_report_is_a_pdf() -> None:
    check_report_path(Path("report.pdf"))
    with pytest.raises(GrokscopeError, match=r"--report = 'report.md' is not allowed: must end in .pdf"):
        check_report_path(Path("report.md"))

"""The documentation as a website: whole, readable without a network, in light and dark and on a telephone."""

import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.generators import script

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    script("docs/website/make.py").build(directory)
    return directory


class _Links(HTMLParser):
    """What a page of the site refers to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.formula = ""
        self._in_formula = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            if name == "id" and value:
                self.anchors.add(value)
        self._in_formula |= tag == "math"

    def handle_endtag(self, tag: str) -> None:
        self._in_formula &= tag != "math"

    def handle_data(self, data: str) -> None:
        self.formula += data if self._in_formula else ""


def test_it_is_whole(site: Path) -> None:
    """Its links lead somewhere, its formulas are formulas, and nothing is loaded from another machine."""
    parsed = {file: _Links(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    assert site / "index.html" in parsed
    assert site / "docs" / "howto" / "resume.html" in parsed
    for file, page in parsed.items():
        assert "\\" not in page.formula, f"{file.name} has TeX that was not understood"
        for target in page.targets:
            path, _, anchor = target.partition("#")
            if re.match(r"https?:|mailto:", target):
                continue
            led = Path(os.path.normpath(file.parent / path)) if path else file
            assert led.is_file(), f"{file.relative_to(site)} refers to {target}"
            if anchor and led in parsed:
                assert anchor in parsed[led].anchors, f"{file.relative_to(site)} refers to {target}"
    mathematics = parsed[site / "docs" / "mathematics.html"]
    assert "IPR" in mathematics.formula
    for name in ("style.css", "search.js"):
        assert "http" not in (site / name).read_text(encoding="utf-8")


def test_headings_have_the_anchors_that_github_gives_them() -> None:
    text = "# `grokscope runs list`\n\n## What it shows\n\n## What it shows\n\n## Loss, steps & (Equation 9)\n"
    website = script("docs/website/make.py")
    anchors = [heading.anchor for heading in website.headings(website.parse(text))]
    assert anchors == ["grokscope-runs-list", "what-it-shows", "what-it-shows-1", "loss-steps--equation-9"]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_it_reads_in_a_browser_from_disk(site: Path) -> None:
    problems: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        for scheme, width in (("light", 1400), ("dark", 390)):
            context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, offline=True)  # type: ignore[arg-type]
            page = context.new_page()
            page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: problems.append(str(error)))
            for name in ("index.html", "docs/mathematics.html", "docs/commands.html"):
                page.goto((site / name).as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is too wide"
                ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
                light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 3 * 128
                assert light == (scheme == "light")
            page.get_by_role("searchbox").fill("rank-one")
            page.get_by_role("link", name="The mathematics: Pruning by rank-one updates").click()
            expect(page).to_have_url(re.compile(r"docs/mathematics.html#pruning-by-rank-one-updates$"))
            context.close()
        browser.close()
    assert not problems

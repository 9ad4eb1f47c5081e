"""The page in a real browser."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright
from tests.explorer.conftest import Filled
from tests.explorer.serving import Server

from grokscope.explorer.report import write_report
from grokscope.store import Store
from grokscope.training import execute

expect.set_options(timeout=30_000)  # long even on a busy machine
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install --no-install-recommends chromium"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(filled: Filled) -> Iterator[Server]:
    server = Server(filled.path)
    yield server
    server.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a new window; any error that it reports fails the test."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(30_000)
    page = context.new_page()
    problems: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert not problems


def open_cell(page: Page, column: int, row: int) -> None:
    """Click on the middle of a cell, as a person does."""
    cell = page.locator(f'.map rect[data-cell="{column},{row}"]')
    expect(cell).to_be_visible()
    box = cell.bounding_box()
    assert box is not None
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*place)
    expect(page.locator(".map .tip")).to_be_visible()
    page.mouse.click(*place)


def section(page: Page, title: str) -> Locator:
    """The part of a cell under this title."""
    return page.locator("details", has=page.locator("summary", has_text=re.compile(f"^{title}$"))).first


def test_lists_have_all_and_search_finds(page: Page, server: Server) -> None:
    page.goto(server.address)
    expect(page.get_by_role("link", name="small")).to_contain_text("10 of 12 run")
    expect(page.locator(".runs li")).to_have_count(10)
    expect(page.locator(".runs li", has_text="baseline #für-später #good")).to_have_count(1)
    page.get_by_role("searchbox").fill("task.corruption>=0.3 optimizer.weight_decay=0")
    expect(page.locator(".runs li")).to_have_count(3)
    page.get_by_role("searchbox").fill("smal")
    expect(page.get_by_role("list", name="Sweeps").get_by_role("link")).to_have_count(1)
    page.get_by_role("searchbox").fill("coexistence 0.5")
    expect(page.get_by_role("list", name="Sweeps")).to_have_text("No sweep has this in its name or axes.")
    page.get_by_role("searchbox").fill("nonsense.field=3")
    expect(page.get_by_role("alert")).to_contain_text("nonsense")


def test_a_click_on_a_cell_shows_the_network(page: Page, server: Server, filled: Filled) -> None:
    page.goto(server.address)
    page.get_by_role("link", name="small").click()
    open_cell(page, 0, 0)
    pane = page.get_by_role("article", name="Chosen cell")
    expect(pane).to_contain_text("data fraction α 0.3, corruption ξ 0, weight decay 0")
    expect(pane).to_contain_text(filled.with_weights)
    expect(pane).to_contain_text("baseline #für-später #good")
    expect(pane).to_contain_text("<b>Not bold.</b>")
    expect(pane.locator(".chart").first.locator("path.curve")).to_have_count(2)
    expect(pane.locator("details", has_text="IPR").first.locator(".barlayer .point").first).to_be_attached()
    assert "cell=0,0" in page.url


def test_the_pruning_slider_changes_accuracies_and_histogram_at_once(page: Page, server: Server) -> None:
    page.goto(f"{server.address}#sweep=small&cell=0,0")
    slider = page.get_by_label("Prune this many")
    expect(slider).to_be_visible()
    readout = page.locator(".readout")
    expect(readout).to_contain_text("0 of 24 pruned")
    for pruned in (5, 24, 3, 24):
        slider.fill(str(pruned))
        expect(readout).to_contain_text(f"{pruned} of 24 pruned")
    expect(readout).to_contain_text("24 of 24 pruned")
    kept = page.evaluate(
        """async () => {
            const charts = () => [...document.querySelectorAll(".chart.low")];
            const drawn = () => charts().find((chart) => chart.data?.[1]?.name === "pruned");
            while (!drawn()) await new Promise(requestAnimationFrame);
            return drawn().data.map((trace) => trace.y.reduce((sum, value) => sum + value, 0));
        }"""
    )
    assert kept == [0, 24]


def test_arrow_keys_move_and_a_link_brings_back_the_view(page: Page, server: Server) -> None:
    page.goto(f"{server.address}#sweep=small&cell=0,0")
    expect(page.get_by_role("article", name="Chosen cell")).to_contain_text("α 0.3")
    page.locator(".map").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("article", name="Chosen cell")).to_contain_text("data fraction α 0.5, corruption ξ 0")
    page.keyboard.press("b")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("article", name="Chosen cell")).to_contain_text("data fraction α 0.5, corruption ξ 0.4")
    expect(page.get_by_role("article", name="Cell beside")).to_contain_text("data fraction α 0.5, corruption ξ 0,")
    assert "cell=1,1" in page.url
    assert "beside=1,0" in page.url
    page.get_by_label("Panel").select_option(label="weight decay 5")
    expect(page.get_by_role("article", name="Chosen cell")).to_contain_text("weight decay 5")
    expect(page.get_by_role("article", name="Cell beside")).to_contain_text("weight decay 0")
    page.reload()
    expect(page.get_by_role("article", name="Chosen cell")).to_contain_text("weight decay 5")
    expect(page.get_by_role("article", name="Cell beside")).to_contain_text("data fraction α 0.5, corruption ξ 0,")


def test_a_click_on_a_neuron_shows_its_vectors(page: Page, server: Server) -> None:
    page.goto(f"{server.address}#sweep=small&cell=0,0")
    points = section(page, "Neurons").locator(".scatterlayer .point")
    expect(points).to_have_count(24)
    points.nth(5).scroll_into_view_if_needed()
    box = points.nth(5).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    heading = page.locator(".neuron h3")
    expect(heading).to_contain_text(re.compile(r"Neuron \d+, IPR 0\.\d+"))
    assert "neuron=" in page.url
    page.reload()
    expect(heading).to_be_visible()
    page.get_by_label("Neuron", exact=True).fill("7")
    page.keyboard.press("Enter")
    expect(heading).to_contain_text("Neuron 7")


def test_the_ipr_has_a_slider_over_the_steps(page: Page, server: Server, filled: Filled) -> None:
    page.goto(f"{server.address}#run={filled.without_weights}")
    part = section(page, "IPR")
    expect(part).to_contain_text("24 neurons, mean IPR")
    expect(part.locator(".barlayer .point")).not_to_have_count(0)
    slider = part.get_by_label("Training step")
    heights = "() => document.querySelector('.chart.low').data[0].y"
    last = page.evaluate(heights)
    slider.fill("0")
    expect(part).to_contain_text("at step 1")
    history = Store(filled.path, create=False).load(filled.without_weights).ipr_history
    assert history is not None
    assert page.evaluate(heights) == history[0].tolist() != history[-1].tolist()
    slider.fill(str(len(history) - 1))
    expect(part).to_contain_text("at the end")
    assert page.evaluate(heights) == last == history[-1].tolist()


def test_phases_and_the_logits_of_any_example(page: Page, server: Server) -> None:
    page.goto(f"{server.address}#sweep=small&cell=0,0")
    expect(section(page, "Phases").locator(".scatterlayer .point")).not_to_have_count(0)
    part = section(page, "Logits")
    part.get_by_label("Input 1 of 2").fill("4")
    part.get_by_label("Input 2 of 2").fill("9")
    part.get_by_role("button", name="Show").click()
    expect(part).to_contain_text("(4, 9): truth 2")
    expect(part.locator(".barlayer .point")).to_have_count(11)


def test_every_colour_and_panel_is_drawn(page: Page, server: Server) -> None:
    page.goto(f"{server.address}#sweep=small")
    page.get_by_label("Panel").select_option(label="weight decay 5")
    for color in page.get_by_label("Colour").locator("option").all_text_contents():
        page.get_by_label("Colour").select_option(label=color)
        page.wait_for_function(
            "(color) => document.querySelector('.map').getAttribute('aria-label')?.toLowerCase().startsWith(color)",
            arg="phases" if color == "phase" else color.lower(),
        )
    page.get_by_label("Phase", exact=True).select_option(label="Confusion")
    assert "phase=confusion" in page.url


def test_cells_without_a_network_say_why(page: Page, server: Server) -> None:
    page.goto(f"{server.address}#sweep=small&panel=1")
    legend = page.get_by_role("list", name="Legend")
    for words in ("missing: not run yet", "failed: ended with an error", "damaged in the store"):
        expect(legend).to_contain_text(words)
    pane = page.get_by_role("article", name="Chosen cell")
    open_cell(page, 0, 1)
    expect(pane).to_contain_text("It failed: ValueError: on purpose")
    open_cell(page, 1, 1)
    expect(pane).to_contain_text("has been changed")
    open_cell(page, 2, 1)
    expect(pane).to_contain_text("It has not been trained yet")
    expect(pane).to_contain_text("grokscope sweep small")


def test_a_run_without_weights_says_how_to_get_them(page: Page, server: Server, filled: Filled) -> None:
    page.goto(f"{server.address}#run={filled.without_weights}")
    expect(page.get_by_role("main")).to_contain_text("weights, which were not kept")
    expect(page.get_by_role("main")).to_contain_text("--allow-train")
    page.get_by_role("button", name="TOML").click()
    expect(page.locator("pre").last).to_contain_text("[optimizer]")
    page.get_by_role("button", name="Python").click()
    expect(page.locator("pre").last).to_contain_text("gs.RunSpec().updated(")


def test_light_and_dark_follow_the_system_and_the_switch(browser: Browser, server: Server) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(server.address)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    context.close()


def test_nothing_is_wider_than_a_phone(browser: Browser, server: Server) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    for place in ("", "#sweep=small&cell=0,0&beside=1,0"):
        page.goto(server.address + place)
        expect(page.locator(".runs li, .readout").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.goto("about:blank")
    context.close()


def test_cells_appear_while_a_sweep_runs(page: Page, filled: Filled, tmp_path: Path) -> None:
    path = Path(shutil.copytree(filled.path, tmp_path / "live"))
    server = Server(path)
    page.goto(f"{server.address}#sweep=small&panel=1&cell=2,1")
    pane = page.get_by_role("article", name="Chosen cell")
    expect(pane).to_contain_text("It has not been trained yet")
    expect(page.get_by_role("status").first).to_have_text("live")
    result = execute(filled.specs[11])
    Store(path).save(result)
    expect(pane).to_contain_text(filled.missing)
    expect(pane.locator(".chip")).to_have_text(result.outcome)
    page.goto("about:blank")
    server.stop()


def test_train_here_shows_live_curves_and_stores_the_run(page: Page, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs", create=True)
    server = Server(store.path, allow_train=True)
    page.goto(server.address)
    page.get_by_role("link", name="Train here").click()
    for label, value in {"modulus p": "11", "width N": "16", "steps": "200"}.items():
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("link", name="Look at this network").click()
    expect(page.get_by_label("Prune this many")).to_be_visible()
    slider = page.get_by_label("Training step")
    expect(slider).to_be_visible()
    slider.fill("0")
    expect(page.get_by_role("main")).to_contain_text("at step 1")
    assert store.page(limit=10).runs[0].has_weights
    page.goto(f"{server.address}#view=train")
    page.get_by_label("steps").fill("900000")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("main")).to_contain_text("stopped")
    page.goto("about:blank")
    server.stop()


@pytest.fixture(scope="module")
def report(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(Store(filled.path, create=False), ["small"], tmp_path_factory.mktemp("report") / "small.html")


def test_a_report_opens_from_disk_without_a_network(page: Page, report: Path, filled: Filled) -> None:
    asked: list[str] = []
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    expect(page.locator(".runs li")).to_have_count(9)
    page.get_by_role("searchbox").fill("weight decay 5")
    expect(page.locator(".runs li")).to_have_count(3)
    page.get_by_role("searchbox").fill("")
    page.get_by_role("link", name="small").click()
    open_cell(page, 0, 0)
    expect(page.get_by_label("Prune this many")).to_be_visible()
    page.get_by_label("Neuron", exact=True).fill("7")
    page.keyboard.press("Enter")
    expect(page.locator(".neuron h3")).to_contain_text("Neuron 7")
    for color in ("mean IPR", "step at which it grokked"):
        page.get_by_label("Colour").select_option(label=color)
        expect(page.locator(".map")).to_have_attribute("aria-label", re.compile(color))
    open_cell(page, 1, 0)
    expect(page.get_by_role("article", name="Chosen cell")).to_contain_text("A report cannot train")
    page.get_by_role("link", name="Claims").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Claims")
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert filled.path.as_posix() not in report.read_text(encoding="utf-8")


def test_claims_and_gallery_are_pages(page: Page, server: Server) -> None:
    page.goto(server.address)
    page.get_by_role("link", name="Gallery").click()
    page.get_by_role("link", name=re.compile("^table2")).click()
    detail = page.get_by_role("article", name="What is open")
    expect(detail).to_contain_text("runs are missing; grokscope figure table2")
    detail.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Claims")
    expect(detail.get_by_role("heading")).to_contain_text(": ")
    page.get_by_role("button", name="Measure all").click()
    expect(page.locator(".verdict").nth(2)).to_have_text(re.compile("holds|fails|not run"))
    expect(page.get_by_role("button", name=re.compile(r"of \d+: "))).to_be_visible()

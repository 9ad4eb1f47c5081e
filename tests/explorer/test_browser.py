"""The page in a real browser."""

import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from tests.explorer.conftest import Filled

from grokscope.explorer.server import make_app

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


class Server:
    """The application on a free port, in a thread."""

    def __init__(self, store: Path, *, allow_train: bool = False) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/"
        app = make_app(store, allow_train=allow_train)
        self._server = uvicorn.Server(
            uvicorn.Config(app, port=port, log_level="warning", timeout_graceful_shutdown=1, ws="none")
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=20)


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
    expect(page.locator(".map .nsewdrag").first).to_be_visible()
    place = page.evaluate(
        """([column, row]) => {
            const map = document.querySelector(".map"), {_fullLayout: layout, data} = map;
            const box = map.querySelector(".nsewdrag").getBoundingClientRect();
            return [box.left + layout.xaxis.d2p(data[0].x[column]), box.top + layout.yaxis.d2p(data[0].y[row])];
        }""",
        [column, row],
    )
    page.mouse.move(*place)
    page.mouse.click(*place)


def test_lists_have_all_and_search_finds(page: Page, server: Server) -> None:
    page.goto(server.address)
    expect(page.get_by_role("link", name="small")).to_contain_text("10 of 12 run")
    expect(page.locator(".runs li")).to_have_count(10)
    page.get_by_role("searchbox").fill("task.corruption>=0.3 optimizer.weight_decay=0")
    expect(page.locator(".runs li")).to_have_count(3)
    page.get_by_role("searchbox").fill("nonsense.field=3")
    expect(page.get_by_role("alert")).to_contain_text("nonsense")


def test_a_click_on_a_cell_shows_the_network(page: Page, server: Server, filled: Filled) -> None:
    page.goto(server.address)
    page.get_by_role("link", name="small").click()
    open_cell(page, 0, 0)
    pane = page.get_by_role("article", name="Chosen cell")
    expect(pane).to_contain_text("data fraction α 0.3, corruption ξ 0, weight decay 0")
    expect(pane).to_contain_text(filled.with_weights)
    expect(pane.locator(".chart").first.locator(".scatterlayer .trace")).to_have_count(2)
    expect(pane.locator("details", has_text="IPR").first.locator(".barlayer .point").first).to_be_attached()
    assert "cell=0,0" in page.url


def test_the_pruning_slider_changes_accuracies_and_histogram_at_once(page: Page, server: Server) -> None:
    page.goto(f"{server.address}#sweep=small&cell=0,0")
    slider = page.get_by_label("Prune this many")
    expect(slider).to_be_visible()
    readout = page.locator(".readout")
    expect(readout).to_contain_text("0 of 24 pruned")
    milliseconds = slider.evaluate(
        """async (slider) => {
            slider.value = 24;
            const started = performance.now();
            slider.dispatchEvent(new Event("input"));
            return performance.now() - started;
        }"""
    )
    expect(readout).to_contain_text("24 of 24 pruned")
    kept = page.evaluate(
        "[...document.querySelectorAll('.chart.low')].find((chart) => chart.data?.[1]?.name === 'pruned').data"
        ".map((trace) => trace.y.reduce((sum, value) => sum + value, 0))"
    )
    assert kept == [0, 24]
    assert milliseconds < 250  # on a busy machine; the benchmark asks for 50


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
    assert re.search("cell=1,1&beside=1,0|beside=1,0&cell=1,1", page.url)
    page.reload()
    expect(page.get_by_role("article", name="Cell beside")).to_contain_text("data fraction α 0.5, corruption ξ 0,")

"""`python -m benchmarks.explorer`: how long a person waits for the explorer, on a store of 20,000 runs.

First diagram: from the address to the drawn map. Cell: from a key to the drawn curves. Slider: from its movement to
the new accuracies and bars. All in a real browser, medians of several rounds.
"""

import json
import shutil
import statistics
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright
from rich.console import Console

from grokscope import Store
from grokscope.experiments.catalogue import SWEEPS
from grokscope.explorer.server import make_app
from grokscope.store.records import record_of
from grokscope.sweeps.plan import Plan
from grokscope.training import execute

ROUNDS = 5
SEEDS = 16  # 17 × 19 × 4 cells: 20,672 runs
RESULTS = Path("benchmarks/explorer.json")
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"


def large_store(path: Path) -> Plan:
    """The index of a large sweep, and the file of one network of the paper's size at its first cell."""
    plan = replace(SWEEPS["fig3a"], name="large").with_seeds(SEEDS)
    store = Store(path)
    specs = list(plan.specs())
    result = execute(specs[0].updated({"training.steps": 200}))
    phases = ("coexistence", "memorization", "full_inversion", "confusion")
    for place, spec in enumerate(specs):
        record = record_of(replace(result, spec=spec), "2026-01-01T00:00:00+00:00", weights=False)
        record["phase"] = phases[place % 7 % 4]
        store.enter(record, f"{spec.run_id[:2]}/{spec.run_id}-00000000.safetensors", None)
    store.save(replace(result, spec=specs[0]), weights=True)
    store.record_sweep("large", plan.to_dict(), [spec.run_id for spec in specs], refined=False)
    store.close()
    return plan


# Resolves with the time of the frame that shows an element: the page's own clock, as a person sees it.
SEEN = """
window.seen = (selector) => new Promise((resolve) => {
    const look = () => (document.querySelector(selector) ? resolve(performance.now()) : requestAnimationFrame(look));
    requestAnimationFrame(look);
});
"""


def first_diagram(page: Page, address: str) -> float:
    """Seconds to the map, with a page that has nothing yet."""
    page.add_init_script(SEEN)
    page.goto(f"{address}#sweep=large", wait_until="commit")
    return float(page.evaluate("seen('.map rect[data-cell]')")) / 1000


def cell_seconds(page: Page) -> float:
    """Seconds from a press of a key to the curves of the cell."""
    # A person looks at the map first, and meanwhile plotly.js starts.
    page.evaluate("async () => { while (!window.Plotly) await new Promise(requestAnimationFrame); }")
    page.evaluate("location.hash = '#sweep=large'")
    page.wait_for_selector(".hint")
    page.locator(".map").focus()
    milliseconds = page.evaluate(
        """async () => {
            const started = performance.now();
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
            return await seen(".pane .chart path.curve") - started;
        }"""
    )
    return float(milliseconds) / 1000


def slider_seconds(page: Page) -> float:
    """Seconds from a movement of the slider to what it shows."""
    page.wait_for_selector(".readout")
    return float(
        page.get_by_label("Prune this many").evaluate(
            """async (slider) => {
                const times = [];
                for (let i = 1; i < 12; i++) {
                    slider.value = 37 * i;
                    const started = performance.now();
                    slider.dispatchEvent(new Event("input"));
                    times.push((performance.now() - started) / 1000);
                    await new Promise(requestAnimationFrame);
                }
                return times.sort((one, other) => one - other)[5];
            }"""
        )
    )


def main() -> None:
    """Measure, print and write the medians."""
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        plan = large_store(Path(directory) / "runs")
        server = uvicorn.Server(uvicorn.Config(make_app(Path(directory) / "runs"), port=8699, log_level="warning"))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.05)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        times: dict[str, list[float]] = {"first_diagram": [], "cell": [], "slider": []}
        for _ in range(ROUNDS):
            page = browser.new_page()
            times["first_diagram"].append(first_diagram(page, "http://127.0.0.1:8699/"))
            times["cell"].append(cell_seconds(page))
            times["slider"].append(slider_seconds(page))
            page.close()
        server.should_exit = True
        browser.close()
    found = {"runs": plan.size} | {f"{name}_seconds": statistics.median(values) for name, values in times.items()}
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    Console().print(found)


if __name__ == "__main__":
    main()

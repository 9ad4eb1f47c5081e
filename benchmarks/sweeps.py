"""`python -m benchmarks.sweeps [--only-store]`: what sweeps cost beside the training, and how a large store answers.

Overhead: the same runs as bare calls of `execute` in as many processes, and through `grokscope sweep` with its store,
its checkpoints and its picture in a terminal; in turns, medians compared.
"""

import argparse
import json
import multiprocessing
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grokscope import RunSpec, Store
from grokscope.experiments.catalogue import SWEEPS
from grokscope.outputs import write_text
from grokscope.store.index import open_index
from grokscope.store.schema import OUTCOME_SEAL, ROW_SEAL
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.running import available_cores
from grokscope.training import execute

ROUNDS = 5
RESULTS = Path("benchmarks/sweeps.json")


def bare_seconds(specs: list[RunSpec], workers: int) -> float:
    """The runs dealt out to processes that do nothing else."""
    context = multiprocessing.get_context("spawn")
    ready, go = context.Barrier(workers + 1), context.Barrier(workers + 1)
    processes = [
        context.Process(target=_bare_worker, args=(ready, go, specs[start::workers])) for start in range(workers)
    ]
    for process in processes:
        process.start()
    ready.wait()
    started = time.perf_counter()
    go.wait()
    for process in processes:
        process.join()
    return time.perf_counter() - started


def _bare_worker(ready: "threading.Barrier", go: "threading.Barrier", specs: list[RunSpec]) -> None:
    execute(specs[0].updated({"training.steps": 1}))  # loads what is loaded once
    ready.wait()
    go.wait()
    for spec in specs:
        execute(spec)


def sweep_seconds(plan_text: str, directory: Path, runs: int) -> float:
    """The same through the command, in a terminal, from the first run's start to the moment that the last is stored."""
    (directory / "bench.toml").write_text(plan_text)
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "grokscope", "sweep", "bench.toml"],
        cwd=directory,
        stdin=child,
        stdout=child,
        stderr=child,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "160"},
    )
    os.close(child)
    reader = threading.Thread(target=_discard, args=(parent,), daemon=True)
    reader.start()
    index = directory / "grokscope-runs" / "index.sqlite"
    while not index.exists() or not Store(index.parent).running():
        time.sleep(0.002)
    started = time.perf_counter()
    while sum(1 for _ in (index.parent / "runs").rglob("*.safetensors")) < runs:
        time.sleep(0.05)
    seconds = time.perf_counter() - started
    process.wait()
    return seconds


def _discard(descriptor: int) -> None:
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:
        pass


def overhead(steps: int, count: int, fields: str) -> dict[str, float]:
    """The fraction that a sweep takes longer than its runs."""
    text = f'{fields}\n[base.training]\nsteps = {steps}\n\n[axes]\n"training.seed" = {list(range(count))}\n'
    workers = available_cores()
    bare, swept = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory)
            (path / "bench.toml").write_text(text)
            specs = list(Plan.from_file(path / "bench.toml").specs())
            bare.append(bare_seconds(specs, workers))
            swept.append(sweep_seconds(text, path, count))
    seconds = statistics.median(bare)
    return {
        "runs": count,
        "seconds_a_run": seconds * workers / count,
        "bare_seconds": seconds,
        "sweep_seconds": statistics.median(swept),
        "overhead": statistics.median(b / a for a, b in zip(bare, swept, strict=True)) - 1,
    }


def large_store(path: Path) -> int:
    """A store with the index of 100,000 runs, all of one sweep."""
    result = execute(RunSpec().updated({"task.modulus": 11, "model.width": 24, "training.steps": 60}))
    store = Store(path)
    store.save(result)
    plan = SWEEPS["fig3a"].with_fields({"optimizer.weight_decay": "5"})
    plan = Plan("large", plan.base, (*plan.axes[:2], Axis(("training.seed",), tuple((i,) for i in range(310)))))
    specs = list(plan.specs())
    store.record_sweep("large", plan.to_dict(), [spec.run_id for spec in specs], refined=False)
    (known,) = store.all()
    columns = known.record() | {"final": json.dumps(known.final), "file": known.file, "checksum": known.checksum}
    columns |= {name: known.final and known.final[name] for name in ("train_accuracy", "test_accuracy")}
    phases = ("coexistence", "memorization", "full_inversion", "confusion")

    def rows() -> Iterator[list[object]]:
        for place, spec in enumerate(specs):
            changed = {"run_id": spec.run_id, "spec": spec.to_json(), "phase": phases[place % 4]}
            yield list((columns | changed).values())

    index = open_index(path, create=False)
    index.execute("BEGIN")
    places = ", ".join("?" * len(columns))
    index.executemany(f"INSERT INTO runs ({', '.join(columns)}) VALUES ({places})", rows())
    index.execute(f"UPDATE runs SET outcome_seal = {OUTCOME_SEAL}")
    index.execute(f"UPDATE runs SET row_seal = {ROW_SEAL}")
    index.execute("COMMIT")
    index.close()
    return plan.size


def command_seconds(*arguments: str, cwd: Path) -> float:
    """A whole command, from the shell's point of view."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "grokscope", *arguments], cwd=cwd, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def bytes_per_run() -> float:
    """A default run without weights: its file, and its share of the index."""
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory) / "store")
        result = execute(RunSpec().updated({"training.steps": 40, "training.measure_every": 1}))
        count = 50
        for seed in range(count):
            store.save(type(result)(**vars(result) | {"spec": result.spec.updated({"training.seed": seed})}))
        store.close()
        return sum(file.stat().st_size for file in store.path.rglob("*") if file.is_file()) / count


def main() -> None:
    """Measure, print, write down."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeps")
    parser.add_argument(
        "--only-store", action="store_true", help="not what sweeps cost, which takes a quarter of an hour"
    )
    results: dict[str, dict[str, float]] = json.loads(RESULTS.read_text())
    if not parser.parse_args().only_store:
        results["runs of 0.2 s"] = overhead(700, 120, "[base.task]\nmodulus = 31\n[base.model]\nwidth = 150")
        results["default run, 600 steps"] = overhead(600, 4, "")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        runs = large_store(path / "grokscope-runs")
        results["large store"] = {
            "runs": runs,
            "status": command_seconds("status", cwd=path),
            "runs list --where": command_seconds("runs", "list", "--where", "task.corruption=0.3", cwd=path),
            "phase-diagram .csv": command_seconds("phase-diagram", "large", "--out", "d.csv", cwd=path),
            "phase-diagram .png": command_seconds("phase-diagram", "large", "--out", "d.png", cwd=path),
            "import grokscope.cli": command_seconds("--version", cwd=path),
        }
    results["disk"] = {"bytes_a_run": bytes_per_run()}
    table = Table(box=None)
    for heading in ("what", "measured"):
        table.add_column(heading)
    for what, values in results.items():
        table.add_row(what, ", ".join(f"{name} {value:.4g}" for name, value in values.items()))
    Console(width=140).print(table)
    write_text(RESULTS, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

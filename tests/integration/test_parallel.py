"""Real worker processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grokscope import GrokscopeError, RunResult, RunSpec, run
from grokscope.sweep import Finished, Measured, run_all


def finished(specs: list[RunSpec], workers: int) -> dict[int, RunResult]:
    return {event.index: event.result for event in run_all(specs, workers=workers) if isinstance(event, Finished)}


def test_results_do_not_depend_on_the_number_of_workers(tiny: RunSpec) -> None:
    specs = [tiny.updated({"training.seed": seed, "model.dropout": 0.2}) for seed in range(3)]
    alone = [run(spec).curve for spec in specs]
    for workers in (1, 2):
        results = finished(specs, workers)
        assert [results[index].curve for index in range(3)] == alone


def test_every_measurement_is_reported(tiny: RunSpec) -> None:
    events = list(run_all([tiny, tiny.updated({"training.seed": 1})]))
    for index in (0, 1):
        steps = [event.measurement.step for event in events if isinstance(event, Measured) and event.index == index]
        assert steps == sorted(steps)
        assert set(steps) <= set(tiny.training.measured_steps())


def test_nothing_to_do() -> None:
    assert list(run_all([])) == []


def test_an_error_in_a_worker_is_raised_here(tiny: RunSpec) -> None:
    with pytest.raises(GrokscopeError, match="engine = 'warp'"):
        list(run_all([tiny], engine="warp"))


def children(pid: int) -> set[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return {int(child) for child in listed.stdout.split()}


def is_running(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state) and not state.startswith("Z")


def test_ctrl_c_on_the_demo_stops_the_workers_too(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "grokscope", "demo"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    workers: set[int] = set()
    while len(workers) < 3:  # two workers, and the process that tracks their semaphores
        assert process.poll() is None
        time.sleep(0.1)
        workers = children(process.pid)
    time.sleep(5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    output, errors = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "Traceback" not in output + errors
    assert "stopped" in errors
    deadline = time.monotonic() + 30
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived the demo"
        time.sleep(0.1)

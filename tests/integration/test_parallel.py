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
from grokscope.sweep.local import available_cores


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
        assert set(steps) <= set(tiny.training.measured_steps())  # the last few may come after the result
        assert len(steps) > 5


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


def started_demo(cwd: Path) -> tuple[subprocess.Popen[str], set[int]]:
    """The demo as soon as its workers are there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "grokscope", "demo"],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    workers: set[int] = set()
    while len(workers) < min(available_cores(), 3) + 1:  # workers, and the process that tracks their semaphores
        assert process.poll() is None
        time.sleep(0.1)
        workers = children(process.pid)
    return process, workers


def test_ctrl_c_on_the_demo_stops_the_workers_too(tmp_path: Path) -> None:
    process, workers = started_demo(tmp_path)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    output, errors = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "Traceback" not in output + errors
    assert "stopped" in errors
    wait_for_end_of(workers)


def test_workers_do_not_outlive_a_killed_demo(tmp_path: Path) -> None:
    process, workers = started_demo(tmp_path)
    process.kill()
    process.communicate()
    wait_for_end_of(workers)


def wait_for_end_of(workers: set[int]) -> None:
    deadline = time.monotonic() + 30
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived the demo"
        time.sleep(0.1)

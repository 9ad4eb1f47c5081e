"""What a store must survive: power cuts, several sweeps at once while runs are deleted, hosts whose clocks disagree."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.processes import children, grokscope, start, wait_until
from tests.integration.test_store_attacks import curves, finished, sweep_in

import grokscope as gs
from grokscope.store.check import Kind, check_store

# ---- power cuts ----------------------------------------------------------------------------------------------------


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    """A disk in a file. It keeps to itself what nobody asked to have on disk: `commit` is far away."""
    at.mkdir(exist_ok=True)
    mount = subprocess.run(["mount", "-o", "loop,commit=600", image, at], capture_output=True, check=False)
    if mount.returncode:
        pytest.skip("mounting a disk in a file needs root and loop devices")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def cut_power(process: subprocess.Popen[str], image: Path, copy: Path) -> None:
    """What would be on the disk if the power went off now.

    What was written but not synchronised is in the memory of the kernel and not in the image. The sweep stands still
    while the image is copied, so that the copy is of one moment.
    """
    pids = [process.pid, *children(process.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    shutil.copyfile(image, copy)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def test_power_cuts_lose_nothing_that_was_reported(tmp_path: Path) -> None:
    if not shutil.which("mkfs.ext4"):
        pytest.skip("needs mkfs.ext4")
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    work, peace = tmp_path / "work", tmp_path / "peace"
    sweep_in(work, steps=2000, seeds=12)
    sweep_in(peace, steps=2000, seeds=12)
    grokscope("sweep", "mine.toml", cwd=peace)
    truth = curves(peace / "grokscope-runs")
    moments = random.Random(1)
    reported: list[int] = []
    with mounted(image, tmp_path / "mounted") as disk, (tmp_path / "said").open("w") as said:
        command = ["sweep", "mine.toml", "--workers", "2", "--store", str(disk / "store")]
        process = subprocess.Popen(
            [sys.executable, "-m", "grokscope", *command], cwd=work, stderr=said, text=True, start_new_session=True
        )
        wait_until(lambda: finished(disk / "store") > 2, "some runs are stored")
        while process.poll() is None and len(reported) < 8:
            time.sleep(moments.uniform(0, 0.4))
            before = done_according_to(tmp_path / "said")
            cut_power(process, image, tmp_path / f"disk{len(reported)}")
            reported.append(before)
        assert process.wait(timeout=120) == 0
    assert len(reported) > 3
    assert max(reported) > min(reported)
    for place, count in enumerate(reported):
        with mounted(tmp_path / f"disk{place}", tmp_path / f"mounted{place}") as disk:
            store = disk / "store"
            # A run whose file is there and whose entry in the index is not was never reported; it is not lost either.
            kinds = {finding.kind for finding in check_store(store) if not finding.kind.harmless}
            assert kinds <= {Kind.UNNAMED}
            found = curves(store)
            assert len(found) >= count, "a run that was reported is on the disk"
            assert found.items() <= truth.items()
            if place % 4 == 0:
                grokscope("sweep", "mine.toml", "--store", str(store), cwd=work)
                assert curves(store) == truth


def done_according_to(log: Path) -> int:
    """How many runs a sweep has reported."""
    return len(re.findall(r"^\d+ of \d+: \w+ .*\n", log.read_text(), re.MULTILINE))


# ---- several sweeps, and somebody who deletes ----------------------------------------------------------------------


def test_sweeps_at_once_while_runs_are_deleted(tmp_path: Path) -> None:
    store = sweep_in(tmp_path, steps=500, seeds=8)
    sweep_in(tmp_path / "peace", steps=500, seeds=8)
    grokscope("sweep", "mine.toml", cwd=tmp_path / "peace")
    truth = curves(tmp_path / "peace" / "grokscope-runs")
    processes = [start("sweep", "mine.toml", "--workers", "1", cwd=tmp_path) for _ in range(3)]
    wait_until(lambda: finished(store) > 2, "some runs are stored")
    moments, deleted = random.Random(2), 0
    while any(process.poll() is None for process in processes):
        known = [run.run_id for run in gs.Store(store, create=False).all()]
        for run_id in moments.sample(known, min(2, len(known))) if deleted < 30 else []:
            grokscope("runs", "delete", run_id, "--yes", cwd=tmp_path)
            deleted += 1
        time.sleep(0.1)
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert deleted > 5
    assert "Traceback" not in repr(outputs)
    assert curves(store).items() <= truth.items()
    grokscope("sweep", "mine.toml", cwd=tmp_path)
    assert curves(store) == truth
    assert finished(store) == len(truth)
    assert [finding for finding in check_store(store) if not finding.kind.harmless] == []


# ---- clocks --------------------------------------------------------------------------------------------------------

ANOTHER_HOST = """
import socket, time
socket.gethostname = lambda: "elsewhere"
true_time = time.time
time.time = lambda: true_time() + {seconds}
"""


@pytest.mark.parametrize("seconds", [600, -600, 86400])
def test_a_host_whose_clock_is_off_does_runs_twice_with_the_same_result(tmp_path: Path, seconds: int) -> None:
    """Both hosts think that the other's leases ran out, or one of them does. Nothing is lost and nobody waits."""
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "sitecustomize.py").write_text(ANOTHER_HOST.format(seconds=seconds))
    store = sweep_in(tmp_path, steps=3000)
    sweep_in(tmp_path / "peace", steps=3000)
    grokscope("sweep", "mine.toml", cwd=tmp_path / "peace")
    command = [sys.executable, "-m", "grokscope", "sweep", "mine.toml", "--workers", "1"]
    processes = [
        subprocess.Popen(command, cwd=tmp_path, env=os.environ | changed, stderr=subprocess.PIPE, text=True)
        for changed in ({}, {"PYTHONPATH": str(tmp_path / "host")})
    ]
    outputs = [process.communicate(timeout=100)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert curves(store) == curves(tmp_path / "peace" / "grokscope-runs")
    assert finished(store) == 6
    assert [finding for finding in check_store(store) if not finding.kind.harmless] == []

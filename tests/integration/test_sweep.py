"""Whole sweeps: real processes, real signals, a real full disk."""

import csv
import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.processes import children, command_line, grokscope, start, wait_until

from grokscope import RunSpec, Store
from grokscope.sweeps.plan import Plan
from grokscope.training import execute

SWEEP = """
[base.task]
modulus = 11

[base.model]
width = 24

[base.training]
steps = {steps}

[axes]
"task.data_fraction" = [0.3, 0.6, 0.9]
"task.corruption" = [0, 0.3]
"""


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Six runs of a fraction of a second."""
    (tmp_path / "mine.toml").write_text(SWEEP.format(steps=30))
    return tmp_path


LONG = 150_000  # steps


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """Six runs of a second and more, on fast machines too."""
    (tmp_path / "mine.toml").write_text(SWEEP.format(steps=LONG) + "\n[derived]\n")
    return tmp_path


def contents(store: Path) -> dict[str, tuple[object, ...]]:
    """Everything that a sweep computed, by run."""
    opened = Store(store, create=False)
    results = [opened.load(run.run_id) for run in opened.all()]
    return {
        result.run_id: (repr(result.curve), result.phase, result.neurons and result.neurons.ipr.tobytes())
        for result in results
    }


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def running(store: Path) -> set[str]:
    return Store(store).running() if (store / "index.sqlite").exists() else set()


# ---- the commands ---------------------------------------------------------------------------------------------------


def test_a_sweep_from_start_to_picture(short: Path) -> None:
    planned = grokscope("sweep", "mine.toml", "--dry-run", cwd=short)
    assert "Sweep mine: 6 runs" in planned.stdout
    assert "0 done, 0 failed, 6 to do" in planned.stdout
    assert re.search(r"Time: about \d+ s with \d+ workers", planned.stdout)
    assert re.search(r"Disk: about [\d.]+ MB", planned.stdout)
    assert not (short / "grokscope-runs").exists()

    done = grokscope("sweep", "mine.toml", cwd=short)
    lines = [line for line in done.stderr.splitlines() if " of 6: " in line]
    assert len(lines) == 6
    assert all(re.search(r"^\d of 6: [0-9a-f]{16} data_fraction .*corruption .*: \w+", line) for line in lines)
    assert "6 of 6 runs are in the store" in done.stderr

    again = grokscope("sweep", "mine.toml", cwd=short)
    assert " of 6: " not in again.stderr
    assert "6 done, 0 failed, 0 to do" in grokscope("sweep", "mine.toml", "--dry-run", cwd=short).stdout

    (row,) = json.loads(grokscope("status", "--json", cwd=short).stdout)["sweeps"]
    assert (row["name"], row["runs"], row["done"], row["left"], row["failed"]) == ("mine", 6, 6, 0, 0)
    assert re.search(r"mine +6 +6 +0 +0 +0 ", grokscope("status", cwd=short).stdout)

    for name in ("mine.png", "mine.pdf", "mine.svg"):
        grokscope("phase-diagram", "mine", "--accuracies", "--out", name, "--out", f"{name}.csv", cwd=short)
        assert (short / name).stat().st_size > 5000
        assert len(rows_of(short / f"{name}.csv")) == 6
    grokscope("phase-diagram", "mine", "--out", "mine.csv", cwd=short)
    rows = rows_of(short / "mine.csv")
    assert [(row["task.data_fraction"], row["task.corruption"]) for row in rows[:4]] == [
        ("0.3", "0"), ("0.6", "0"), ("0.9", "0"), ("0.3", "0.3"),
    ]  # fmt: skip
    assert {row["source"] for row in rows} == {"run"}


def test_results_are_those_of_single_runs(short: Path) -> None:
    grokscope("sweep", "mine.toml", "--seeds", "2", "--workers", "2", "--save-weights", cwd=short)
    grokscope(
        "train", "--modulus", "11", "--width", "24", "--steps", "30", "--data-fraction", "0.6", "--corruption", "0.3",
        "--seed", "1", "--store", "alone", cwd=short,
    )  # fmt: skip
    swept = contents(short / "grokscope-runs")
    assert len(swept) == 12
    assert contents(short / "alone").items() <= swept.items()
    assert all(run.has_weights for run in Store(short / "grokscope-runs").all())


def test_a_sweep_goes_on_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SWEEP.format(steps=30))
    grokscope("sweep", "mine.toml", "--refine", "--limit", "2", cwd=tmp_path)
    (tmp_path / "mine.toml").unlink()
    done = grokscope("sweep", "mine", cwd=tmp_path)
    assert re.search(r"Done: \d of 6 cells were run, the others are inferred", done.stderr), "refined, as it was begun"
    unknown = grokscope("sweep", "mime", cwd=tmp_path, check=False)
    assert unknown.returncode == 2
    assert "there is no sweep 'mime'" in unknown.stderr
    assert "a sweep of the store (mine); did you mean 'mine'?" in unknown.stderr


def test_a_sweep_goes_on_from_tables_of_cells(short: Path) -> None:
    grokscope("sweep", "mine.toml", "--limit", "4", "--store", "first", cwd=short)
    (short / "tables").mkdir()
    grokscope("phase-diagram", "mine", "--store", "first", "--out", "tables/mine.csv", cwd=short)
    planned = grokscope("sweep", "mine.toml", "--cells", "tables", "--dry-run", cwd=short)
    assert "In the store grokscope-runs and the tables: 4 done, 0 failed, 2 to do" in planned.stdout
    done = grokscope("sweep", "mine.toml", "--cells", "tables", cwd=short)
    assert "Done: 6 of 6 runs are in the store or the tables." in done.stderr
    assert "Look at it with: grokscope phase-diagram mine --cells tables" in done.stdout
    assert len(contents(short / "grokscope-runs")) == 2
    grokscope("phase-diagram", "mine", "--out", "part.csv", cwd=short)
    grokscope("phase-diagram", "mine", "--cells", "tables", "--out", "whole.csv", cwd=short)
    assert [row["source"] for row in rows_of(short / "part.csv")].count("missing") == 4
    assert {row["source"] for row in rows_of(short / "whole.csv")} == {"run"}
    refused = grokscope("phase-diagram", "--from", "whole.csv", "--cells", "tables", cwd=short, check=False)
    assert refused.returncode == 2
    assert "--cells adds to a sweep of the store: it cannot be used with --from" in refused.stderr
    (short / "empty").mkdir()
    refused = grokscope("sweep", "mine.toml", "--cells", "empty", cwd=short, check=False)
    assert refused.returncode == 2
    assert "there is no table of cells (.csv) in empty" in refused.stderr


def test_sweeps_are_renamed_and_deleted(short: Path) -> None:
    store = short / "grokscope-runs"
    grokscope("sweep", "mine.toml", cwd=short)
    grokscope("sweep", "mine.toml", "--name", "two", "--set", "training.seed=1", "--grid", "1x1", cwd=short)
    grokscope("sweep", "mine.toml", "--name", "part", "--grid", "1x1", cwd=short)
    assert "mine is now first" in grokscope("sweeps", "rename", "mine", "first", cwd=short).stderr
    assert {sweep.name for sweep in Store(store).sweeps()} == {"first", "two", "part"}
    assert "6 cells run" in grokscope("phase-diagram", "first", "--out", "first.csv", cwd=short).stderr
    for arguments, words in {
        ("rename", "mine", "x"): "there is no sweep 'mine'",
        ("rename", "first", "two"): "there is a sweep 'two'",
        ("rename", "first", "a\nb"): "a name has letters, digits",
        ("rename", "first", "../x"): "a sweep cannot be called '../x'",
        ("rename", "first", "x.toml"): "that is a file",
        ("rename", "first", "fig03b"): "that is one of the paper's",
        ("delete", "mine"): "there is no sweep 'mine'",
    }.items():
        refused = grokscope("sweeps", *arguments, cwd=short, check=False)
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr
    assert "its runs stay" in grokscope("sweeps", "delete", "two", "--yes", cwd=short).stderr
    assert len(contents(store)) == 7
    done = grokscope("sweeps", "delete", "first", "--with-runs", "--yes", cwd=short)
    assert "and 5 runs" in done.stderr, "one belongs to another sweep"
    assert len(contents(store)) == 2
    assert [sweep.name for sweep in Store(store).sweeps()] == ["part"]
    assert "is sound" in grokscope("store", "check", cwd=short).stderr


def test_an_unfinished_sweep_can_be_looked_at(short: Path) -> None:
    done = grokscope("sweep", "mine.toml", "--limit", "2", cwd=short)
    assert "4 of 6 runs are left to do" in done.stderr
    shown = grokscope("phase-diagram", "mine", "--out", "mine.csv", cwd=short)
    assert "2 cells run, 4 cells missing" in shown.stderr
    assert sum(row["source"] == "missing" for row in rows_of(short / "mine.csv")) == 4
    grokscope("phase-diagram", "mine", cwd=short)
    assert (short / "grokscope-figures" / "mine.png").exists()


def test_the_paper_sweep_thinned_and_changed(tmp_path: Path) -> None:
    grokscope(
        "sweep", "fig3a", "--grid", "2x2", "--set", "task.modulus=11", "--set", "model.width=24", "--set",
        "training.steps=20", "--set", "optimizer.weight_decay=5", "--name", "tiny", cwd=tmp_path,
    )  # fmt: skip
    runs = Store(tmp_path / "grokscope-runs").all()
    assert {(run.spec.task.data_fraction, run.spec.task.corruption) for run in runs} == {
        (0.1, 0.0), (0.1, 0.9), (0.9, 0.0), (0.9, 0.9),
    }  # fmt: skip
    assert {run.spec.optimizer.weight_decay for run in runs} == {5.0}
    assert "tiny" in grokscope("status", cwd=tmp_path).stdout


def test_another_sweep_of_the_same_name_is_announced(short: Path) -> None:
    grokscope("sweep", "mine.toml", "--limit", "1", cwd=short)
    other = grokscope("sweep", "mine.toml", "--grid", "2x2", "--limit", "1", cwd=short)
    assert "the name now means this one" in other.stderr
    assert len(Store(short / "grokscope-runs").cells("mine")) == 4


def test_refinement_runs_less_and_marks_what_it_inferred(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        SWEEP.format(steps=1)
        .replace("[0.3, 0.6, 0.9]", "{ from = 0.1, to = 0.9, count = 9 }")
        .replace("[0, 0.3]", "{ from = 0, to = 0.8, count = 9 }")
    )
    done = grokscope("sweep", "mine.toml", "--refine", cwd=tmp_path)
    assert re.search(r"Done: 9 of 81 cells were run, the others are inferred", done.stderr)  # confused everywhere
    grokscope("phase-diagram", "mine", "--out", "mine.csv", cwd=tmp_path)
    rows = rows_of(tmp_path / "mine.csv")
    assert sum(row["source"] == "run" for row in rows) == 9
    assert sum(row["source"] == "inferred" for row in rows) == 72
    assert {row["outcome"] for row in rows} == {"confusion"}
    grokscope("phase-diagram", "mine", cwd=tmp_path)
    assert " (refined) " in grokscope("status", cwd=tmp_path).stdout
    grokscope("sweep", "mine.toml", "--limit", "1", cwd=tmp_path)  # no longer refined: what is missing is missing
    assert "71 cells missing" in grokscope("phase-diagram", "mine", "--out", "mine.csv", cwd=tmp_path).stderr


def test_runs_can_be_selected(short: Path) -> None:
    grokscope("sweep", "mine.toml", cwd=short)

    def fractions(*conditions: str) -> list[float]:
        arguments = [word for condition in conditions for word in ("--where", condition)]
        listed = json.loads(grokscope("runs", "list", "--json", *arguments, cwd=short).stdout)
        return sorted(run["spec"]["task"]["data_fraction"] for run in listed)

    assert fractions("task.corruption=0.3") == [0.3, 0.6, 0.9]
    assert fractions("task.corruption = 0", "task.data_fraction>=0.6") == [0.6, 0.9]
    assert fractions("model.tie_weights=false", "model.kind=mlp", "task.corruption=0") == [0.3, 0.6, 0.9]
    assert fractions("model.tie_weights=true") == []
    assert "The newest 2 of 6 runs" in grokscope("runs", "list", "--limit", "2", cwd=short).stderr
    for condition, message in (
        ("task.corruptio=1", "did you mean 'corruption'"),
        ("corruption", "must be such as"),
        ("phase=happy", "must be one of coexistence"),
        ("task.corruption=high", "is a finite number"),
        ("task.operation=addd", "task.operation = 'addd' is not allowed"),
        ("model.tie_weights=maybe", "model.tie_weights is true or false"),
        ("model.tie_weights<true", "is compared with = or !="),
        ("phase<confusion", "is compared with = or !="),
        ("task.modulus=99999999999999999999", "no task.modulus is as large"),
    ):
        refused = grokscope("runs", "list", "--where", condition, cwd=short, check=False)
        assert refused.returncode == 2
        assert message in refused.stderr


# ---- what it survives -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, ...]]:
    """The long sweep, run to its end in peace."""
    directory = tmp_path_factory.mktemp("peace")
    (directory / "mine.toml").write_text(SWEEP.format(steps=LONG))
    grokscope("sweep", "mine.toml", cwd=directory)
    return contents(directory / "grokscope-runs")


def test_a_killed_sweep_goes_on(long: Path, uninterrupted: dict[str, tuple[object, ...]]) -> None:
    store = long / "grokscope-runs"
    for seconds in (0.1, 0.6, 0.3):
        process = start("sweep", "mine.toml", cwd=long)
        wait_until(lambda: bool(running(store)), "a run has started")
        time.sleep(seconds)
        process.kill()
        process.communicate()
    grokscope("sweep", "mine.toml", cwd=long)
    assert contents(store) == uninterrupted


def test_ctrl_c_checkpoints_and_the_same_command_goes_on(
    long: Path, uninterrupted: dict[str, tuple[object, ...]]
) -> None:
    store = long / "grokscope-runs"
    process = start("sweep", "mine.toml", "--workers", "2", cwd=long)
    wait_until(lambda: len(running(store)) == 2, "two runs have started")
    time.sleep(0.5)
    under_way = running(store)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopping: saving where the runs under way stand" in errors
    assert "The same command goes on." in errors
    assert "Traceback" not in output + errors
    specs = [spec for spec in Plan.from_file(long / "mine.toml").specs() if spec.run_id in under_way]
    checkpoints = [found for spec in specs if (found := Store(store).load_checkpoint(spec))]
    assert checkpoints
    assert all(0 < checkpoint.state.step < LONG for checkpoint in checkpoints)
    assert running(store) == set()
    grokscope("sweep", "mine.toml", cwd=long)
    assert contents(store) == uninterrupted
    assert not list((store / "checkpoints").iterdir())


def test_a_terminated_sweep_checkpoints_too(long: Path) -> None:
    process = start("sweep", "mine.toml", cwd=long)
    wait_until(lambda: bool(running(long / "grokscope-runs")), "a run has started")
    os.killpg(process.pid, signal.SIGTERM)  # as a cluster's scheduler does
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert list((long / "grokscope-runs" / "checkpoints").iterdir())


def test_a_sweep_whose_terminal_is_closed_checkpoints_too(long: Path) -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "grokscope", "sweep", "mine.toml"],
        cwd=long, stdin=child, stdout=child, stderr=child, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(child)
    wait_until(lambda: bool(running(long / "grokscope-runs")), "a run has started")
    os.close(parent)  # everybody in it gets SIGHUP, and nothing can be written to it any more
    process.wait(timeout=60)
    assert running(long / "grokscope-runs") == set()
    assert list((long / "grokscope-runs" / "checkpoints").iterdir())


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        SWEEP.format(steps=10).replace("modulus = 11", "modulus = 113").replace("width = 24", "width = 40000")
    )
    process = start("sweep", "mine.toml", cwd=tmp_path)  # a step takes many seconds
    wait_until(lambda: bool(running(tmp_path / "grokscope-runs")), "a run has started")
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 130
    assert "Traceback" not in errors
    wait_until(lambda: not (workers & children(process.pid)), "the workers end")


def test_a_killed_worker_is_a_failed_run(long: Path, uninterrupted: dict[str, tuple[object, ...]]) -> None:
    store = long / "grokscope-runs"
    process = start("sweep", "mine.toml", "--workers", "1", cwd=long)
    wait_until(lambda: bool(running(store)), "a run has started")
    (killed,) = running(store)
    with sqlite3.connect(store / "index.sqlite") as index:
        (owner,) = index.execute("SELECT owner FROM leases").fetchone()
    index.close()
    os.kill(int(owner.split("/")[1]), signal.SIGKILL)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1, errors
    assert "1 runs failed" in errors
    assert "FAILED: the worker process was killed by SIGKILL" in errors
    assert contents(store).keys() == uninterrupted.keys() - {killed}
    listed = grokscope("status", "mine", cwd=long).stdout
    assert f"failed {killed}" in listed
    assert "killed by SIGKILL" in listed
    assert "1 cells failed" in grokscope("phase-diagram", "mine", cwd=long).stderr
    again = grokscope("sweep", "mine.toml", cwd=long, check=False)
    assert again.returncode == 1
    assert "5 of 6 runs are in the store" in again.stderr  # failed ones are left alone
    retried = grokscope("sweep", "mine.toml", "--retry-failed", cwd=long)
    assert "1 failed runs will be tried again" in retried.stderr
    assert contents(store) == uninterrupted
    assert Store(store).failures() == []


def test_workers_killed_at_any_moment(short: Path) -> None:
    """Whatever a worker held when it died, the others go on: between runs, while saving, while reporting."""
    store = short / "grokscope-runs"
    process = start("sweep", "mine.toml", "--seeds", "40", "--workers", "2", cwd=short)
    moments = random.Random(0)
    kills = 0
    while process.poll() is None:
        time.sleep(moments.uniform(0, 0.4))
        workers = [pid for pid in children(process.pid) if "spawn_main" in command_line(pid)]
        if workers and kills < 12:
            os.kill(moments.choice(workers), signal.SIGKILL)
            kills += 1
            wait_until(lambda: bool(running(store)) or process.poll() is not None, "work goes on")
    _, errors = process.communicate()
    assert process.returncode == 1, errors
    assert kills > 3
    assert 0 < len(Store(store).failures()) <= kills
    grokscope("sweep", "mine.toml", "--seeds", "40", "--retry-failed", cwd=short)
    assert len(contents(store)) == 240
    peace = short / "peace"
    grokscope("sweep", "mine.toml", "--seeds", "40", "--store", str(peace), cwd=short)
    assert contents(store) == contents(peace)


def test_another_sweep_that_takes_the_name_does_not_disturb(long: Path) -> None:
    process = start("sweep", "mine.toml", "--refine", "--workers", "1", cwd=long)
    wait_until(lambda: bool(running(long / "grokscope-runs")), "a run has started")
    grokscope("sweep", "mine.toml", "--grid", "1x1", "--set", "training.steps=1", cwd=long)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert re.search(r"Done: \d of 6 cells were run, the others are inferred", errors)


@pytest.mark.parametrize("seconds", [0.7, 1.0, 1.3])
def test_ctrl_c_right_after_the_start(long: Path, seconds: float) -> None:
    process = start("sweep", "mine.toml", cwd=long)
    wait_until(lambda: bool(children(process.pid)), "a worker is there")
    time.sleep(seconds - 0.7)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in output + errors


def test_another_engine_starts_anew(long: Path) -> None:
    store = long / "grokscope-runs"
    process = start("sweep", "mine.toml", "--workers", "1", "--engine", "native", cwd=long)
    wait_until(lambda: bool(running(store)), "a run has started")
    time.sleep(0.3)
    process.terminate()
    process.communicate(timeout=60)
    (run_id,) = (file.name.partition("-")[0] for file in (store / "checkpoints").iterdir())
    spec = next(spec for spec in Plan.from_file(long / "mine.toml").specs() if spec.run_id == run_id)
    checkpoint = Store(store).load_checkpoint(spec)
    assert checkpoint is not None
    assert checkpoint.engine == "native"
    short = spec.updated({"training.steps": checkpoint.state.step + 1})  # as if the run were to end soon
    assert repr(execute(short, engine="native", start=checkpoint).curve[:3]) == repr(checkpoint.curve[:3])
    anew = execute(short.updated({"training.steps": 20}), engine="torch", start=checkpoint)
    assert anew.curve[0].step == 1
    assert len(anew.curve) == 11


def test_unfinished_seeds_are_shown_as_such(short: Path) -> None:
    grokscope("sweep", "mine.toml", "--seeds", "2", "--limit", "8", cwd=short)
    shown = grokscope("phase-diagram", "mine", "--out", "mine.csv", cwd=short)
    assert "6 cells run (4 of them not with all seeds)" in shown.stderr
    assert [row["missing"] for row in rows_of(short / "mine.csv")] == ["0", "0", "1", "1", "1", "1"]


def test_two_sweeps_share_the_work(long: Path, uninterrupted: dict[str, tuple[object, ...]]) -> None:
    processes = [start("sweep", "mine.toml", "--workers", "1", cwd=long) for _ in range(2)]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert contents(long / "grokscope-runs") == uninterrupted
    # A run that the other has done is reported with its seconds, too; each was saved once, under one file name.
    assert len(list((long / "grokscope-runs" / "runs").rglob("*.safetensors"))) == 6


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with room for a few runs."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting needs root")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk_stops_the_sweep_and_loses_nothing(small_disk: Path, short: Path) -> None:
    store = small_disk / "runs"
    many = ["sweep", "mine.toml", "--seeds", "20", "--store", str(store)]
    stopped = grokscope(*many, cwd=short, check=False)
    assert stopped.returncode == 2
    # It is met by whatever comes first: opening the store, leasing a run, or writing one.
    assert re.search(r"cannot [a-z]+ .* (No space left on device|database or disk is full)", stopped.stderr)
    assert "Traceback" not in stopped.stderr
    saved = contents(store)
    assert 0 < len(saved) < 120
    assert stopped.stderr.count(" of 120: ") == len(saved)
    assert f"{len(saved)}" in grokscope("status", "--store", str(store), cwd=short).stdout

    subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
    grokscope(*many, cwd=short)
    assert len(contents(store)) == 120
    assert saved.items() <= contents(store).items()


def test_a_write_that_fails_stops_the_sweep(short: Path) -> None:
    """As a full disk, where mounting one is not allowed."""
    grokscope("sweep", "mine.toml", "--limit", "1", cwd=short)
    with sqlite3.connect(short / "grokscope-runs" / "index.sqlite") as index:
        index.execute("CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    index.close()
    stopped = grokscope("sweep", "mine.toml", cwd=short, check=False)
    assert stopped.returncode == 2
    assert re.search(r"cannot write run \w+ to the store grokscope-runs: disk is full", stopped.stderr)
    assert len(contents(short / "grokscope-runs")) == 1
    assert running(short / "grokscope-runs") == set()


# ---- while it runs --------------------------------------------------------------------------------------------------


def test_in_a_terminal_the_diagram_fills_in(short: Path) -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "grokscope", "sweep", "mine.toml"],
        cwd=short, stdin=child, stdout=child, stderr=child,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "COLORTERM": "truecolor"},
    )  # fmt: skip
    os.close(child)
    screen = b""
    while process.poll() is None or select.select([parent], [], [], 0.2)[0]:
        if select.select([parent], [], [], 0.2)[0]:
            try:
                screen += os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
    os.close(parent)
    text = screen.decode()
    assert process.wait() == 0
    assert "▀" in text
    assert "6 of 6 runs" in text
    assert "a minute" in text
    assert "memorization" in text


# ---- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig3"], "there is no sweep 'fig3': name one of fig3a, fig3b, "),
        (["nothing.toml"], "cannot read the sweep nothing.toml: No such file or directory"),
        (["typo.toml"], "unknown key axs"),
        (["fig3a", "--set", "task.modulo=3"], "unknown key task.modulo"),
        (["fig3a", "--set", "task.modulus"], "must be a field and its value"),
        (["fig3a", "--set", "task.modulus=3", "--set", "task.modulus=5"], "names task.modulus twice"),
        (["fig3a", "--set", "task.modulus=many"], "task.modulus = 'many' is not allowed"),
        (["fig3a", "--grid", "5"], "must be two numbers such as 5x5"),
        (["fig3a", "--seeds", "0"], "should be greater than or equal to 1"),
        (["fig3a", "--seeds", "100000"], "at most 150,000 are allowed"),
        (["fig3a", "--seeds", "1000000000"], "at most 150,000 runs are allowed"),
        (["fig3a", "--workers", "²"], "must be auto or a number of at least 1"),
        (["fig3a", "--grid", "²x5"], "must be two numbers such as 5x5"),
        (["fig3a", "--name", "[red]x"], "a sweep cannot be called '[red]x'"),
        (["fig3a", "--workers", "none"], "must be auto or a number of at least 1"),
        (["fig3a", "--workers", "1000000000"], "workers = 1000000000 is not allowed: at most "),
        (["fig3a", "--workers", "9" * 5000], "must be auto or a number of at least 1"),
        (["x" * 5000], "there is no sweep 'xxx"),
        (["fig3a", "--engine", "warp"], "engine = 'warp' is not allowed"),
    ],
)
def test_bad_input_is_one_line_and_runs_nothing(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "typo.toml").write_text('[axs]\n"task.modulus" = [5]\n')
    refused = grokscope("sweep", *arguments, cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "grokscope-runs").exists()


def test_unknown_sweeps_and_endings(short: Path) -> None:
    grokscope("sweep", "mine.toml", "--limit", "1", cwd=short)
    for arguments, message in (
        (["phase-diagram", "mien"], "there is no sweep 'mien' in the store grokscope-runs: it has mine; did you mean"),
        (["status", "mien"], "there is no sweep 'mien'"),
        (["phase-diagram", "mine", "--out", "mine.doc"], "must end in .png, .pdf, .svg or .csv"),
        (["phase-diagram", "mine", "--store", "nowhere"], "there is no store at nowhere"),
    ):
        refused = grokscope(*arguments, cwd=short, check=False)
        assert refused.returncode == 2
        assert message in refused.stderr


def test_a_run_that_is_refused_by_its_engine_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[axes]\n"task.kind" = ["modular", "parity"]\n')
    refused = grokscope("sweep", "mine.toml", "--engine", "native", cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert "engine = 'native' cannot run this" in refused.stderr


def test_single_specs_are_unchanged_by_sweeps() -> None:
    """A cell's run is the run of `grokscope train` with the same settings: the ids agree."""
    assert RunSpec().updated({"task.data_fraction": 0.5}).run_id == RunSpec().run_id

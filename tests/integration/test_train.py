"""`grokscope train` through interruptions: real processes and signals."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from tests.integration.processes import children, grokscope, start, wait_until

from grokscope import Store, run

# Some seconds even with AVX-512: long enough to be interrupted in the middle, or waited for.
STEPS = 240_000
LONG = (
    "train",
    "--modulus",
    "11",
    "--width",
    "24",
    "--steps",
    f"{STEPS}",
    "--measure-every",
    "4000",
    "--dropout",
    "0.1",
)
TINY = ("train", "--modulus", "11", "--width", "24", "--steps", "30", "--json")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The long run, trained in peace."""
    return curve_of(grokscope(*LONG, "--json", cwd=tmp_path_factory.mktemp("peace")))


def curve_of(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    result = json.loads(done.stdout)
    return {key: result[key] for key in ("run_id", "phase", "curve", "engine")}


def is_under_way(cwd: Path) -> bool:
    return (cwd / "grokscope-runs" / "index.sqlite").exists() and bool(Store(cwd / "grokscope-runs").running())


def start_and_wait(cwd: Path, *arguments: str) -> subprocess.Popen[str]:
    process = start(*LONG, *arguments, cwd=cwd)
    wait_until(lambda: is_under_way(cwd), "the run has started")
    time.sleep(0.3)
    return process


def checkpointed_step(cwd: Path, run_id: object) -> int:
    content = Store(cwd / "grokscope-runs").checkpoint_content(str(run_id))
    return int(content.record["step"]) if content and content.record else 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_goes_on_to_the_same_result(
    tmp_path: Path, uninterrupted: dict[str, object], number: signal.Signals
) -> None:
    process = start_and_wait(tmp_path)
    assert not children(process.pid)  # it trains in the process that was started
    os.killpg(process.pid, number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == ""
    assert "Stopping: saving where the runs under way stand" in errors
    assert "Stopped. The same command goes on." in errors
    assert "Traceback" not in errors
    assert not is_under_way(tmp_path)
    assert Store(tmp_path / "grokscope-runs").all() == []
    assert 0 < checkpointed_step(tmp_path, uninterrupted["run_id"]) < STEPS
    assert "1 run with a checkpoint to go on from" in grokscope("status", cwd=tmp_path).stderr
    assert curve_of(grokscope(*LONG, "--json", cwd=tmp_path)) == uninterrupted
    assert not list((tmp_path / "grokscope-runs" / "checkpoints").iterdir())


def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path: Path, uninterrupted: dict[str, object]) -> None:
    process = start_and_wait(tmp_path)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    saved = checkpointed_step(tmp_path, uninterrupted["run_id"])
    assert saved > 0
    process = start_and_wait(tmp_path)
    process.kill()
    _, errors = process.communicate()
    logged = [int(step) for step in re.findall(rf"step (\d+) of {STEPS}", errors)]
    assert all(step > saved for step in logged)  # what was done is not done again
    assert checkpointed_step(tmp_path, uninterrupted["run_id"]) >= saved
    assert curve_of(grokscope(*LONG, "--json", cwd=tmp_path)) == uninterrupted


def test_of_two_commands_at_once_one_trains_and_the_other_waits(
    tmp_path: Path, uninterrupted: dict[str, object]
) -> None:
    first = start_and_wait(tmp_path, "--json")
    second = start(*LONG, "--json", cwd=tmp_path)
    outputs = [process.communicate(timeout=300) for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), outputs
    results = [json.loads(output) for output, _ in outputs]
    assert results[0] == results[1]  # the seconds too: it was trained once
    assert results[0]["curve"] == uninterrupted["curve"]
    assert f"Run {uninterrupted['run_id']} is being trained by process {first.pid}: waiting for it." in outputs[1][1]
    assert "waiting" not in outputs[0][1]
    assert len(list((tmp_path / "grokscope-runs" / "runs").rglob("*.safetensors"))) == 1


def test_who_waits_for_a_process_that_is_killed_takes_over(tmp_path: Path, uninterrupted: dict[str, object]) -> None:
    first = start_and_wait(tmp_path)
    second = start(*LONG, "--json", cwd=tmp_path)
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    first.kill()
    first.communicate()
    output, errors = second.communicate(timeout=300)
    assert second.returncode == 0, errors
    assert json.loads(output)["curve"] == uninterrupted["curve"]


def test_waiting_can_be_interrupted(tmp_path: Path) -> None:
    first = start_and_wait(tmp_path)
    second = start(*LONG, cwd=tmp_path)
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    second.send_signal(signal.SIGINT)
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 130
    assert "The same command goes on." in errors
    assert first.poll() is None
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)


def test_a_forced_run_that_is_interrupted_leaves_the_stored_one(
    tmp_path: Path, uninterrupted: dict[str, object]
) -> None:
    grokscope(*LONG, "--save-weights", cwd=tmp_path)
    (before,) = Store(tmp_path / "grokscope-runs").all()
    process = start_and_wait(tmp_path, "--force")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert Store(tmp_path / "grokscope-runs").all() == [before]
    kept = grokscope(*LONG, "--json", cwd=tmp_path)
    assert "is in the store already" in kept.stderr
    assert json.loads(kept.stdout)["seconds"] == before.seconds
    assert curve_of(grokscope(*LONG, "--force", "--json", cwd=tmp_path)) == uninterrupted
    (after,) = Store(tmp_path / "grokscope-runs").all()
    assert after.file != before.file
    assert after.has_weights  # what was asked for once is not taken away


def test_a_run_that_a_sweep_began_is_finished_by_train(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        "[base.task]\nmodulus = 11\n[base.model]\nwidth = 24\ndropout = 0.1\n[base.training]\nsteps = 240000\n"
        'measure_every = 4000\n[axes]\n"training.seed" = [0]\n'
    )
    process = start("sweep", "mine.toml", cwd=tmp_path)
    wait_until(lambda: is_under_way(tmp_path), "the run has started")
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    step = checkpointed_step(
        tmp_path, *(file.name[:16] for file in (tmp_path / "grokscope-runs/checkpoints").iterdir())
    )
    done = grokscope(*LONG, cwd=tmp_path)
    logged = [int(step) for step in re.findall(rf"step (\d+) of {STEPS}", done.stderr)]
    assert min(logged) > step > 0
    assert "1 of 1 runs are in the store" in grokscope("sweep", "mine.toml", cwd=tmp_path).stderr


def test_an_engine_that_was_asked_for_trains_again(tmp_path: Path) -> None:
    engines = [
        json.loads(grokscope(*TINY, *arguments, cwd=tmp_path).stdout)["engine"]
        for arguments in ((), ("--engine", "torch"), (), ("--engine", "stacked"))
    ]
    assert engines == ["native", "torch", "torch", "stacked"]


def test_a_killed_run_goes_on_to_the_same_snapshots(tmp_path: Path, uninterrupted: dict[str, object]) -> None:
    """Killed at once, without a word, after an interruption that left a checkpoint."""
    process = start_and_wait(tmp_path, "--snapshots", "all")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    store = Store(tmp_path / "grokscope-runs")
    checkpoint = store.checkpoint_content(str(uninterrupted["run_id"]))
    assert checkpoint is not None
    assert any(name.startswith("snapshots.1.") for name in checkpoint.arrays)
    process = start_and_wait(tmp_path, "--snapshots", "all")
    process.kill()
    process.communicate()
    assert curve_of(grokscope(*LONG, "--json", "--snapshots", "all", cwd=tmp_path)) == uninterrupted
    result = store.load(str(uninterrupted["run_id"]))
    whole = run(result.spec, snapshots="all")
    assert list(result.snapshots) == list(whole.snapshots) == result.spec.training.measured_steps()
    for step, weights in result.snapshots.items():
        for name, array in weights.items():
            np.testing.assert_array_equal(array, whole.snapshots[step][name])
    assert "snapshots            70" in grokscope("runs", "show", result.run_id, cwd=tmp_path).stdout


def test_an_export_has_the_snapshots(tmp_path: Path) -> None:
    run_id = json.loads(grokscope(*TINY, "--snapshots", "2", cwd=tmp_path).stdout)["run_id"]
    grokscope("runs", "export", run_id, "--out", "run.safetensors", cwd=tmp_path)
    arrays = safetensors.numpy.load_file(tmp_path / "run.safetensors")
    assert {name for name in arrays if name.startswith("snapshots.")} == {
        f"snapshots.{step}.{name}" for step in (1, 30) for name in ("U", "V", "W")
    }
    np.testing.assert_array_equal(arrays["snapshots.30.W"], arrays["weights.W"])


def test_a_number_of_snapshots_that_is_none_is_refused(tmp_path: Path) -> None:
    for command in (("train", "--snapshots", "few"), ("sweep", "fig3a", "--dry-run", "--snapshots", "0")):
        done = grokscope(*command, cwd=tmp_path, check=False)
        assert done.returncode == 2
        assert "--snapshots = " in done.stderr
        assert "must be all, or a number of at least 1" in done.stderr

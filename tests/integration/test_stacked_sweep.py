"""Sweeps in which a worker advances many runs together, as it does on a GPU."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.processes import grokscope, start, wait_until
from tests.integration.test_sweep import SWEEP, contents, running
from tests.together import train_together

from grokscope import EngineError, RunSpec, Store, run
from grokscope.engines import runs_that_fit
from grokscope.sweeps import Failed, Finished, Measured, Running, Started, run_all, worker
from grokscope.training import Job, RunGroup


@pytest.fixture
def specs(tiny: RunSpec) -> list[RunSpec]:
    """Two shapes, three runs of each."""
    wide = tiny.updated({"model.width": 20})
    return [spec.updated({"training.seed": seed}) for seed in range(3) for spec in (tiny, wide)]


def work_here(store: Store, specs: list[RunSpec], *, stop: bool = False) -> None:
    """A worker in this process, to which nobody listens."""
    running = Running(engine="stacked", weights=True)
    for _ in worker.Worker(store, running, lambda: stop).take(list(enumerate(specs))):
        pass


def test_the_runs_are_those_of_single_engines(specs: list[RunSpec], tmp_path: Path) -> None:
    events = list(run_all(specs, tmp_path, Running(engine="stacked", weights=True)))
    assert {event.index for event in events if isinstance(event, Finished)} == set(range(6))
    assert {event.index for event in events if isinstance(event, Started)} == set(range(6))
    assert {event.index for event in events if isinstance(event, Measured)} == set(range(6))
    store = Store(tmp_path)
    for spec in specs:
        stored, alone = store.load(spec.run_id), run(spec, engine="torch")
        assert stored.engine == "stacked"
        assert stored.phase == alone.phase
        assert [row.step for row in stored.curve] == [row.step for row in alone.curve]
        assert stored.final.train_loss == pytest.approx(alone.final.train_loss, rel=1e-3)
        assert stored.weights is not None
        assert alone.weights is not None
        np.testing.assert_allclose(stored.weights["U"], alone.weights["U"], rtol=1e-2, atol=1e-4)
    assert not list(run_all(specs[:0], tmp_path, Running(engine="stacked")))
    assert all(not isinstance(event, Started) for event in run_all(specs, tmp_path, Running(engine="stacked")))


def test_a_stack_is_as_large_as_the_memory(
    specs: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(stack: list[Job], **options: Any) -> object:
        sizes.append(len(stack))
        return RunGroup(stack, **options)

    monkeypatch.setattr(worker, "RunGroup", counted)
    monkeypatch.setattr(worker, "runs_that_fit", lambda *_: 2)
    store = Store(tmp_path)
    work_here(store, specs[::2])
    assert sizes == [2, 1]
    assert len(store.all()) == 3


def test_memory_estimates_follow_the_runs() -> None:
    small = RunSpec()
    for larger in ({"model.width": 2000}, {"task.modulus": 197}, {"model.depth": 4}, {"model.dropout": 0.5}):
        assert runs_that_fit(small, "cpu") > runs_that_fit(small.updated(larger), "cpu") >= 1
    assert runs_that_fit(small, "cpu") < runs_that_fit(small.updated({"training.batch_size": 64}), "cpu")
    assert runs_that_fit(small.updated({"model.width": 10**6}), "cpu") == 1


def test_a_stack_that_is_too_large_after_all_is_halved(
    specs: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def limited(stack: list[Job], **options: Any) -> object:
        sizes.append(len(stack))
        if len(stack) > 1:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return RunGroup(stack, **options)

    monkeypatch.setattr(worker, "RunGroup", limited)
    store = Store(tmp_path)
    work_here(store, specs[::2])
    assert sizes == [3, 1, 2, 1, 1]
    assert len(store.all()) == 3
    assert store.failures() == []
    assert store.running() == set()


def test_what_goes_wrong_in_a_stack_is_stored_for_each_run(
    specs: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise ValueError("no such luck")

    monkeypatch.setattr(worker, "RunGroup", broken)
    store = Store(tmp_path)
    work_here(store, specs[::2])
    assert {failure.error for failure in store.failures()} == {"ValueError: no such luck"}
    assert len(store.failures()) == 3
    monkeypatch.undo()
    assert not [event for event in run_all(specs, tmp_path, Running(engine="stacked")) if isinstance(event, Failed)]


def test_a_stop_checkpoints_all_runs_of_a_stack(specs: list[RunSpec], tmp_path: Path) -> None:
    store, stack = Store(tmp_path), specs[::2]
    work_here(store, stack, stop=True)
    checkpoints = [store.load_checkpoint(spec) for spec in stack]
    assert all(checkpoint and 0 < checkpoint.state.step < 30 for checkpoint in checkpoints)
    assert store.running() == set()
    work_here(store, stack)
    for spec, alone in zip(stack, train_together([Job(spec) for spec in stack]), strict=True):
        assert repr(store.load(spec.run_id).curve) == repr(alone.curve)


def test_a_killed_stacked_sweep_goes_on_to_the_same_results(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SWEEP.format(steps=1500))
    store, peace = tmp_path / "grokscope-runs", tmp_path / "peace"
    arguments = ("sweep", "mine.toml", "--engine", "stacked")
    grokscope(*arguments, "--store", str(peace), cwd=tmp_path)
    process = start(*arguments, cwd=tmp_path)
    wait_until(lambda: len(running(store)) == 6, "all runs are under way")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 130, errors
    assert "The same command goes on" in errors
    assert len(list((store / "checkpoints").iterdir())) == 6
    process = start(*arguments, cwd=tmp_path)
    wait_until(lambda: len(running(store)) == 6, "all runs are under way")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not running(store), "the last worker is dead")  # runs of one stack must be free together
    done = grokscope(*arguments, cwd=tmp_path)
    assert "6 of 6 runs are in the store" in done.stderr
    assert contents(store) == contents(peace)


def test_a_sweep_stacks_on_every_device_but_the_cpu() -> None:
    assert [Running(device=device).engine_used for device in ("cpu", "cuda", "cuda:1", "mps")] == [
        "auto",
        *["stacked"] * 3,
    ]
    assert Running(engine="torch", device="cuda").engine_used == "torch"


def test_a_device_that_is_not_there(tiny: RunSpec, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SWEEP.format(steps=30))
    for command, device, message in (
        (("sweep", "mine.toml"), "cuda:7", "is not here: must be one of cpu"),
        (("train", "--modulus", "7", "--steps", "1"), "gpu", "is not a device"),
    ):
        done = grokscope(*command, "--device", device, cwd=tmp_path, check=False)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "grokscope-runs").exists()
    with pytest.raises(EngineError, match="is not here"):
        run(tiny, device="cuda")


def test_a_dry_run_measures_a_stack(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SWEEP.format(steps=30))
    planned = grokscope("sweep", "mine.toml", "--engine", "stacked", "--dry-run", cwd=tmp_path)
    assert "with 1 worker" in planned.stdout

"""Real worker processes."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from tests.integration.processes import children, is_running, start, wait_until

from grokscope import EngineError, GrokscopeError, RunSpec, Store, run
from grokscope.sweeps import Failed, Finished, Measured, Running, Started, run_all, worker
from grokscope.sweeps.running import available_cores


def test_results_do_not_depend_on_the_number_of_workers(tiny: RunSpec, tmp_path: Path) -> None:
    specs = [tiny.updated({"training.seed": seed, "model.dropout": 0.2}) for seed in range(3)]
    alone = [run(spec).curve for spec in specs]
    for workers in (1, 2):
        store = tmp_path / str(workers)
        finished = {
            event.index for event in run_all(specs, store, Running(workers=workers)) if isinstance(event, Finished)
        }
        assert finished == {0, 1, 2}
        assert [Store(store).load(spec.run_id).curve for spec in specs] == alone


def test_events_come_in_order(tiny: RunSpec, tmp_path: Path) -> None:
    events = list(run_all([tiny, tiny.updated({"training.seed": 1})], tmp_path))
    for index in (0, 1):
        mine = [event for event in events if event.index == index]
        assert isinstance(mine[0], Started)
        assert isinstance(mine[-1], Finished)
        steps = [event.measurement.step for event in mine if isinstance(event, Measured)]
        assert steps[0] == 1
        assert steps == sorted(steps)
        assert set(steps) <= set(tiny.training.measured_steps())


def test_nothing_to_do(tmp_path: Path) -> None:
    assert list(run_all([], tmp_path)) == []


def test_a_run_that_is_wanted_twice_is_done_once(tiny: RunSpec, tmp_path: Path) -> None:
    events = list(run_all([tiny, tiny, tiny], tmp_path, Running(workers=2)))
    assert sum(isinstance(event, Started) for event in events) == 1
    assert {event.index for event in events if isinstance(event, Finished)} == {0, 1, 2}


def test_batches_wait_for_each_other(tiny: RunSpec, tmp_path: Path) -> None:
    specs = [tiny.updated({"training.seed": seed}) for seed in range(4)]
    seen: list[int] = []

    def batches() -> Iterator[list[int]]:
        yield [2, 0]
        seen.append(len(Store(tmp_path).all()))
        yield [3]
        seen.append(len(Store(tmp_path).all()))

    events = list(run_all(specs, tmp_path, Running(workers=2), batches=batches()))
    assert {event.index for event in events if isinstance(event, Finished)} == {0, 2, 3}
    assert seen == [2, 3]


def test_an_error_in_a_run_is_stored_and_the_others_go_on(tiny: RunSpec, tmp_path: Path) -> None:
    specs = [tiny, tiny.updated({"model.activation": "gelu"}), tiny.updated({"training.seed": 1})]
    events = list(run_all(specs, tmp_path, Running(workers=1, engine="native")))
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.index == 1
    assert "engine = 'native' cannot run this" in failed.error
    assert {event.index for event in events if isinstance(event, Finished)} == {0, 2}
    (failure,) = Store(tmp_path).failures()
    assert failure.traceback.startswith("Traceback (most recent call last)")


def test_a_worker_killed_while_it_trains_again_for_the_weights_has_failed(tiny: RunSpec, tmp_path: Path) -> None:
    spec = tiny.updated({"training.steps": 500_000, "training.measure_every": 1000})
    store = Store(tmp_path)
    store.save(replace(run(tiny), spec=spec))
    events = []
    for event in run_all([spec], tmp_path, Running(workers=1, weights=True)):
        events.append(event)
        if isinstance(event, Measured) and not store.failures():
            for process in multiprocessing.active_children():
                process.kill()
    assert isinstance(events[-1], Failed)
    assert [failure.run_id for failure in store.failures()] == [spec.run_id]
    assert store.without_weights([spec.run_id]) == [spec.run_id]


def test_a_worker_that_cannot_start_is_an_error(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grokscope.sweeps.pool.work", len)  # fails in the new process, which can find it
    with pytest.raises(GrokscopeError, match=r"a worker process ended with exit status 1"):
        list(run_all([tiny], tmp_path))


def test_a_long_run_is_checkpointed_on_its_way(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without being asked to stop: a run that dies before it is saved goes on from its last checkpoint."""
    monkeypatch.setattr(worker, "CHECKPOINT_SECONDS", 0.0)
    store = Store(tmp_path)
    worker_here = worker.Worker(store, Running(), lambda: False)
    with monkeypatch.context() as broken:
        broken.setattr(store, "save", lambda *_, **__: 1 / 0)  # as if it were killed here
        with pytest.raises(ZeroDivisionError):
            list(worker_here.take([(0, tiny)]))
    checkpoint = store.load_checkpoint(tiny)
    assert checkpoint is not None
    assert 0 < checkpoint.state.step < tiny.training.steps
    said = list(worker_here.take([(0, tiny)]))
    steps = [message.measurement.step for message in said if isinstance(message, Measured)]
    assert min(steps) > checkpoint.state.step  # what was done is not done again
    assert store.load(tiny.run_id).curve == run(tiny).curve


def test_without_processes_the_same_is_done_here(tiny: RunSpec, tmp_path: Path) -> None:
    specs = [tiny, tiny.updated({"training.seed": 1}), tiny]
    here = list(run_all(specs, tmp_path / "here", Running(workers=0)))
    assert not multiprocessing.active_children()
    assert [event.index for event in here if isinstance(event, Started)] == [0, 1]
    assert [event.index for event in here if isinstance(event, Finished)] == [0, 1, 2]
    list(run_all(specs, tmp_path / "there", Running(workers=2)))
    for spec in specs:
        assert Store(tmp_path / "here").load(spec.run_id).curve == Store(tmp_path / "there").load(spec.run_id).curve


def test_without_processes_an_error_comes_out_as_it_is(tiny: RunSpec, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot run this"):
        list(run_all([tiny.updated({"model.activation": "gelu"})], tmp_path, Running(workers=0, engine="native")))
    assert Store(tmp_path).failures() == []
    assert Store(tmp_path).running() == set()


def test_who_leaves_the_loop_gives_the_run_back(tiny: RunSpec, tmp_path: Path) -> None:
    events = run_all([tiny], tmp_path, Running(workers=0))
    assert isinstance(next(events), Started)
    assert Store(tmp_path).running() == {tiny.run_id}
    events.close()
    assert Store(tmp_path).running() == set()


def test_a_run_can_be_done_again_and_stays_until_then(tiny: RunSpec, tmp_path: Path) -> None:
    list(run_all([tiny], tmp_path, Running(workers=0)))
    store = Store(tmp_path)
    first = store.find(tiny.run_id)
    assert first is not None
    for event in run_all([tiny], tmp_path, Running(workers=0, again=True)):
        before_or_after = store.find(tiny.run_id)
        assert before_or_after is not None
        assert (before_or_after.file == first.file) == (not isinstance(event, Finished))
    assert isinstance(event, Finished)


def test_ctrl_c_on_the_demo_keeps_what_was_done(tmp_path: Path) -> None:
    process = start("demo", cwd=tmp_path)
    index = tmp_path / "grokscope-runs" / "index.sqlite"
    wait_until(lambda: index.exists() and len(Store(index.parent).running()) == min(available_cores(), 3), "runs start")
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    output, errors = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "Traceback" not in output + errors
    assert "The same command goes on" in errors
    wait_until(lambda: not any(is_running(pid) for pid in workers), "the workers end")
    assert len(list((tmp_path / "grokscope-runs" / "checkpoints").iterdir())) == min(available_cores(), 3)


def test_workers_do_not_outlive_a_killed_demo(tmp_path: Path) -> None:
    process = start("demo", cwd=tmp_path)
    wait_until(lambda: len(children(process.pid)) > min(available_cores(), 3), "the workers are there")
    workers = children(process.pid)
    process.kill()
    process.communicate()
    wait_until(lambda: not any(is_running(pid) for pid in workers), "the workers end")


def test_many_processes_may_make_the_same_new_store(tmp_path: Path) -> None:
    """SQLite refuses one of two processes that switch a new index to a write-ahead log at the same moment."""
    processes = multiprocessing.get_context("fork")
    for round_ in range(10):
        together = processes.Barrier(6)

        def make(path: Path, together: Barrier = together) -> None:
            together.wait()
            Store(path).close()

        makers = [processes.Process(target=make, args=(tmp_path / str(round_),)) for _ in range(6)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
        assert [maker.exitcode for maker in makers] == [0] * 6

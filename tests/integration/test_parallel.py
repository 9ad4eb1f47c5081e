"""Real worker processes."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from tests.integration.processes import children, is_running, start, wait_until

from grokscope import EngineError, GrokscopeError, RunSpec, Store, run
from grokscope.sweeps import (
    Failed,
    Finished,
    Measured,
    Running,
    Started,
    StillWaiting,
    Waiting,
    dispatch,
    pool,
    run_all,
    worker,
)
from grokscope.sweeps.running import MOST_STACKED, available_cores
from grokscope.sweeps.stopping import stop_on_request


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
        mine = [event for event in events if not isinstance(event, StillWaiting) and event.index == index]
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
    specs = [tiny, RunSpec().updated({"task.kind": "parity"}), tiny.updated({"training.seed": 1})]
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
    monkeypatch.setattr(pool, "work", len)  # fails in the new process, which can find it
    monkeypatch.setattr(pool, "MOST_FUTILE_STARTS", 1)
    with pytest.raises(GrokscopeError, match=r"a worker process ended with exit status 1.*messages, above, say why"):
        list(run_all([tiny], tmp_path))


@dataclass(frozen=True)
class Unlucky(Running):
    """Fails in every worker process before it can take a run."""

    @property
    def engine_used(self) -> str:
        if multiprocessing.parent_process() is not None:
            raise ValueError("no such luck")
        return super().engine_used


def test_the_traceback_of_a_worker_that_cannot_start_is_shown(
    tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pool, "MOST_FUTILE_STARTS", 1)
    with pytest.raises(GrokscopeError, match=r"as did 1 before it, and none has begun .*: ValueError: no such luck"):
        list(run_all([tiny], tmp_path, Unlucky(workers=1)))
    assert "in engine_used" in capsys.readouterr().err
    assert not multiprocessing.active_children()


def stumble(pipe: object, stop: object, store: Path, running: Running) -> None:
    """A worker process that comes up at the third attempt."""
    attempt = len(list(store.glob("attempt-*")))
    (store / f"attempt-{attempt}").touch()
    if attempt < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    WORK(pipe, stop, store, running)  # type: ignore[arg-type]


WORK = pool.work


def test_a_worker_that_dies_before_it_starts_is_replaced(
    tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "work", stumble)
    events = list(run_all([tiny], tmp_path, Running(workers=1)))
    assert isinstance(events[-1], Finished)
    assert len(list(tmp_path.glob("attempt-*"))) == 3


def come_up_once(pipe: object, stop: object, store: Path, running: Running) -> None:
    """The first worker process does well, and all others die, as where there is memory for one only."""
    attempt = len(list(store.glob("attempt-*")))
    (store / f"attempt-{attempt}").touch()
    if attempt:
        os.kill(os.getpid(), signal.SIGKILL)
    WORK(pipe, stop, store, running)  # type: ignore[arg-type]


def test_a_worker_that_never_comes_up_is_given_up_and_the_others_go_on(
    tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "work", come_up_once)
    monkeypatch.setattr(pool, "MOST_FUTILE_STARTS", 2)
    specs = [tiny.updated({"training.seed": seed, "training.steps": 3000}) for seed in range(4)]
    events = list(run_all(specs, tmp_path, Running(workers=2)))
    assert sum(isinstance(event, Finished) for event in events) == 4
    assert len(list(tmp_path.glob("attempt-*"))) <= 3


class Poison(RunSpec):
    """A run at which every worker process dies that is given it."""

    def __reduce__(self) -> tuple[object, ...]:
        return swallow, ()


def swallow() -> None:
    raise ValueError("no such luck")


def test_a_run_with_which_no_worker_can_begin_has_failed(tiny: RunSpec, tmp_path: Path) -> None:
    """Whatever the reason is: workers are not started for it for ever."""
    poison = Poison(**{name: getattr(tiny, name) for name in tiny.model_fields_set})
    events = list(run_all([poison, tiny.updated({"training.seed": 1})], tmp_path, Running(workers=1)))
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert (failed.index, failed.error) == (0, "the worker process ended with exit status 1: ValueError: no such luck")
    assert [event.index for event in events if isinstance(event, Finished)] == [1]
    (failure,) = Store(tmp_path).failures()
    assert "in swallow" in failure.traceback


def hold(store: Path, run_id: str) -> None:
    """Work on a run for ever."""
    Store(store).lease(run_id)
    signal.pause()


def test_who_waits_long_says_again_for_whom(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "REMIND_SECONDS", 0.01)
    holder = multiprocessing.get_context("spawn").Process(target=hold, args=(tmp_path, tiny.run_id))
    holder.start()
    store = Store(tmp_path, create=True)
    wait_until(lambda: store.running() == {tiny.run_id}, "the run is held")
    os.kill(holder.pid or 0, signal.SIGSTOP)  # it is there, and does nothing
    events = []
    try:
        for event in run_all([tiny, tiny.updated({"training.seed": 1})], tmp_path, Running(workers=0)):
            events.append(event)
            if isinstance(event, StillWaiting):
                holder.kill()
    finally:
        holder.kill()
        holder.join()
    assert events[0] == Waiting(0, f"process {holder.pid}")
    reminder = next(event for event in events if isinstance(event, StillWaiting))
    assert (reminder.owners, reminder.runs) == ((f"process {holder.pid}",), 1)
    assert str(reminder).startswith(f"Waiting for process {holder.pid}, with 1 run, for ")
    assert {event.index for event in events if isinstance(event, Finished)} == {0, 1}


def test_there_are_no_more_workers_than_work(tiny: RunSpec, tmp_path: Path) -> None:
    for event in run_all([tiny], tmp_path, Running(workers=4)):
        if isinstance(event, Started):
            assert len(multiprocessing.active_children()) == 1


def test_work_is_divided_into_runs_or_stacks_of_them(tiny: RunSpec) -> None:
    specs = [tiny.updated({"training.seed": seed}) for seed in range(MOST_STACKED + 1)]
    specs.append(tiny.updated({"model.width": 8}))
    places = range(len(specs))
    assert dispatch._pieces(places, specs, 1) == len(specs)
    assert dispatch._pieces(places, specs, MOST_STACKED) == 3


def test_more_workers_than_a_machine_can_use_are_refused() -> None:
    with pytest.raises(GrokscopeError, match=r"workers = 1000000000 is not allowed: at most \d+ here"):
        Running(workers=10**9)
    assert Running(workers=available_cores()).processes == available_cores()


def test_under_nohup_the_end_of_the_terminal_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_request() as should_stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not should_stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_long_run_is_checkpointed_on_its_way(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without being asked to stop: a run that dies before it is saved goes on from its last checkpoint."""
    monkeypatch.setattr(worker, "CHECKPOINT_SECONDS", 0.0)
    store = Store(tmp_path, create=True)
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
        list(run_all([RunSpec().updated({"task.kind": "parity"})], tmp_path, Running(workers=0, engine="native")))
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
            Store(path, create=True).close()

        makers = [processes.Process(target=make, args=(tmp_path / str(round_),)) for _ in range(6)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
        assert [maker.exitcode for maker in makers] == [0] * 6


def test_nobody_sees_a_store_half_made(tmp_path: Path) -> None:
    """A sweep that starts while another one makes the store reads the index as soon as it is there."""
    processes = multiprocessing.get_context("fork")
    for round_ in range(8):
        path = tmp_path / str(round_)
        together = processes.Barrier(4)

        def make(path: Path = path, together: Barrier = together) -> None:
            together.wait()
            Store(path, create=True).close()

        def read(path: Path = path, together: Barrier = together) -> None:
            together.wait()
            while not (path / "index.sqlite").exists():
                pass
            Store(path, create=False).close()

        those = [processes.Process(target=each) for each in (make, make, read, read)]
        for process in those:
            process.start()
        for process in those:
            process.join()
        assert [process.exitcode for process in those] == [0] * 4
        assert sorted(file.name for file in path.iterdir()) == ["index.sqlite", "runs"]

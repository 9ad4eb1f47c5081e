"""Workers, schedulers and coordinators that are killed, stopped and cut off: real processes."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest
from tests.cluster.dask_processes import DaskProcesses, check_stored_once, with_signal
from tests.integration.processes import start, wait_until

from grokscope import ClusterError, RunSpec, Store
from grokscope.cluster import connection, dask_executor
from grokscope.sweeps import Failed, Finished, Measured, Progress, Running, Started, run_all

GARBAGE = """
from grokscope.cluster import remote
from grokscope.cluster.parcels import Done, Paused
answers = [
    lambda: "nothing",
    lambda: [Done(b"x" * 100)],
    lambda: [Paused(b"")],
    lambda: 1 / 0,
]
remote.advance = lambda order: answers[order.runs[0].spec["training"]["seed"]]()
"""
HUNGRY = """
import time
import grokscope as gs

class Hungry(gs.Measurement):
    columns = ("eaten",)

    def measure(self, moment: gs.Moment) -> dict[str, float]:
        eaten = []
        while True:
            eaten.append(bytearray(b"x" * 20_000_000))
            time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pieces, so that there is much that can be lost, and frequent looks at who is there."""
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 0.3)
    monkeypatch.setattr(dask_executor, "CHECKPOINTS_A_SECOND", 100.0)
    monkeypatch.setattr(connection, "LOOK_SECONDS", 0.3)


def watched(
    specs: list[RunSpec], store: Path, running: Running, on_event: Callable[[Progress], None]
) -> Iterator[Progress]:
    with closing(run_all(specs, store, running)) as events:
        for event in events:
            on_event(event)
            yield event


def kill_at_random(dask: DaskProcesses, specs: list[RunSpec], store: Path, serial: Path, kills: int) -> None:
    """Kill a worker again and again during a sweep, and start another in its place."""
    choice, left = random.Random(17), kills
    every = len(specs) // (kills + 1)
    finished = 0

    def on_event(event: Progress) -> None:
        nonlocal left, finished
        finished += isinstance(event, Finished)
        if isinstance(event, Started | Finished) and left and finished >= (kills - left + 1) * every:
            left -= 1
            victim = choice.choice(dask.workers)
            victim.kill()
            dask.workers.remove(victim)
            victim.wait()
            dask.add_worker()

    with dask.cluster() as cluster:
        seen = list(watched(specs, store, Running(cluster=cluster), on_event))
    assert not left
    assert not [event for event in seen if isinstance(event, Failed)]
    assert sum(isinstance(event, Finished) for event in seen) == len(specs)
    check_stored_once(specs, store, serial)


def test_workers_killed_at_random(
    scheduler: DaskProcesses, short: list[RunSpec], longer: list[RunSpec], tmp_path: Path, serial: Path
) -> None:
    for _ in range(2):
        scheduler.add_worker()
    kill_at_random(scheduler, [*longer[:2], *short], tmp_path / "store", serial, kills=3)


@pytest.mark.verify
@pytest.mark.timeout(3600)
def test_workers_killed_at_random_in_a_sweep_of_hundreds(
    scheduler: DaskProcesses, tiny: RunSpec, tmp_path: Path, serial: Path
) -> None:
    specs = [tiny.updated({"training.seed": seed, "training.steps": 2000}) for seed in range(300)]
    for _ in range(3):
        scheduler.add_worker()
    kill_at_random(scheduler, specs, tmp_path / "store", serial, kills=20)


def test_a_scheduler_that_is_killed_and_comes_back(
    dask: DaskProcesses, longer: list[RunSpec], tmp_path: Path, serial: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dask.start(1)
    gone = False

    def on_event(event: Progress) -> None:
        nonlocal gone
        if isinstance(event, Finished) and not gone:
            gone = True
            dask.stop_scheduler()
            time.sleep(1)
            dask.start(1)

    with dask.cluster() as cluster:
        list(watched(longer, tmp_path / "store", Running(cluster=cluster), on_event))
    assert gone
    assert f"The connection to the scheduler {dask.address} is lost" in capsys.readouterr().err
    check_stored_once(longer, tmp_path / "store", serial)


def test_a_scheduler_that_does_not_come_back_ends_the_sweep_with_nothing_lost(
    dask: DaskProcesses, longer: list[RunSpec], tmp_path: Path
) -> None:
    dask.start(1)

    def on_event(event: Progress) -> None:
        if isinstance(event, Finished):
            cluster.request = replace(cluster.request, wait_seconds=1.0)
            dask.stop_scheduler()

    with (
        dask.cluster() as cluster,
        pytest.raises(ClusterError, match=r"went away and did not come back within 1 s; nothing is lost"),
    ):
        list(watched(longer, tmp_path / "store", Running(cluster=cluster), on_event))
    store = Store(tmp_path / "store")
    assert store.all()
    assert not store.leases()


def test_a_scheduler_that_hangs_is_not_waited_for_for_ever(
    dask: DaskProcesses,
    longer: list[RunSpec],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is stopped, so that its connections stay open and nothing comes from it."""
    monkeypatch.setattr(connection, "SCHEDULER_SECONDS", 0.5)
    dask.start(1)

    def on_event(event: Progress) -> None:
        if isinstance(event, Finished):
            cluster.request = replace(cluster.request, wait_seconds=1.0)
            dask.signal_scheduler(signal.SIGSTOP)

    with (
        dask.cluster() as cluster,
        pytest.raises(ClusterError, match=r"has not answered for \d+ s, although .* nothing is lost, and the same"),
    ):
        list(watched(longer, tmp_path / "store", Running(cluster=cluster), on_event))
    assert f"The scheduler {dask.address} does not answer: waiting for it, 1 s at most." in capsys.readouterr().err
    store = Store(tmp_path / "store")
    assert store.all()
    assert not store.leases()


def test_while_a_scheduler_hangs_no_worker_is_given_up(
    dask: DaskProcesses, longer: list[RunSpec], tmp_path: Path, serial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SCHEDULER_SECONDS", 0.5)
    given_up: list[str] = []
    monkeypatch.setattr(connection.DaskCluster, "give_up", lambda _, address: given_up.append(address))
    dask.start(1)
    hung = False

    def on_event(event: Progress) -> None:
        nonlocal hung
        if isinstance(event, Finished) and not hung:
            hung = True
            dask.signal_scheduler(signal.SIGSTOP)
            Timer(4.0, dask.signal_scheduler, [signal.SIGCONT]).start()

    with dask.cluster(silent_seconds=2.0) as cluster:
        list(watched(longer[:3], tmp_path / "store", Running(cluster=cluster), on_event))
    assert hung
    assert not given_up
    check_stored_once(longer[:3], tmp_path / "store", serial)


COORDINATOR = """
from grokscope.cli import main
from grokscope.cluster import dask_executor
dask_executor.PIECE_SECONDS = 0.3
main()
"""


def test_a_coordinator_that_is_killed_goes_on_where_it_was(whole: DaskProcesses, tmp_path: Path, serial: Path) -> None:
    """And what it had ordered ends by itself."""
    fields = ("--set", "task.modulus=31", "--set", "model.width=128", "--set", "training.steps=15000")
    sweep = ("sweep", "fig3a", "--grid", "1x1", *fields, "--cluster", whole.address)
    command = [sys.executable, "-c", COORDINATOR, *sweep]
    runs = tmp_path / "grokscope-runs"
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as first:
        wait_until(lambda: runs.is_dir() and any(runs.glob("checkpoints/*.safetensors")), "there are checkpoints")
        first.kill()
    before = set(Store(runs).checkpoints())
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    store = Store(runs)
    assert len(store.all()) == 4
    assert before <= {run.run_id for run in store.all()}
    check_stored_once([run.spec for run in store.all()], runs, serial)


def test_a_worker_that_hangs_is_given_up(
    scheduler: DaskProcesses, longer: list[RunSpec], tmp_path: Path, serial: Path
) -> None:
    workers = [scheduler.add_worker() for _ in range(2)]
    stopped = False

    def on_event(event: Progress) -> None:
        nonlocal stopped
        if isinstance(event, Finished) and not stopped:
            stopped = True
            with_signal(workers[0].pid, signal.SIGSTOP)

    with scheduler.cluster(silent_seconds=4.0) as cluster:
        seen = list(watched(longer, tmp_path / "store", Running(cluster=cluster), on_event))
    assert stopped
    assert not [event for event in seen if isinstance(event, Failed)]
    check_stored_once(longer, tmp_path / "store", serial)


def test_a_worker_that_answers_with_garbage_is_not_believed(
    scheduler: DaskProcesses, tiny: RunSpec, tmp_path: Path
) -> None:
    scheduler.add_worker(*scheduler.preload(GARBAGE))
    specs = [tiny.updated({"training.seed": seed}) for seed in range(4)]
    with scheduler.cluster() as cluster:
        seen = list(run_all(specs, tmp_path / "s", Running(cluster=cluster)))
    said = {event.index: event.error for event in seen if isinstance(event, Failed)}
    reasons = ("it is 'nothing'", "not a safetensors file", "not a safetensors file", "could not do it: ZeroDivision")
    assert sorted(said) == [0, 1, 2, 3]
    for index, reason in enumerate(reasons):
        assert reason in said[index]
        assert said[index].startswith("the worker tcp://127.0.0.1:")
    store = Store(tmp_path / "s")
    assert not store.all()
    assert sorted(failure.error for failure in store.failures()) == sorted(said.values())


def test_a_run_that_kills_its_worker_three_times_has_failed(
    scheduler: DaskProcesses, tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory runs out, the nanny kills it and starts another, again and again."""
    monkeypatch.chdir(tmp_path)
    Path("hungry.py").write_text(HUNGRY)
    hungry = tiny.updated({"training.measurements": ["hungry.py:Hungry"]})
    scheduler.add_worker("--nanny", "--memory-limit", "700MB")
    others = [tiny.updated({"training.seed": seed}) for seed in range(4)]
    with scheduler.cluster() as cluster:
        seen = list(run_all([hungry, *others], tmp_path / "store", Running(cluster=cluster)))
    (failed,) = [event for event in seen if isinstance(event, Failed)]
    assert failed.index == 0
    assert "3 workers in a row were lost with it" in failed.error
    assert sum(isinstance(event, Finished) for event in seen) == 4
    assert [failure.run_id for failure in Store(tmp_path / "store").failures()] == [hungry.run_id]


def test_ctrl_c_ends_a_sweep_that_the_same_command_goes_on_with(whole: DaskProcesses, tmp_path: Path) -> None:
    command = (
        "sweep", "fig3a", "--grid", "1x1", "--set", "training.steps=6000", "--limit", "1", "--cluster", whole.address,
    )  # fmt: skip
    process = start(*command, cwd=tmp_path)
    runs = tmp_path / "grokscope-runs"
    wait_until(lambda: (runs / "index.sqlite").exists() and bool(Store(runs).running()), "a run is under way")
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "The same command goes on." in said
    store = Store(runs)
    assert not store.leases()
    assert not store.all()


def test_who_is_asked_to_stop_brings_its_checkpoint_back(
    whole: DaskProcesses, longer: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before the piece is over."""
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 20.0)
    spec, seen = longer[0].updated({"training.steps": 500_000}), list[Progress]()

    def has_news() -> bool:
        return any(isinstance(event, Measured) for event in seen)

    with whole.cluster() as cluster:
        for event in run_all([spec], tmp_path / "store", Running(cluster=cluster), should_stop=has_news):
            seen.append(event)
    store = Store(tmp_path / "store")
    checkpoint = store.load_checkpoint(spec)
    assert checkpoint is not None
    assert 0 < checkpoint.state.step < 500_000
    assert not store.leases()

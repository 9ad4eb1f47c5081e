"""Leases, checkpoints, failures, sweeps and formats: what many processes and versions need of a store."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import grokscope as gs
from grokscope.result import Checkpoint
from grokscope.store import Condition, LeaseAnswer
from grokscope.store.owners import is_alive, owner_name
from grokscope.store.schema import SCHEMA_VERSION, schema_version
from grokscope.training import execute

CLAIM = """
import sys, time
import grokscope as gs
print(gs.Store(sys.argv[1]).lease(sys.argv[2]).value, flush=True)
time.sleep(60)
"""


@pytest.fixture
def store(tmp_path: Path) -> gs.Store:
    return gs.Store(tmp_path / "store", create=True)


class EnoughError(Exception):
    """Ends a run on the way."""


def checkpoint_of(spec: gs.RunSpec, engine: str = "auto", step: int = 13) -> Checkpoint:
    """Where a run stands at this step or soon after."""
    found: list[Checkpoint] = []

    def keep(make: Callable[[], Checkpoint]) -> None:
        found.append(make())
        if found[-1].state.step >= step:
            raise EnoughError

    with pytest.raises(EnoughError):
        execute(spec, engine=engine, on_pause=keep)
    return found[-1]


# ---- leases --------------------------------------------------------------------------------------------------------


def test_one_process_gets_a_run_until_it_dies(store: gs.Store, tiny: gs.RunSpec) -> None:
    command = [sys.executable, "-c", CLAIM, str(store.path), tiny.run_id]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert first.stdout.readline() == "granted\n"
    assert store.lease(tiny.run_id) is LeaseAnswer.HELD
    assert store.running() == {tiny.run_id}
    first.kill()
    deadline = time.monotonic() + 10  # not yet waited for, it is a zombie: dead all the same
    while store.running():
        assert time.monotonic() < deadline
    assert store.lease(tiny.run_id) is LeaseAnswer.GRANTED
    first.communicate()


def test_many_processes_lease_each_run_once(store: gs.Store) -> None:
    code = (
        "import sys, grokscope as gs\n"
        "store = gs.Store(sys.argv[1])\n"
        "print(*[i for i in range(50) if store.lease(f'{i:016x}').value == 'granted'], flush=True)\n"
        "sys.stdin.read()\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    leased = []
    for process in processes:
        assert process.stdout is not None
        leased += [int(word) for word in process.stdout.readline().split()]
    for process in processes:
        process.communicate()
    assert sorted(leased) == list(range(50))


def test_a_finished_run_cannot_be_leased(store: gs.Store, tiny: gs.RunSpec) -> None:
    assert store.lease(tiny.run_id) is LeaseAnswer.GRANTED
    assert store.lease(tiny.run_id) is LeaseAnswer.GRANTED  # asking again is no harm
    store.save(gs.run(tiny))
    assert store.running() == set()
    assert store.lease(tiny.run_id) is LeaseAnswer.DONE


def test_a_released_run_is_free(store: gs.Store, tiny: gs.RunSpec) -> None:
    store.lease(tiny.run_id)
    store.renew(tiny.run_id)
    store.release(tiny.run_id)
    assert store.running() == set()


def test_owners() -> None:
    host, pid, start = owner_name().rsplit("/", 2)
    assert is_alive(owner_name(), expires=0)
    assert not is_alive(f"{host}/{pid}/1{start}", expires=time.time() + 60), "another process with the same number"
    assert is_alive(f"elsewhere-{host}/{pid}/{start}", expires=time.time() + 60)
    assert not is_alive(f"elsewhere-{host}/{pid}/{start}", expires=time.time() - 1)
    assert (host.partition("~")[0], int(pid)) == (socket.gethostname(), os.getpid())
    assert is_alive(f"{host}0/{pid}/{start}", expires=time.time() + 60), "the same host, another table of processes"
    for garbage in ("garbage", "", "/", "a/b/c", f"{host}/-1/{start}", f"{host}/{10**30}/{start}", "host/1/"):
        assert not is_alive(garbage, expires=time.time() + 60)
    for nothing in (None, 7, b"bytes"):
        assert not is_alive(nothing, expires=time.time() + 60)
        assert nothing == 7 or not is_alive(f"elsewhere-{host}/{pid}/{start}", expires=nothing)
    assert not is_alive(f"elsewhere-{host}/{pid}/{start}", expires=1e300), "a lease is not for ever"


# ---- checkpoints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["native", "torch"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"training.batch_size": 8, "model.norm": "batch", "model.dropout": 0.2},
        {"optimizer.kind": "sgd", "optimizer.momentum": 0.9},
    ],
)
def test_a_run_goes_on_from_a_stored_checkpoint_bit_for_bit(
    store: gs.Store, tiny: gs.RunSpec, engine: str, fields: dict[str, object]
) -> None:
    spec = tiny.updated(fields)
    whole = execute(spec, engine=engine)

    store.save_checkpoint(spec.run_id, checkpoint_of(spec, engine))
    start = store.load_checkpoint(spec)
    assert start is not None
    assert start.state.step >= 13
    resumed = execute(spec, engine=engine, start=start)
    assert repr(resumed.curve) == repr(whole.curve)  # as text, because NaN is not equal to itself
    assert resumed.weights is not None
    assert whole.weights is not None
    for name, array in whole.weights.items():
        assert (resumed.weights[name] == array).all()
    assert whole.ipr_history is not None
    assert resumed.ipr_history is not None
    assert resumed.ipr_history.tolist() == whole.ipr_history.tolist()
    unknown = execute(spec, engine=engine, start=replace(start, ipr_history=None))  # of an older release
    assert unknown.ipr_history is None
    assert resumed.seconds > start.seconds > 0


def test_a_checkpoint_is_replaced_and_goes_with_the_result(store: gs.Store, tiny: gs.RunSpec) -> None:
    assert store.load_checkpoint(tiny) is None
    checkpoint = checkpoint_of(tiny)
    for _ in range(3):
        store.save_checkpoint(tiny.run_id, checkpoint)
    assert len(list((store.path / "checkpoints").iterdir())) == 1
    stored = store.load_checkpoint(tiny)
    assert stored is not None
    assert stored.state.step == checkpoint.state.step
    store.save(gs.run(tiny))
    assert store.load_checkpoint(tiny) is None
    assert not list((store.path / "checkpoints").iterdir())


def test_a_damaged_checkpoint_is_as_none(store: gs.Store, tiny: gs.RunSpec) -> None:
    store.save_checkpoint(tiny.run_id, checkpoint_of(tiny))
    (file,) = (store.path / "checkpoints").iterdir()
    file.write_bytes(file.read_bytes()[:200])
    assert store.load_checkpoint(tiny) is None
    file.unlink()
    assert store.load_checkpoint(tiny) is None


# ---- failures and sweeps -------------------------------------------------------------------------------------------


def test_failures_are_kept_until_the_run_is_done(store: gs.Store, tiny: gs.RunSpec) -> None:
    store.lease(tiny.run_id)
    store.save_failure(tiny, "ValueError: no", "Traceback …")
    (failure,) = store.failures()
    assert (failure.spec, failure.error, failure.traceback) == (tiny, "ValueError: no", "Traceback …")
    assert store.running() == set()
    store.save(gs.run(tiny))
    assert store.failures() == []


def test_sweeps_know_their_cells(store: gs.Store, tiny: gs.RunSpec) -> None:
    specs = [tiny.updated({"training.seed": seed}) for seed in range(4)]
    store.record_sweep("mine", {"some": "axes"}, [spec.run_id for spec in specs], refined=True)
    result = gs.run(specs[1])
    store.save(result)
    store.save_failure(specs[2], "error", "trace")
    store.lease(specs[3].run_id)
    (sweep,) = store.sweeps()
    assert (sweep.name, sweep.definition, sweep.refined) == ("mine", {"some": "axes"}, True)
    cells = store.cells("mine")
    assert [cell.run_id for cell in cells] == [spec.run_id for spec in specs]
    assert result.phase is not None
    assert [cell.outcome for cell in cells] == [None, result.phase.value, "failed", None]
    assert cells[1].test_accuracy == result.final.test_accuracy
    assert store.counts("mine") == {result.phase.value: 1, "failed": 1, "missing": 2}
    assert store.count_members("mine", store.running()) == 1
    assert [failure.run_id for failure in store.failures("mine")] == [specs[2].run_id]
    assert store.failures("other") == []
    assert store.forget_failures("mine") == 1
    assert store.counts("mine")["missing"] == 3
    store.record_sweep("mine", {}, [specs[0].run_id], refined=False)
    assert len(store.cells("mine")) == 1


def test_conditions(store: gs.Store, tiny: gs.RunSpec) -> None:
    for seed, corruption in enumerate((0.0, 0.2, 0.4)):
        store.save(gs.run(tiny.updated({"training.seed": seed, "task.corruption": corruption, "training.steps": 2})))
    store.save(gs.run(tiny.updated({"training.batch_size": 8, "training.steps": 2, "task.corruption": 0.0})))

    def seeds(*conditions: Condition, limit: int | None = None) -> list[int]:
        return sorted(run.spec.training.seed for run in store.search(conditions, limit)[1])

    assert seeds(Condition("task.corruption", "=", 0.2)) == [1]
    assert seeds(Condition("task.corruption", ">", 0.1), Condition("task.corruption", "<=", 0.4)) == [1, 2]
    assert seeds(Condition("training.batch_size", "!=", None)) == [0]
    assert seeds(Condition("training.batch_size", "=", None)) == [0, 1, 2]
    assert seeds(Condition("engine", "=", "warp")) == []
    assert len(seeds(limit=2)) == 2
    assert store.search((), 2)[0] == 4


def test_a_field_that_an_old_run_does_not_have_has_its_default(store: gs.Store, tiny: gs.RunSpec) -> None:
    store.save(gs.run(tiny))
    with sqlite3.connect(store.path / "index.sqlite") as index:
        index.execute("UPDATE runs SET spec = json_remove(spec, '$.model.dropout')")
    index.close()
    assert store.search([Condition("model.dropout", "=", 0.0)])[0] == 1
    assert store.search([Condition("model.dropout", ">", 0.0)])[0] == 0


# ---- formats -------------------------------------------------------------------------------------------------------

FORMAT_1 = """
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY, spec TEXT NOT NULL, status TEXT NOT NULL, phase TEXT, diverged_step INTEGER,
  engine TEXT NOT NULL, seconds REAL NOT NULL, has_weights INTEGER NOT NULL, finished_at TEXT NOT NULL,
  final TEXT, file TEXT NOT NULL
) STRICT
"""


def as_format_1(store: gs.Store) -> Path:
    """The same runs as the first release wrote them."""
    store.close()
    path = store.path / "index.sqlite"
    with sqlite3.connect(path) as index:
        rows = [row[:11] for row in index.execute("SELECT * FROM runs")]
    index.close()
    for file in store.path.glob("index.sqlite*"):
        file.unlink()
    with sqlite3.connect(path) as index:
        index.execute("PRAGMA journal_mode = WAL")
        index.execute(FORMAT_1)
        index.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        index.execute("PRAGMA user_version = 1")
    index.close()
    return path


@pytest.mark.parametrize("create", [True, False])
def test_an_older_store_is_brought_up_to_date(store: gs.Store, tiny: gs.RunSpec, create: bool) -> None:
    result = gs.run(tiny)
    store.save(result)
    as_format_1(store)
    again = gs.Store(store.path, create=create)
    assert again.load(tiny.run_id).curve == result.curve
    assert again.sweeps() == []
    other = tiny.updated({"training.seed": 5})
    assert again.lease(other.run_id) is LeaseAnswer.GRANTED
    again.save(gs.run(other))
    assert len(again.all()) == 2


def test_an_upgrade_that_fails_changes_nothing(store: gs.Store, tiny: gs.RunSpec) -> None:
    store.save(gs.run(tiny))
    path = as_format_1(store)
    with sqlite3.connect(path) as index:
        index.execute("CREATE TABLE leases (somebody TEXT)")  # in the way
    index.close()
    with pytest.raises(gs.StoreError, match=r"cannot open the store.*leases already exists"):
        gs.Store(store.path)
    with sqlite3.connect(path) as index:
        assert schema_version(index) == 1
        tables = {name for (name,) in index.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == {"runs", "leases"}
        index.execute("DROP TABLE leases")
    index.close()
    assert len(gs.Store(store.path).all()) == 1


def test_the_index_says_its_format(store: gs.Store) -> None:
    with sqlite3.connect(store.path / "index.sqlite") as index:
        assert schema_version(index) == SCHEMA_VERSION == 4
        definition = index.execute("SELECT sql FROM sqlite_master WHERE name = 'cells'").fetchone()
    index.close()
    assert "PRIMARY KEY (sweep, place)" in json.dumps(definition)

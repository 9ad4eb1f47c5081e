import json
import math
import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import grokscope as gs
from grokscope.errors import DamagedError
from grokscope.store.files import write_new
from grokscope.store.schema import SCHEMA_VERSION


@pytest.fixture
def result(tiny: gs.RunSpec) -> gs.RunResult:
    return gs.run(tiny)


@pytest.fixture
def store(tmp_path: Path) -> gs.Store:
    return gs.Store(tmp_path / "runs", create=True)


def test_both_ends_of_a_deep_network_come_back(store: gs.Store, tiny: gs.RunSpec) -> None:
    result = gs.run(tiny.updated({"model.depth": 3, "model.norm": "batch"}))
    store.save(result)
    loaded = store.load(result.run_id)
    for end in ("neurons", "outputs"):
        saved, read = getattr(result, end), getattr(loaded, end)
        for name in ("ipr", "gini", "frequency", "norm_scale"):
            np.testing.assert_array_equal(getattr(read, name), getattr(saved, name))


def test_a_new_file_never_replaces_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "index"
    write_new(path, b"first")
    write_new(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_store_is_made_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    made = gs.Store(tmp_path / "runs", create=True)
    assert "0 runs" in repr(gs.Store(made.path, create=False))
    assert sorted(file.name for file in made.path.iterdir() if "-" not in file.name) == ["index.sqlite", "runs"]


@pytest.mark.parametrize("keep", [True, False])
def test_a_run_comes_back_as_it_was(store: gs.Store, result: gs.RunResult, keep: bool) -> None:
    store.save(result, weights=keep)
    loaded = store.load(result.run_id)
    assert loaded.to_dict() == result.to_dict()
    assert loaded.curve == result.curve
    assert loaded.neurons is not None
    assert result.neurons is not None
    for name in ("ipr", "gini", "frequency"):
        np.testing.assert_array_equal(getattr(loaded.neurons, name), getattr(result.neurons, name))
    assert result.ipr_history is not None
    np.testing.assert_array_equal(loaded.ipr_history, result.ipr_history)
    if keep:
        assert loaded.weights is not None
        assert result.weights is not None
        for name, array in result.weights.items():
            np.testing.assert_array_equal(loaded.weights[name], array)
        assert loaded.module()(torch.tensor([[0, 0]])).shape == (1, 11)
    else:
        assert loaded.weights is None
        with pytest.raises(gs.GrokscopeError, match="--save-weights"):
            loaded.module()


def test_a_diverged_run_comes_back(store: gs.Store, tiny: gs.RunSpec) -> None:
    result = gs.run(tiny.updated({"optimizer.learning_rate": 1e20}))
    store.save(result)
    loaded = store.load(result.run_id)
    assert (loaded.status, loaded.phase, loaded.diverged_step) == ("diverged", None, result.diverged_step)
    assert loaded.neurons is None
    assert loaded.to_dict() == result.to_dict()


def test_a_result_without_a_curve_comes_back(store: gs.Store, result: gs.RunResult) -> None:
    nothing = {"curve": (), "neurons": None, "phase": None, "status": "diverged", "ipr_history": None}
    store.save(gs.RunResult(**vars(result) | nothing))
    assert store.load(result.run_id).curve == ()


def test_a_column_that_did_not_exist_yet_is_missing(store: gs.Store, result: gs.RunResult) -> None:
    """Runs of an older release lack columns of a newer one, and those with a measurement of one's own have more."""
    older = [{name: value for name, value in row.items() if name != "mean_gini"} for row in result.curve]
    store.save(replace(result, curve=tuple(gs.Row({**row, "own": 2.5}) for row in older)))
    loaded = store.load(result.run_id)
    assert all(math.isnan(row.mean_gini) for row in loaded.curve)
    assert [row.own for row in loaded.curve] == [2.5] * len(older)
    assert [row.test_accuracy for row in loaded.curve] == [row.test_accuracy for row in result.curve]
    with pytest.raises(AttributeError, match="no column 'test_acuracy'; did you mean 'test_accuracy'"):
        _ = loaded.final.test_acuracy


def test_a_run_without_the_history_of_its_ipr_comes_back(store: gs.Store, result: gs.RunResult) -> None:
    """Older releases did not keep it."""
    store.save(replace(result, ipr_history=None))
    assert store.load(result.run_id).ipr_history is None


def test_a_history_that_is_not_of_the_curve_is_not_kept(store: gs.Store, result: gs.RunResult) -> None:
    store.save(replace(result, curve=result.curve[1:]))
    assert store.load(result.run_id).ipr_history is None


def test_a_history_of_another_shape_is_damage(store: gs.Store, result: gs.RunResult) -> None:
    assert result.ipr_history is not None
    store.save(replace(result, ipr_history=result.ipr_history[:, 1:]))
    with pytest.raises(DamagedError, match="the history of its IPR"):
        store.load(result.run_id)


def test_a_store_can_be_opened_again_and_lists_its_runs(store: gs.Store, result: gs.RunResult) -> None:
    store.save(result)
    store.close()
    again = gs.Store(store.path, create=False)
    (run,) = again.all()
    assert run.run_id == result.run_id
    assert run.spec == result.spec
    assert run.phase == result.phase
    assert not run.has_weights


def test_saving_twice_keeps_one(store: gs.Store, result: gs.RunResult) -> None:
    store.save(result)
    store.save(result, weights=True)
    (run,) = store.all()
    assert run.has_weights


def test_ids_may_be_shortened_while_they_are_clear(store: gs.Store, tiny: gs.RunSpec, result: gs.RunResult) -> None:
    ids = []
    for seed in range(20):  # more runs than hexadecimal digits, so two share their first
        spec = tiny.updated({"training.seed": seed})
        store.save(gs.RunResult(**vars(result) | {"spec": spec}))
        ids.append(spec.run_id)
    first = ids[0]
    assert store.resolve(first[:12]).run_id == first
    shared = next(run_id[0] for run_id in ids if sum(other[0] == run_id[0] for other in ids) > 1)
    with pytest.raises(gs.StoreError, match=f"'{shared}' is ambiguous: {shared}.*type more"):
        store.resolve(shared)
    with pytest.raises(gs.StoreError, match=f"no run '{first[:6]}zz'.*nearest: .*{first}"):
        store.resolve(first[:6] + "zz")


def test_unknown_runs_and_empty_stores(store: gs.Store) -> None:
    with pytest.raises(gs.StoreError, match="name a run by its id"):
        store.resolve("")
    with pytest.raises(gs.StoreError, match=r"no run 'abc'.*the store is empty"):
        store.load("abc")
    assert store.find("abc") is None
    assert store.all() == []


def test_delete_removes_row_and_file(store: gs.Store, result: gs.RunResult) -> None:
    store.save(result)
    store.delete(result.run_id)
    assert store.all() == []
    assert not list(store.path.rglob("*.safetensors"))


def test_no_pickle_and_no_leftovers(store: gs.Store, result: gs.RunResult) -> None:
    store.save(result, weights=True)
    names = {path.name for path in store.path.rglob("*") if path.is_file()}
    assert names - {"index.sqlite-wal", "index.sqlite-shm"} == {"index.sqlite", store.all()[0].file.split("/")[1]}


def test_a_write_that_fails_leaves_the_earlier_run_whole(
    store: gs.Store, result: gs.RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(result)

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(gs.StoreError, match=r"cannot write run .*No space left"):
        store.save(result, weights=True)
    monkeypatch.undo()
    assert store.load(result.run_id).curve == result.curve
    assert store.load(result.run_id).weights is None
    assert len([path for path in (store.path / "runs").rglob("*") if path.is_file()]) == 1


def test_an_index_that_cannot_be_updated_leaves_the_earlier_run_whole(store: gs.Store, result: gs.RunResult) -> None:
    store.save(result, weights=True)
    with sqlite3.connect(store.path / "index.sqlite") as index:
        index.execute("CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    index.close()
    with pytest.raises(gs.StoreError, match="disk full"):
        store.save(result)
    assert store.all()[0].has_weights
    assert store.load(result.run_id).weights is not None


def test_replacing_a_run_leaves_one_file(store: gs.Store, result: gs.RunResult) -> None:
    for _ in range(3):
        store.save(result)
    assert len(list(store.path.rglob("*.safetensors"))) == 1


def as_ordinary_user(code: str, *arguments: str) -> str:
    """Run Python without root's right to write everywhere; what it printed last."""
    command = [sys.executable, "-c", code, *arguments]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


OPEN_STORE = """
import sys
import grokscope as gs
try:
    store = gs.Store(sys.argv[1], create={"write": True, "read": False, "either": None}[sys.argv[2]])
    print(len(store.all()), store.load(store.all()[0].run_id).status)
except gs.StoreError as error:
    print(error)
"""


@pytest.mark.parametrize("locked", [".", "runs", "index.sqlite"])
def test_an_unwritable_store_is_noticed_when_it_is_opened(store: gs.Store, result: gs.RunResult, locked: str) -> None:
    store.save(result)
    store.close()
    place = store.path / locked
    mode = place.stat().st_mode
    place.chmod(0o555 if place.is_dir() else 0o444)
    try:
        assert as_ordinary_user(OPEN_STORE, str(store.path), "write").startswith("cannot open the store")
        for how in ("read", "either"):
            assert as_ordinary_user(OPEN_STORE, str(store.path), how) == "1 finished"
    finally:
        place.chmod(mode)


def test_a_damaged_file_is_reported_in_one_line(store: gs.Store, result: gs.RunResult) -> None:
    store.save(result)
    (file,) = store.path.rglob("*.safetensors")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(gs.StoreError, match=r"run \w{16} .*is damaged: .*train it again"):
        store.load(result.run_id)


def test_a_newer_store_is_refused(store: gs.Store) -> None:
    store.close()
    with sqlite3.connect(store.path / "index.sqlite") as index:
        index.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    index.close()
    with pytest.raises(gs.StoreError, match="newer grokscope"):
        gs.Store(store.path)


def test_places_that_cannot_be_a_store(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    with pytest.raises(gs.StoreError, match="cannot open the store"):
        gs.Store(file)
    with pytest.raises(gs.StoreError, match="cannot open the store"):
        gs.Store(file / "below")
    with pytest.raises(gs.StoreError, match="there is no store at"):
        gs.Store(tmp_path / "nowhere", create=False)
    lost = tmp_path / "lost" / "runs" / "ab" / "abc.safetensors"
    lost.parent.mkdir(parents=True)
    lost.touch()
    with pytest.raises(
        gs.StoreError, match=f"no index any more: grokscope store check --repair --store {tmp_path}/lost"
    ):
        gs.Store(tmp_path / "lost", create=False)
    (tmp_path / "index.sqlite").write_text("not a database, and long enough that SQLite looks at it")
    with pytest.raises(gs.StoreError, match="cannot open the store"):
        gs.Store(tmp_path)


SAVE_MANY = """
import sys
from pathlib import Path
import grokscope as gs

store = gs.Store(Path(sys.argv[1]))
result = store.load(sys.argv[2])
for seed in range(int(sys.argv[3]), int(sys.argv[3]) + 20):
    store.save(gs.RunResult(**vars(result) | {"spec": result.spec.updated({"training.seed": seed})}))
"""


def test_processes_share_a_store(store: gs.Store, result: gs.RunResult) -> None:
    store.save(result)
    processes = [
        subprocess.Popen([sys.executable, "-c", SAVE_MANY, str(store.path), result.run_id, str(first)])
        for first in (0, 10, 20)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert {run.spec.training.seed for run in store.all()} == set(range(40))
    assert store.load(store.all()[0].run_id).curve == result.curve


def test_the_index_is_plain_sqlite(store: gs.Store, result: gs.RunResult) -> None:
    """Users may read it with any tool: the spec is JSON with every field."""
    store.save(result)
    with sqlite3.connect(store.path / "index.sqlite") as index:
        (spec, final) = index.execute("SELECT spec, final FROM runs").fetchone()
    index.close()
    assert json.loads(spec)["task"]["modulus"] == 11
    assert json.loads(final)["step"] == 30


def test_a_store_is_made_by_the_first_run_and_not_by_its_name(tmp_path: Path, result: gs.RunResult) -> None:
    store = gs.Store(tmp_path / "tpyo")
    assert repr(store) == f"<Store {tmp_path / 'tpyo'}: not there yet>"
    for look in (store.runs, store.sweeps, store.failures, lambda: store.load("abc"), lambda: store.find("abc")):
        with pytest.raises(gs.StoreError, match="there is no store at"):
            look()
    assert not store.path.exists()
    store.save(result)
    assert store.load(result.run_id).curve == result.curve
    assert repr(store) == f"<Store {tmp_path / 'tpyo'}: 1 runs, 0 sweeps>"


def test_a_store_that_others_make_meanwhile_can_be_read(tmp_path: Path, result: gs.RunResult) -> None:
    early = gs.Store(tmp_path / "runs")
    gs.Store(tmp_path / "runs").save(result)
    assert [run.run_id for run in early.runs()] == [result.run_id]


def test_a_store_that_is_being_made_can_be_opened(tmp_path: Path, result: gs.RunResult) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "index.sqlite").touch()  # as SQLite leaves it for a moment
    store = gs.Store(tmp_path)
    assert store.runs() == []
    store.save(result)
    assert len(store.runs()) == 1


def test_a_store_can_be_used_in_a_with_statement(tmp_path: Path, result: gs.RunResult) -> None:
    with gs.Store(tmp_path / "runs") as store:
        store.save(result)
    with pytest.raises(gs.StoreError, match="closed"):
        store.runs()
    assert repr(store) == f"<Store {tmp_path / 'runs'}>"


def test_a_lazy_store_is_where_it_was_named(
    tmp_path: Path, result: gs.RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = gs.Store("runs")
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.save(result)
    assert (tmp_path / "runs" / "index.sqlite").exists()
    assert not (tmp_path / "elsewhere" / "runs").exists()

"""A store that is damaged, swapped, forged, moved or full: it says so, and never gives a wrong number in silence."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from tests.unit.test_store import as_ordinary_user
from tests.unit.test_store_sharing import checkpoint_of

import grokscope as gs
from grokscope.errors import DamagedError, DamageWarning
from grokscope.store import LeaseAnswer
from grokscope.store.check import Finding, Kind, check_store
from grokscope.store.merge import merge_into


@pytest.fixture
def specs(tiny: gs.RunSpec) -> list[gs.RunSpec]:
    return [tiny.updated({"training.seed": seed}) for seed in range(3)]


@pytest.fixture
def store(tmp_path: Path, specs: list[gs.RunSpec]) -> Iterator[gs.Store]:
    """Three runs, a sweep of them, a checkpoint and a failure."""
    store = gs.Store(tmp_path / "store")
    for spec in specs:
        store.save(gs.run(spec), weights=True)
    store.record_sweep("mine", {"some": "axes"}, [spec.run_id for spec in specs], refined=False)
    store.save_checkpoint(unfinished(specs).run_id, checkpoint_of(unfinished(specs)))
    store.save_failure(failed(specs), "ValueError: no", "Traceback …")
    yield store
    store.close()


def unfinished(specs: list[gs.RunSpec]) -> gs.RunSpec:
    return specs[0].updated({"training.seed": 77})


def failed(specs: list[gs.RunSpec]) -> gs.RunSpec:
    return specs[0].updated({"training.seed": 78})


def file_of(store: gs.Store, spec: gs.RunSpec) -> Path:
    (file,) = (store.path / "runs").glob(f"*/{spec.run_id}-*")
    return file


def forge(store: gs.Store, statement: str, *values: object) -> None:
    """Change the index behind the store's back."""
    with sqlite3.connect(store.path / "index.sqlite") as index:
        index.execute(statement, values)
    index.close()


def allow_null(store: gs.Store) -> None:
    """As a page of zeros has it: SQLite itself would refuse NULL in most columns."""
    with closing(sqlite3.connect(store.path / "index.sqlite")) as index:
        index.execute("PRAGMA writable_schema = ON")
        index.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
        index.commit()


def swap(first: Path, second: Path) -> None:
    between = first.with_name("between")
    first.rename(between)
    second.rename(first)
    between.rename(second)


# ---- files ---------------------------------------------------------------------------------------------------------


def test_two_swapped_files_are_noticed(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    swap(file_of(store, specs[0]), file_of(store, specs[1]))
    for one, other in ((0, 1), (1, 0)):
        with pytest.raises(
            DamagedError, match=f"run {specs[one].run_id} .* its file is that of {specs[other].run_id}|"
        ):
            store.load(specs[one].run_id)
    assert store.load(specs[2].run_id).spec == specs[2]


def test_every_flipped_bit_is_noticed_or_harmless(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    """One bit in every 97th byte of the file; what is loaded must be what was saved."""
    file, whole = file_of(store, specs[0]), store.load(specs[0].run_id)
    content = file.read_bytes()
    noticed = 0
    for place in range(0, len(content), 97):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        file.write_bytes(flipped)
        try:
            loaded = store.load(specs[0].run_id)
        except DamagedError:
            noticed += 1
        else:
            assert loaded.to_dict() == whole.to_dict()
            assert all(np.array_equal(loaded.trained_weights()[name], a) for name, a in whole.trained_weights().items())
    assert noticed > len(content) / 97 * 0.9  # the header is padded with spaces


KINDS = [
    "empty",
    "zeros",
    "truncated",
    "longer",
    "huge-header",
    "deep-header",
    "missing",
    "directory",
    "pipe",
    "link",
    "no-metadata",
    "no-checksum",
    "other-keys",
    "no-step",
    "short-column",
    "other-shape",
    "other-type",
]


def damage(file: Path, kind: str) -> None:
    """Damage a file of a run or a checkpoint."""
    content, elsewhere = file.read_bytes(), file.with_name("elsewhere")
    arrays = safetensors.numpy.load(content)
    identity: dict[str, str] | None = {"run_id": file.name.partition("-")[0]}
    file.unlink()
    match kind:
        case "empty":
            file.write_bytes(b"")
        case "zeros":
            file.write_bytes(bytes(5000))
        case "truncated":
            file.write_bytes(content[:-9])
        case "longer":
            file.write_bytes(content + b"more")
        case "huge-header":
            file.write_bytes((2**62).to_bytes(8, "little") + content[8:])
        case "deep-header":
            file.write_bytes((99999).to_bytes(8, "little") + b"[" * 99999)
        case "directory":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "link":
            elsewhere.write_bytes(content)
            file.symlink_to(elsewhere)
        case "no-metadata":
            identity = None
        case "other-keys":
            arrays["other"] = np.zeros(3)
        case "no-step":
            del arrays["curve.step"]
        case "short-column":
            arrays["curve.step"] = arrays["curve.step"][:-1]
        case "other-shape":
            arrays["neurons.ipr"] = np.zeros(3)
        case "other-type":
            arrays["curve.step"] = arrays["curve.step"].astype(float)
    if kind in KINDS[KINDS.index("no-metadata") :]:  # a valid file, as another program might write it
        file.write_bytes(safetensors.numpy.save(arrays, identity))


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_one_line_and_the_others_are_there(
    store: gs.Store, specs: list[gs.RunSpec], kind: str, older: bool
) -> None:
    """Also if an older release wrote it, whose files have no checksum."""
    run_id = specs[0].run_id
    if older:
        as_older(store, specs[0])
        if kind == "no-checksum":
            assert store.load(run_id).spec == specs[0]
            return
    damage(file_of(store, specs[0]), kind)
    with pytest.raises(
        DamagedError, match=rf"run {run_id} in the store .* is damaged: .*grokscope runs delete {run_id}"
    ):
        store.load(run_id)
    assert len(store.all()) == 3
    assert store.load(specs[1].run_id).spec == specs[1]
    if kind == "directory":
        return  # not a file of the store's: it is left alone
    store.delete(run_id)
    assert store.find(run_id) is None
    store.save(gs.run(specs[0]))
    assert store.load(run_id).spec == specs[0]


def as_older(store: gs.Store, spec: gs.RunSpec) -> None:
    """As the release before checksums wrote it."""
    damage(file_of(store, spec), "no-checksum")
    forge(store, "UPDATE runs SET checksum = NULL WHERE run_id = ?", spec.run_id)
    reseal(store)


def reseal(store: gs.Store) -> None:
    """As an upgrade of the format does it."""
    from grokscope.store.index import open_index
    from grokscope.store.schema import OUTCOME_SEAL, ROW_SEAL

    index = open_index(store.path, create=False)
    index.execute(f"UPDATE runs SET outcome_seal = {OUTCOME_SEAL}")
    index.execute(f"UPDATE runs SET row_seal = {ROW_SEAL}")
    index.close()


def test_what_may_not_be_read_is_not_called_damaged(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    file = file_of(store, specs[0])
    file.chmod(0)
    code = (
        "import sys, grokscope as gs\n"
        "try: gs.Store(sys.argv[1], create=False).load(sys.argv[2])\n"
        "except gs.StoreError as error: print(type(error).__name__, error)"
    )
    said = as_ordinary_user(code, str(store.path), specs[0].run_id)
    file.chmod(0o644)
    assert said.startswith("StoreError cannot read ")
    assert "may not read it" in said
    assert "delete" not in said


# ---- the index -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "phase = 'full_inversion'",
        "phase = 'nonsense'",
        "phase = CAST(x'ff00fe' AS TEXT)",
        "status = 'diverged', phase = NULL",
        "test_accuracy = 0.123456",
        "final = json_set(final, '$.test_accuracy', 0.5)",
        "final = '{'",
        "spec = '{'",
        "spec = json_set(spec, '$.task.modulus', 13)",
        "spec = '" + "[" * 5000 + "'",
        "engine = 'warp'",
        "seconds = -1",
        "has_weights = 0",
        "file = '../../victim'",
        "outcome_seal = ''",
        "spec = NULL",
        "file = NULL",
    ],
)
def test_a_forged_entry_is_left_out_with_a_warning(store: gs.Store, specs: list[gs.RunSpec], change: str) -> None:
    run_id = specs[0].run_id
    allow_null(store)
    forge(store, f"UPDATE runs SET {change} WHERE run_id = ?", run_id)
    with pytest.warns(DamageWarning, match=f"damaged in the store .*, and left out: run {run_id};"):
        assert [run.run_id for run in store.all()] == [run.run_id for run in store.all() if run.run_id != run_id]
    with pytest.raises(DamagedError, match=f"run {run_id} .*damaged"):
        store.load(run_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        assert store.runs(where=["task.modulus=11"], limit=2)[-1].run_id in {spec.run_id for spec in specs[1:]}
        outcome = store.cells("mine")[0].outcome
        truth = gs.run(specs[0]).phase
        assert truth is not None
        assert outcome in (None, truth.value)
        if not change.startswith("spec"):
            assert store.lease(run_id) is LeaseAnswer.GRANTED, "it may be trained again"
    store.save(gs.run(specs[0]))
    assert len(store.all()) == 3


def test_no_file_outside_is_read_or_removed(store: gs.Store, specs: list[gs.RunSpec], tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for path in ("../../victim", str(victim), f"{specs[0].run_id[:2]}/../../../victim"):
        for table in ("runs", "checkpoints"):
            forge(store, f"UPDATE {table} SET file = ?", path)
        reseal(store)
        with pytest.raises(DamagedError, match="a file that cannot be its own"):
            store.load(specs[0].run_id)
        assert store.load_checkpoint(unfinished(specs)) is None
        store.delete(specs[0].run_id)
        store.save(gs.run(specs[0]))
        store.save_checkpoint(unfinished(specs).run_id, checkpoint_of(unfinished(specs)))
        assert victim.read_text() == "precious"


def test_a_linked_directory_leads_nowhere(store: gs.Store, specs: list[gs.RunSpec], tmp_path: Path) -> None:
    inside = store.path / "runs" / specs[0].run_id[:2]
    outside = tmp_path / "outside"
    inside.rename(outside)
    inside.symlink_to(outside)
    with pytest.raises(DamagedError, match="does not lie inside"):
        store.load(specs[0].run_id)
    store.delete(specs[0].run_id)
    assert list(outside.iterdir())


def test_a_forged_sweep_is_left_out(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    for change in (
        "UPDATE cells SET run_id = (SELECT max(run_id) FROM cells)",
        "UPDATE sweeps SET definition = '{'",
        "UPDATE sweeps SET refined = 1",
        "DELETE FROM cells WHERE place = 1",
    ):
        store.record_sweep("mine", {"some": "axes"}, [spec.run_id for spec in specs], refined=False)
        forge(store, change)
        with pytest.warns(DamageWarning, match="left out: sweep mine;"):
            assert store.sweeps() == []


def test_a_lease_without_an_owner_holds_nothing(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    allow_null(store)
    forge(store, "INSERT INTO leases VALUES (?, NULL, NULL)", specs[0].run_id)
    assert store.running() == set()
    assert store.holder(specs[0].run_id) is None
    assert store.lease(specs[0].run_id, again=True) is LeaseAnswer.GRANTED


def test_a_forged_failure_is_left_out(store: gs.Store) -> None:
    forge(store, "UPDATE failures SET error = 'quite another'")
    with pytest.warns(DamageWarning, match="failure of run"):
        assert store.failures() == []


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, bytes(8192)])
def test_an_unreadable_index_is_one_line(store: gs.Store, content: bytes) -> None:
    store.close()
    for file in store.path.glob("index.sqlite*"):
        file.unlink()
    (store.path / "index.sqlite").write_bytes(content)
    for create in (True, False):
        with pytest.raises(gs.StoreError, match=r"store check --repair"):
            gs.Store(store.path, create=create)


@pytest.mark.parametrize("version", [-1, 99])
def test_an_impossible_format_is_one_line(store: gs.Store, version: int) -> None:
    store.close()
    forge(store, f"PRAGMA user_version = {version}")
    for create in (True, False):
        with pytest.raises(gs.StoreError, match=rf"format {version}"):
            gs.Store(store.path, create=create)


# ---- checkpoints ---------------------------------------------------------------------------------------------------


def test_a_checkpoint_of_another_run_counts_as_absent(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    first, second = unfinished(specs), failed(specs)
    store.save_checkpoint(second.run_id, checkpoint_of(second))
    files = sorted((store.path / "checkpoints").iterdir())
    swap(*files)
    assert store.load_checkpoint(first) is None
    assert store.load_checkpoint(second) is None


@pytest.mark.parametrize(
    "kind", ["empty", "truncated", "zeros", "huge-header", "pipe", "link", "missing", "no-checksum", "no-step"]
)
def test_an_unusable_checkpoint_counts_as_absent(store: gs.Store, specs: list[gs.RunSpec], kind: str) -> None:
    (file,) = (store.path / "checkpoints").iterdir()
    damage(file, kind)
    assert store.load_checkpoint(unfinished(specs)) is None


def test_a_checkpoint_that_cannot_be_of_the_run_counts_as_absent(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    """With a checksum that is right: a newer release may have other names, and a forger is careful."""
    spec, good = unfinished(specs), checkpoint_of(unfinished(specs))
    state = good.state
    for bad in (
        replace(good, state=replace(state, step=10**6)),
        replace(good, state=replace(state, step=0)),
        replace(good, state=replace(state, step=state.step + 5)),
        replace(good, state=replace(state, moments={})),
        replace(good, state=replace(state, weights={name: array[:1] for name, array in state.weights.items()})),
        replace(good, curve=()),
    ):
        store.save_checkpoint(spec.run_id, bad)
        assert store.load_checkpoint(spec) is None
    store.save_checkpoint(spec.run_id, good)
    assert store.load_checkpoint(spec) is not None


# ---- moved, removed, replaced --------------------------------------------------------------------------------------


def test_a_store_that_is_gone_takes_no_runs(store: gs.Store, specs: list[gs.RunSpec], tmp_path: Path) -> None:
    result, checkpoint = gs.run(unfinished(specs)), checkpoint_of(unfinished(specs))
    store.path.rename(tmp_path / "moved")
    for attempt in (
        lambda: store.save(result),
        lambda: store.save_checkpoint(result.run_id, checkpoint),
        lambda: store.lease(result.run_id),
        lambda: store.record_sweep("other", {}, [], refined=False),
        lambda: store.save_failure(result.spec, "no", "no"),
    ):
        with pytest.raises(gs.StoreError, match="was moved, removed or replaced"):
            attempt()
    assert not store.path.exists(), "it is not made again in silence"
    (tmp_path / "moved").rename(store.path)
    store.save(result)
    gs.Store(tmp_path / "other", create=True).close()
    store.path.rename(tmp_path / "moved")
    (tmp_path / "other").rename(store.path)
    with pytest.raises(gs.StoreError, match="was moved, removed or replaced"):
        store.save(result)
    shutil.rmtree(store.path)
    with pytest.raises(gs.StoreError, match="was moved, removed or replaced"):
        store.save(result)
    assert gs.Store(tmp_path / "moved", create=False).load(result.run_id).curve == result.curve


def test_an_index_that_is_gone_is_not_made_again(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    for file in store.path.glob("index.sqlite*"):
        file.unlink()
    with pytest.raises(gs.StoreError, match="was moved, removed or replaced"):
        store.save(gs.run(specs[0]))
    with pytest.raises(gs.StoreError, match=r"has runs but no index.*store check --repair"):
        gs.Store(store.path)


# ---- readers -------------------------------------------------------------------------------------------------------

COUNT = """
import sys, grokscope as gs
try:
    print(len(gs.Store(sys.argv[1], create=False).all()))
except gs.StoreError as error:
    print(error)
"""


def locked(path: Path) -> None:
    for place in (path, *path.rglob("*")):
        place.chmod(0o555 if place.is_dir() else 0o444)


def unlocked(path: Path) -> None:
    for place in (path, *path.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)


@pytest.mark.parametrize("writer", ["at work", "killed", "gone"])
def test_a_reader_without_the_right_to_write_sees_the_newest_run(
    store: gs.Store, specs: list[gs.RunSpec], writer: str, tmp_path: Path
) -> None:
    """The newest runs are in a log beside the index, which a reader must not leave out."""
    path = store.path
    if writer == "killed":  # what a killed process leaves, without the file that it shared
        path = tmp_path / "copy"
        shutil.copytree(store.path, path)
        (path / "index.sqlite-shm").unlink()
        assert (path / "index.sqlite-wal").stat().st_size
    if writer == "gone":
        store.close()
        assert not (path / "index.sqlite-wal").exists()
    locked(path)
    try:
        assert as_ordinary_user(COUNT, str(path)) == "3"
    finally:
        unlocked(path)


def test_an_older_store_can_be_read_where_it_cannot_be_written(store: gs.Store) -> None:
    from tests.unit.test_store_sharing import as_format_1

    as_format_1(store)
    locked(store.path)
    try:
        assert as_ordinary_user(COUNT, str(store.path)) == "3"
    finally:
        unlocked(store.path)


def test_a_full_disk_can_be_read(store: gs.Store, tmp_path: Path) -> None:
    """Every write fails, as on a full disk: files may not grow at all."""
    store.close()
    code = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n" + COUNT
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.path)], capture_output=True, text=True, check=False
    ).stdout.strip()
    assert done == "3"


def test_what_cannot_be_written_says_why(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    store.close()
    locked(store.path)
    code = (
        "import sys, grokscope as gs\n"
        "try: gs.Store(sys.argv[1], create=False).delete(sys.argv[2])\n"
        "except gs.StoreError as error: print(error)"
    )
    try:
        said = as_ordinary_user(code, str(store.path), specs[0].run_id)
    finally:
        unlocked(store.path)
    assert said.endswith("it can only be read: the disk is full, or this user may not write there")
    assert len(gs.Store(store.path).all()) == 3


# ---- check, repair and merge ---------------------------------------------------------------------------------------


def findings(store: gs.Store, *, repair: bool = False) -> list[Finding]:
    return list(check_store(store.path, repair=repair))


def kinds(store: gs.Store) -> set[Kind]:
    return {finding.kind for finding in findings(store)}


def test_a_sound_store_has_no_findings(store: gs.Store) -> None:
    assert findings(store) == []


def test_repair_removes_what_is_damaged_and_keeps_its_file(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    file = file_of(store, specs[0])
    damage(file, "truncated")
    file_of(store, specs[1]).unlink()
    assert kinds(store) == {Kind.RUN, Kind.MISSING}
    assert all(finding.repair for finding in findings(store, repair=True))
    assert findings(store) == []
    assert (store.path / "damaged" / file.name).exists()
    assert [run.run_id for run in store.all()] == [specs[2].run_id]
    assert [cell.outcome is None for cell in store.cells("mine")] == [True, True, False]


def test_repair_believes_the_file_where_the_index_was_changed(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    truth = store.all()
    forge(store, "UPDATE runs SET phase = 'full_inversion', file = '../../x'")
    forge(store, "UPDATE sweeps SET refined = 1")
    forge(store, "UPDATE failures SET error = 'other'")
    assert kinds(store) == {Kind.RUN, Kind.SWEEP, Kind.FAILURE}
    findings(store, repair=True)
    assert findings(store) == []
    assert store.all() == truth
    assert [sweep.refined for sweep in store.sweeps()] == [False]


@pytest.mark.parametrize("loss", ["removed", "emptied", "garbage", "a page", "cut"])
def test_an_index_is_made_again_from_the_files(store: gs.Store, specs: list[gs.RunSpec], loss: str) -> None:
    runs, sweeps, cells = store.all(), store.sweeps(), store.cells("mine")
    store.close()
    index = store.path / "index.sqlite"
    content = index.read_bytes()
    match loss:
        case "removed":
            index.unlink()
        case "emptied":
            index.write_bytes(b"")
        case "garbage":
            index.write_bytes(b"no database" * 500)
        case "a page":
            index.write_bytes(content[:4096] + os.urandom(4096) + content[8192:])
        case "cut":
            index.write_bytes(content[: len(content) // 2 // 4096 * 4096])
    assert kinds(store) & {Kind.INDEX}
    found = findings(store, repair=True)
    assert found[0].kind is Kind.INDEX
    assert [finding for finding in findings(store) if not finding.kind.harmless] == []
    again = gs.Store(store.path)
    assert sorted(again.all(), key=lambda run: run.run_id) == sorted(runs, key=lambda run: run.run_id)
    assert again.sweeps() == sweeps
    assert again.cells("mine") == cells
    assert again.load(specs[0].run_id).curve == gs.run(specs[0]).curve


def test_runs_of_an_older_release_survive_a_damaged_index_and_get_checksums(
    store: gs.Store, specs: list[gs.RunSpec]
) -> None:
    as_older(store, specs[0])
    assert kinds(store) == {Kind.UNCHECKED}
    forge(store, "DROP INDEX runs_by_time")  # not what the format says, but a database
    findings(store, repair=True)
    assert findings(store) == []
    entry = store.find(specs[0].run_id)
    assert entry is not None
    assert entry.checksum is not None
    assert store.load(specs[0].run_id).curve == gs.run(specs[0]).curve


def test_leftovers_are_collected_when_they_are_old(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    temporary = file_of(store, specs[0]).with_name(f".{file_of(store, specs[0]).name}.0a1b2c3d")
    temporary.write_bytes(b"half a run")
    superseded = file_of(store, specs[0]).with_name(f"{specs[0].run_id}-00000000.safetensors")
    superseded.write_bytes(b"old")
    stray = store.path / "checkpoints" / f"{specs[0].run_id}-00000000.safetensors"
    stray.write_bytes(b"old")
    foreign = store.path / "runs" / specs[0].run_id[:2] / "notes.txt"
    foreign.write_text("mine")
    os.mkfifo(foreign.with_name("pipe"))
    forge(store, "INSERT INTO leases VALUES ('0000000000000000', 'garbage', 1e12)")
    findings(store, repair=True)
    assert temporary.exists(), "a process may be writing it"
    for file in (temporary, superseded, stray, foreign):
        os.utime(file, (0, 0))
    findings(store, repair=True)
    assert not any(file.exists() for file in (temporary, superseded, stray))
    assert foreign.read_text() == "mine"
    assert stat.S_ISFIFO(foreign.with_name("pipe").stat().st_mode)
    assert kinds(store) == {Kind.STRAY}  # what is not grokscope's stays, and is named
    assert store.leases() == {}


def test_a_saved_file_that_a_kill_kept_out_of_the_index_is_entered(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    forge(store, "DELETE FROM runs WHERE run_id = ?", specs[0].run_id)
    assert kinds(store) == {Kind.UNNAMED}
    findings(store, repair=True)
    assert store.load(specs[0].run_id).spec == specs[0]


def test_merging(store: gs.Store, specs: list[gs.RunSpec], tmp_path: Path) -> None:
    own = gs.Store(tmp_path / "own")
    own.save(gs.run(specs[0]))  # without weights, which the other one has
    own.record_sweep("mine", {"other": "axes"}, [specs[0].run_id], refined=True)
    damage(file_of(store, specs[2]), "truncated")
    merged = merge_into(own, [store])
    assert (merged.runs, merged.sweeps, merged.checkpoints, merged.failures) == (2, 1, 1, 1)
    assert specs[2].run_id in merged.damaged[0]
    assert merged.renamed == [("mine", "mine-2")]
    assert own.load(specs[0].run_id).weights is not None
    assert own.find(specs[1].run_id) is not None
    theirs, ours = store.find(specs[1].run_id), own.find(specs[1].run_id)
    assert theirs is not None
    assert ours is not None
    assert (ours.finished_at, ours.checksum) == (theirs.finished_at, theirs.checksum)
    assert own.load_checkpoint(unfinished(specs)) is not None
    assert [failure.run_id for failure in own.failures()] == [failed(specs).run_id]
    again = merge_into(own, [store])
    assert (again.runs, again.present, again.sweeps, again.checkpoints) == (0, 2, 0, 0)
    assert findings(own) == []
    with pytest.raises(gs.StoreError, match="are the same store"):
        merge_into(own, [gs.Store(own.path)])


def test_what_a_file_says_of_its_run_is_plain(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    """Another program finds the spec in the file's metadata."""
    content = file_of(store, specs[0]).read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    record = json.loads(header["__metadata__"]["record"])
    assert record["spec"]["task"]["modulus"] == 11
    assert record["run_id"] == specs[0].run_id == header["__metadata__"]["run_id"]


def test_arrays_come_back_in_the_order_in_which_they_were_written(store: gs.Store, specs: list[gs.RunSpec]) -> None:
    """A sum over all weights depends on it in its last bits, and so does what a run that goes on computes."""
    spec, checkpoint = unfinished(specs), checkpoint_of(unfinished(specs))
    turned = replace(checkpoint.state, weights=dict(reversed(checkpoint.state.weights.items())))
    store.save_checkpoint(spec.run_id, replace(checkpoint, state=turned))
    for _ in range(5):
        loaded = store.load_checkpoint(spec)
        assert loaded is not None
        assert list(loaded.state.weights) == list(turned.weights)
        assert list(loaded.curve[0]) == list(checkpoint.curve[0])
    result = gs.run(specs[0])
    own = [gs.Row({**row, "z": 1.0, "b": 2.0, "a": 3.0}) for row in result.curve]
    store.save(replace(result, curve=tuple(own)))
    assert list(store.load(specs[0].run_id).final)[-3:] == ["z", "b", "a"]

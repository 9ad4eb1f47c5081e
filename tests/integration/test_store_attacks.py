"""What real processes and people do to a store while it is used."""

import json
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.processes import grokscope, is_running, start, wait_until

import grokscope as gs
from grokscope.store.check import check_store

SWEEP = """
[base.task]
modulus = 11
[base.model]
width = 24
[base.training]
steps = {steps}
[axes]
"task.data_fraction" = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
"training.seed" = [{seeds}]
"""


def sweep_in(directory: Path, steps: int, seeds: int = 1) -> Path:
    """Write a sweep; where its store will be."""
    directory.mkdir(exist_ok=True)
    text = SWEEP.format(steps=steps, seeds=", ".join(map(str, range(seeds))))
    (directory / "mine.toml").write_text(text)
    return directory / "grokscope-runs"


def finished(store: Path) -> int:
    return len(list((store / "runs").glob("*/*.safetensors"))) if store.exists() else 0


def curves(store: Path) -> dict[str, str]:
    opened = gs.Store(store, create=False)
    return {run.run_id: repr(opened.load(run.run_id).curve) for run in opened.all()}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The curves of the short sweep."""
    directory = tmp_path_factory.mktemp("truth")
    store = sweep_in(directory, steps=30)
    grokscope("sweep", "mine.toml", cwd=directory)
    return curves(store)


# ---- the store goes away under a sweep -----------------------------------------------------------------------------


def vanish(store: Path) -> None:
    shutil.rmtree(store, ignore_errors=True)


def move(store: Path) -> None:
    store.rename(store.with_name("moved"))


def lose_index(store: Path) -> None:
    for file in store.glob("index.sqlite*"):
        file.unlink()


@pytest.mark.parametrize("loss", [vanish, move, lose_index])
def test_a_sweep_whose_store_goes_away_stops_with_an_error(tmp_path: Path, loss: Callable[[Path], None]) -> None:
    store = sweep_in(tmp_path, steps=6000, seeds=20)
    process = start("sweep", "mine.toml", "--workers", "2", cwd=tmp_path)
    wait_until(lambda: finished(store) >= 3, "some runs are stored")
    loss(store)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert "was moved, removed or replaced" in errors
    assert "Traceback" not in errors
    assert not (store / "index.sqlite").exists(), "a store is not made again in silence"
    if loss is move:
        moved = tmp_path / "moved"
        assert [finding for finding in check_store(moved) if not finding.kind.harmless] == []
        moved.rename(store)
        assert len(curves(store)) >= 3


# ---- what lies in the way ------------------------------------------------------------------------------------------


def test_pipes_in_the_place_of_checkpoints_hold_up_nobody(tmp_path: Path, truth: dict[str, str]) -> None:
    store = sweep_in(tmp_path, steps=30)
    gs.Store(store, create=True).close()
    (store / "checkpoints").mkdir()
    with sqlite3.connect(store / "index.sqlite") as index:
        for run_id in truth:
            os.mkfifo(store / "checkpoints" / f"{run_id}-00000000.safetensors")
            index.execute("INSERT INTO checkpoints VALUES (?, 5, ?)", (run_id, f"{run_id}-00000000.safetensors"))
    index.close()
    grokscope("sweep", "mine.toml", "--workers", "2", cwd=tmp_path)
    assert curves(store) == truth


def test_a_lease_of_nobody_holds_up_nobody(tmp_path: Path, truth: dict[str, str]) -> None:
    store = sweep_in(tmp_path, steps=30)
    gs.Store(store, create=True).close()
    with sqlite3.connect(store / "index.sqlite") as index:
        leases = [
            (run_id, owner, 1e12)
            for run_id, owner in zip(truth, ("garbage", "", "a/b/c", "x/1", "//", "h/1/2"), strict=True)
        ]
        index.executemany("INSERT INTO leases VALUES (?, ?, ?)", leases)
    index.close()
    grokscope("sweep", "mine.toml", "--workers", "2", cwd=tmp_path)
    assert curves(store) == truth


def test_a_forged_index_deletes_nothing_outside(tmp_path: Path, truth: dict[str, str]) -> None:
    store = sweep_in(tmp_path, steps=30)
    grokscope("sweep", "mine.toml", cwd=tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with sqlite3.connect(store / "index.sqlite") as index:
        index.execute("UPDATE runs SET file = '../../victim'")
        index.execute("INSERT INTO checkpoints SELECT run_id, 1, ? FROM runs", (str(victim),))
    index.close()
    done = grokscope("runs", "list", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == []
    assert "damaged in the store" in done.stderr
    for run_id in list(truth)[:3]:
        grokscope("runs", "delete", run_id, "--yes", cwd=tmp_path)
    grokscope("sweep", "mine.toml", cwd=tmp_path)
    grokscope("store", "check", "--repair", cwd=tmp_path)
    assert victim.read_text() == "precious"
    assert curves(store) == truth
    assert "is sound" in grokscope("store", "check", cwd=tmp_path).stderr


def test_figures_train_a_damaged_network_again(tmp_path: Path) -> None:
    tiny = ["figure", "fig06", "--scale", "tiny", "--seeds", "1"]
    grokscope(*tiny, cwd=tmp_path)
    store = tmp_path / "grokscope-runs"
    before = curves(store)
    for file in (store / "runs").glob("*/*"):
        content = bytearray(file.read_bytes())
        content[-1000] ^= 4
        file.write_bytes(content)
    done = grokscope(*tiny, cwd=tmp_path)
    assert "is damaged (its content does not match its checksum): it is deleted and trained again" in done.stderr
    assert curves(store) == before


# ---- kills in the middle -------------------------------------------------------------------------------------------


def killed_after(seconds: float, *arguments: str, cwd: Path) -> None:
    process = start(*arguments, cwd=cwd)
    time.sleep(seconds)
    if is_running(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_repair_that_is_killed_can_be_repeated(tmp_path: Path, truth: dict[str, str]) -> None:
    sound = sweep_in(tmp_path / "sound", steps=30)
    grokscope("sweep", "mine.toml", cwd=tmp_path / "sound")
    started = time.monotonic()
    grokscope_in_a_process("store", "check", cwd=tmp_path / "sound")
    whole = time.monotonic() - started
    for attempt, shares in enumerate([(0.8,), (0.9, 0.95)]):
        directory = tmp_path / str(attempt)
        store = directory / "grokscope-runs"
        shutil.copytree(sound, store)
        for file in store.glob("index.sqlite*"):
            file.write_bytes(b"no database any more" * 300)
        for share in shares:
            killed_after(whole * share, "store", "check", "--repair", cwd=directory)
        grokscope("store", "check", "--repair", cwd=directory)
        assert curves(store) == truth
        assert [finding for finding in check_store(store) if not finding.kind.harmless] == []
        assert [sweep.name for sweep in gs.Store(store).sweeps()] == ["mine"]


def test_a_merge_that_is_killed_can_be_repeated(tmp_path: Path, truth: dict[str, str]) -> None:
    sound = sweep_in(tmp_path / "sound", steps=30)
    grokscope("sweep", "mine.toml", cwd=tmp_path / "sound")
    started = time.monotonic()
    grokscope_in_a_process("store", "merge", str(sound), "trial", cwd=tmp_path)
    whole = time.monotonic() - started
    for share in (0.8, 0.95):
        killed_after(whole * share, "store", "merge", str(sound), "merged", cwd=tmp_path)
    done = grokscope("store", "merge", str(sound), "merged", cwd=tmp_path)
    assert "Copied" in done.stdout
    assert curves(tmp_path / "merged") == truth == curves(sound)
    assert [finding for finding in check_store(tmp_path / "merged") if not finding.kind.harmless] == []


def grokscope_in_a_process(*arguments: str, cwd: Path) -> None:
    process = start(*arguments, cwd=cwd)
    process.communicate(timeout=120)
    assert process.returncode == 0


# ---- the commands --------------------------------------------------------------------------------------------------


def test_the_commands_speak_plainly(tmp_path: Path) -> None:
    store = sweep_in(tmp_path, steps=30)
    grokscope("sweep", "mine.toml", cwd=tmp_path)
    assert "is sound" in grokscope("store", "check", cwd=tmp_path).stderr
    file = sorted((store / "runs").glob("*/*"))[0]
    file.write_bytes(file.read_bytes()[:-1])
    found = grokscope("store", "check", cwd=tmp_path, check=False)
    assert found.returncode == 1
    assert f"damaged run {file.name[:16]}: " in found.stdout
    assert "Findings: 1, 1 of them damage. To mend them: grokscope store check --repair" in found.stderr
    (listed,) = json.loads(grokscope("store", "check", "--json", cwd=tmp_path, check=False).stdout)
    assert (listed["kind"], listed["name"], listed["repair"]) == ("run", file.name[:16], None)
    mended = grokscope("store", "check", "--repair", cwd=tmp_path)
    assert "1 of 1 findings were mended." in mended.stderr
    nowhere = grokscope("store", "check", "--store", "nowhere", cwd=tmp_path, check=False)
    assert (nowhere.returncode, nowhere.stderr) == (
        2,
        "grokscope: there is no store at nowhere; name one with --store\n",
    )
    alone = grokscope("store", "merge", "grokscope-runs", cwd=tmp_path, check=False)
    assert alone.returncode == 2
    assert "name at least two stores" in alone.stderr
    same = grokscope(
        "store", "merge", "grokscope-runs", "../" + tmp_path.name + "/grokscope-runs", cwd=tmp_path, check=False
    )
    assert same.returncode == 2
    assert "are the same store" in same.stderr
    absent = grokscope("store", "merge", "nowhere", "new", cwd=tmp_path, check=False)
    assert absent.returncode == 2
    assert not (tmp_path / "new").exists()

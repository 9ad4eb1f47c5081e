"""Random damage to a store. Whatever happens to it: no traceback, no hang, nothing outside is touched, and no wrong
number without a word. `make verify` does the same many more times.
"""

import json
import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.integration.processes import grokscope
from tests.unit.test_store_sharing import checkpoint_of

import grokscope as gs
from grokscope.store.check import check_store

SECRET = "a file of somebody else's"
LONGEST = 60  # seconds for all commands on one store; they take less than one
TABLES = ("runs", "sweeps", "cells", "leases", "checkpoints", "failures")


@dataclass(frozen=True)
class Intact:
    """A sound store, and what is true of it."""

    path: Path
    specs: list[gs.RunSpec]
    runs: dict[str, dict[str, object]]  # as `runs show --json` prints them
    listed: dict[str, dict[str, object]]  # as `runs list --json` does
    diagram: str  # as CSV


@pytest.fixture(scope="module")
def intact() -> Iterator[Intact]:
    with tempfile.TemporaryDirectory() as directory:
        base = gs.RunSpec(
            task=gs.TaskSpec(modulus=11), model=gs.ModelSpec(width=24), training=gs.TrainingSpec(steps=30)
        )
        axes = {"task.data_fraction": [0.4, 0.6], "task.corruption": [0.0, 0.3]}
        path = Path(directory) / "store"
        diagram = gs.sweep(axes, base=base, name="mine", store=path, workers=0, weights=True, progress=False)
        specs = list(diagram.plan.specs())
        store = gs.Store(path)
        unfinished = base.updated({"training.seed": 5})
        store.save_checkpoint(unfinished.run_id, checkpoint_of(unfinished))
        store.save_failure(base.updated({"training.seed": 6}), "ValueError: no", "Traceback …")
        store.lease(base.updated({"training.seed": 7}).run_id)
        runs = {spec.run_id: store.load(spec.run_id).to_dict() for spec in specs}
        store.close()
        yield Intact(path, [*specs, unfinished], runs, _listed(path), _diagram(path))


def _listed(path: Path) -> dict[str, dict[str, object]]:
    done = grokscope("runs", "list", "--json", "--store", str(path), cwd=path.parent)
    return {run["run_id"]: run for run in json.loads(done.stdout)}


def _diagram(path: Path) -> str:
    out = path.parent / "diagram.csv"
    grokscope("phase-diagram", "mine", "--out", str(out), "--store", str(path), cwd=path.parent)
    return out.read_text()


# ---- damage --------------------------------------------------------------------------------------------------------


def damage(store: Path, victim: Path, random: Random) -> str:
    """Do something terrible to a store; what it was."""
    files = sorted(file for file in store.rglob("*") if file.is_file() and not file.is_symlink())
    if not files:
        return "nothing is left to damage"
    file = random.choice(files)
    kind = random.choice(("flip", "truncate", "zero", "replace", "remove", "swap", "pipe", "link", "forge", "forge"))
    content = bytearray(file.read_bytes())
    place = random.randrange(len(content)) if content else 0
    match kind:
        case "flip" if content:
            content[place] ^= 1 << random.randrange(8)
            file.write_bytes(content)
        case "truncate":
            file.write_bytes(content[:place])
        case "zero":
            file.write_bytes(content[:place] + bytes(min(500, len(content) - place)) + content[place + 500 :])
        case "replace":
            file.write_bytes(random.randbytes(random.choice((0, 7, 4096))))
        case "remove":
            file.unlink()
        case "swap":
            other = random.choice([each for each in files if each.suffix == file.suffix])
            theirs = other.read_bytes()
            other.write_bytes(content)
            file.write_bytes(theirs)
        case "pipe":
            file.unlink()
            os.mkfifo(file)
        case "link":
            file.unlink()
            file.symlink_to(victim)
        case "forge":
            return forge(store, victim, random)
    return f"{kind} {file.relative_to(store)}"


def forge(store: Path, victim: Path, random: Random) -> str:
    """Write something into the index that grokscope did not write."""
    values = (
        None, 0, -1, 1e300, 2**62, "", "garbage", "{", "[" * 3000, "x" * 5000, str(victim), "../../victim", b"\xff\xfe",
        "full_inversion", "finished", '{"step": 1}', "confusion", 0.5, 1, "0" * 16,
    )  # fmt: skip
    table, value = random.choice(TABLES), random.choice(values)
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{store / 'index.sqlite'}?mode=rw", uri=True)) as index:
        if random.random() < 0.5:  # NULL in places where SQLite allows none: a zeroed page has that
            index.execute("PRAGMA writable_schema = ON")
            index.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
            index.execute("PRAGMA writable_schema = RESET")
        column = random.choice([row[1] for row in index.execute(f"PRAGMA table_info({table})")] or ["none"])
        every_other = "WHERE rowid % 2" if table in ("runs", "sweeps") else ""
        if random.random() < 0.2:
            other = f"(SELECT {column} FROM {table} ORDER BY {column} LIMIT 1)"
            index.execute(f"UPDATE OR IGNORE {table} SET {column} = {other}")
        else:
            index.execute(f"UPDATE OR IGNORE {table} SET {column} = ? {every_other}", (value,))
        index.commit()
        return f"forge {table}.{column} = {value!r:.40}"
    return "forge: the index cannot be forged"


# ---- what must hold ------------------------------------------------------------------------------------------------


@contextmanager
def in_time() -> Iterator[None]:
    """Fail, wherever it waits, if the block takes too long."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"no end after {LONGEST} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def said(*arguments: str, store: Path) -> tuple[str, str]:
    """What a command prints. It may fail, in one line; `grokscope` lets every other exception through."""
    done = grokscope(*arguments, "--store", str(store), cwd=store.parent, check=False)
    assert done.returncode in (0, 1, 2), done.stderr
    assert done.returncode != 2 or done.stderr.count("\n") <= 3, done.stderr
    assert done.returncode == 0 or done.stderr + done.stdout
    return (done.stdout if done.returncode == 0 else ""), done.stderr


NO_REMARKS: dict[str, object] = {"name": None, "tags": [], "note": ""}  # nobody has said anything about these runs


def check_nothing_is_wrong(store: Path, intact: Intact) -> None:
    """Every number that a command prints is the true one; what is left out is mentioned."""
    shown, words = said("runs", "list", "--json", store=store)
    listed = {run["run_id"]: run for run in json.loads(shown or "[]")}
    assert all(run == intact.listed.get(run_id) for run_id, run in listed.items())
    assert listed == intact.listed or words or not (store / "index.sqlite").exists(), "a run is missing without a word"
    for run_id, truth in intact.runs.items():
        shown, _ = said("runs", "show", run_id, "--json", store=store)
        assert not shown or json.loads(shown) == json.loads(json.dumps(truth | NO_REMARKS))
    said("status", "--json", store=store)
    said("runs", "list", "--where", "task.corruption>=0", store=store)
    out = store.parent / "diagram.csv"
    out.unlink(missing_ok=True)
    _, words = said("phase-diagram", "mine", "--out", str(out), store=store)
    if out.exists() and out.read_text() != intact.diagram:
        assert "damaged" in words or "missing" in words, words
        true_cells = {tuple(line.split(",")[:7]) for line in intact.diagram.splitlines()}
        shown_cells = {tuple(line.split(",")[:7]) for line in out.read_text().splitlines()}
        assert all(cell in true_cells or cell[2] != "run" for cell in shown_cells)
    said("store", "check", store=store)


def check_it_can_be_mended(store: Path, intact: Intact) -> None:
    """After a repair the store is sound, and the sweep gives what it gave."""
    shown, _ = said("store", "check", "--repair", store=store)
    with suppress(gs.StoreError):
        left = [finding for finding in check_store(store) if not finding.kind.harmless]
        assert not left, (left, shown)
        opened = gs.Store(store)
        for run_id, truth in intact.runs.items():
            if opened.find(run_id):
                assert repr(opened.load(run_id).to_dict()) == repr(truth)
        opened.close()
        for spec in intact.specs:
            assert repr(gs.train(spec, store=store).curve) == repr(gs.run(spec).curve)


def attack(intact: Intact, seed: int) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory, in_time():
        store, victim = Path(directory) / "store", Path(directory) / "victim"
        shutil.copytree(intact.path, store)
        victim.write_text(SECRET)
        done = [damage(store, victim, random) for _ in range(random.choice((1, 1, 2, 3)))]
        try:
            check_nothing_is_wrong(store, intact)
            check_it_can_be_mended(store, intact)
            for run_id in intact.runs:
                said("runs", "delete", run_id, "--yes", store=store)
        except BaseException as error:
            error.add_note(f"seed {seed}: {', '.join(done)}")
            raise
        assert victim.read_text() == SECRET


def test_a_damaged_store_never_lies(intact: Intact) -> None:
    @settings(max_examples=20, phases=[Phase.generate])  # a smaller seed is not a simpler case
    @given(st.integers(0, 2**32))
    def attacked(seed: int) -> None:
        attack(intact, seed)

    attacked()


@pytest.mark.verify
def test_a_damaged_store_never_lies_many_times(intact: Intact) -> None:
    for seed in range(3000):
        attack(intact, seed)

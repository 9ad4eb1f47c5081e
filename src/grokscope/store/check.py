"""Looking through a whole store for damage and leftovers, and mending what can be mended.

    for finding in check_store(Path("grokscope-runs")):
        print(finding)

Nothing that could be somebody's data is thrown away: damaged files are moved to `damaged/` in the store. Files younger
than an hour that the index does not name are left alone, since a process may be about to enter them. Each repair is
complete by itself, so one that is killed is simply started again.
"""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

from grokscope.errors import StoreError
from grokscope.store.contents import Content, Damaged, Packed, document_from, pack, run_from, unpack
from grokscope.store.files import is_ordinary, move, read_inside, remove_inside
from grokscope.store.index import INDEX, integrity_problem
from grokscope.store.records import StoredRun, StoredSweep, run_of
from grokscope.store.remarks import Remarks, remarks_from
from grokscope.store.runs import is_file_of
from grokscope.store.store import Store

_YOUNG = 3600.0  # seconds


class Kind(Enum):
    """What is the matter; the second word says whether data is at stake."""

    INDEX = "damaged index"
    RUN = "damaged run"
    MISSING = "missing file"
    SWEEP = "damaged sweep"
    FAILURE = "damaged failure"
    REMARKS = "damaged tags, name or note of run"
    COPY = "missing copy of the tags, name and note of run"
    CHECKPOINT = "damaged checkpoint"
    UNNAMED = "run that the index does not name"
    STRAY = "stray file"
    LEASE = "lease of a dead process"
    UNCHECKED = "run without a checksum"

    @property
    def harmless(self) -> bool:
        """Whether all that is known is still there."""
        return self in (Kind.CHECKPOINT, Kind.STRAY, Kind.LEASE, Kind.UNCHECKED, Kind.COPY)


@dataclass(frozen=True)
class Finding:
    """One thing that is the matter with a store."""

    kind: Kind
    name: str
    detail: str
    repair: str | None = None  # what was done about it

    def __str__(self) -> str:
        done = f" → {self.repair}" if self.repair else ""
        return f"{self.kind.value} {self.name}: {self.detail}{done}"


def check_store(path: Path, *, repair: bool = False, on_file: Callable[[], None] | None = None) -> Iterator[Finding]:
    """Everything that is the matter with a store, one after another. With `repair` each is mended as it is found.

    `on_file` is called for every file that was looked at.
    """
    if not (path / "runs").is_dir() and not os.path.lexists(path / INDEX):
        raise StoreError(f"there is no store at {path}; name one with --store")
    if problem := integrity_problem(path):
        yield Finding(Kind.INDEX, INDEX, problem, _rebuild(path) if repair else None)
        if not repair:
            return
    store = Store(path, create=repair)
    try:
        yield from _Checkup(store, path, repair, on_file or (lambda: None)).findings()
    finally:
        store.close()


class _Checkup:
    def __init__(self, store: Store, path: Path, repair: bool, on_file: Callable[[], None]) -> None:
        self._store, self._path, self._repair, self._on_file = store, path.absolute(), repair, on_file
        self._damaged: set[str] = set()  # runs

    def findings(self) -> Iterator[Finding]:
        for run_id in self._store.files():
            yield from self._check_run(run_id)
            self._on_file()
        yield from self._check_files()
        yield from self._check_checkpoints()
        yield from self._check_sweeps()
        yield from self._check_remarks()
        for run_id in self._store.sound_and_damaged_failures()[1]:
            done = self._do(partial(self._store.drop, "failures", run_id), "forgotten: it is tried again")
            yield Finding(Kind.FAILURE, run_id, "its entry in the index has been changed", done)
        for run_id, alive in self._store.leases().items():
            if not alive:
                done = self._do(partial(self._store.drop, "leases", run_id), "removed")
                yield Finding(Kind.LEASE, run_id, "the process that was training it is gone", done)

    def _do(self, action: Callable[[], object], words: str) -> str | None:
        if not self._repair:
            return None
        action()
        return words

    # ---- runs ---------------------------------------------------------------------------------------------------

    def _check_run(self, run_id: str) -> Iterator[Finding]:
        try:
            run = self._store.entry(run_id)
            content = self._store.content(run)
            run_from(content, run.spec)
        except Damaged as reason:
            self._damaged.add(run_id)
            kind = Kind.MISSING if "is missing" in str(reason) else Kind.RUN
            yield Finding(kind, run_id, str(reason), self._mend_run(run_id) if self._repair else None)
            return
        except StoreError as error:  # not damage: it may not be read
            yield Finding(Kind.RUN, run_id, str(error))
            return
        if content.checksum is None:
            detail = "an older release wrote it, so damage to its numbers would not be seen"
            done = self._do(lambda: self._store.put(run.record(), _packed(run, content)), "written again with one")
            yield Finding(Kind.UNCHECKED, run_id, detail, done)

    def _mend_run(self, run_id: str) -> str:
        """Enter a file of the run that is sound; without one, remove the run from the index."""
        candidates = sorted((self._path / "runs" / run_id[:2]).glob(f"{run_id}-*.safetensors"), key=_age)
        for file in candidates:
            if found := self._sound_run(file):
                self._store.enter(found.record(), f"{run_id[:2]}/{file.name}", found.checksum)
                return f"entered again from {file.name}"
        for file in candidates:
            self._set_aside(file)
        self._store.drop("runs", run_id)
        moved = "its file is in damaged/, and " if candidates else ""
        return f"{moved}the index no longer has it; training it again replaces it"

    def _sound_run(self, file: Path) -> StoredRun | None:
        try:
            content = unpack(read_inside(self._path, file))
            if content.record is None or not is_file_of(file.name, str(content.run_id)):
                return None
            run = run_of(content.record, f"{file.parent.name}/{file.name}", content.checksum)
            run_from(content, run.spec)
        except (OSError, Damaged):
            return None
        return run if run.run_id == content.run_id and file.parent.name == run.run_id[:2] else None

    def _set_aside(self, file: Path) -> None:
        (self._path / "damaged").mkdir(exist_ok=True)
        move(file, self._path / "damaged" / file.name)

    # ---- files --------------------------------------------------------------------------------------------------

    def _check_files(self) -> Iterator[Finding]:
        known = self._store.files()
        named = set(known.values())
        for file in sorted((self._path / "runs").glob("*/*")):
            name = f"{file.parent.name}/{file.name}"
            if name in named or file.name[:16] in self._damaged:
                continue
            if not is_ordinary(file):
                yield Finding(Kind.STRAY, name, "it is not an ordinary file")
            elif (run := self._sound_run(file)) and run.run_id not in known:
                entered = self._do(partial(self._store.enter, run.record(), run.file, run.checksum), "entered")
                yield Finding(Kind.UNNAMED, run.run_id, f"its file {name} is sound", entered)
            else:
                yield self._stray(file, f"runs/{name}", "the index does not name it")

    def _stray(self, file: Path, name: str, detail: str) -> Finding:
        if _age(file) < _YOUNG:
            return Finding(Kind.STRAY, name, f"{detail}; it is younger than an hour, so it is left alone")
        ours = file.name.startswith(".") or is_file_of(file.name, file.name[:16])
        if not ours:
            return Finding(Kind.STRAY, name, "its name is not one of grokscope's, so it is left alone")
        return Finding(Kind.STRAY, name, detail, self._do(lambda: remove_inside(self._path, file), "removed"))

    # ---- checkpoints and sweeps ---------------------------------------------------------------------------------

    def _check_checkpoints(self) -> Iterator[Finding]:
        named = self._store.checkpoints()
        for run_id in named:
            try:
                self._store.checkpoint_content(run_id)
            except Damaged as reason:
                done = self._do(partial(self._store.drop, "checkpoints", run_id), "removed")
                yield Finding(Kind.CHECKPOINT, run_id, f"{reason}; its run starts from the beginning", done)
            self._on_file()
        directory = self._path / "checkpoints"
        for file in sorted(directory.iterdir()) if directory.is_dir() else ():
            if file.name in named.values():
                continue
            yield self._stray(file, f"checkpoints/{file.name}", "the index does not name it")

    def _check_sweeps(self) -> Iterator[Finding]:
        sound, damaged = self._store.sound_and_damaged_sweeps()
        files = dict(self._sweep_files())
        for name in damaged:
            if name in files:
                done = self._do(partial(self._store.enter_sweep, *files[name]), "entered again from its file")
            else:
                done = self._do(partial(self._store.forget_sweep, name), "removed; its runs stay")
            yield Finding(Kind.SWEEP, name, "its entry in the index has been changed", done)
        for name in files.keys() - {sweep.name for sweep in sound} - set(damaged):
            done = self._do(partial(self._store.enter_sweep, *files[name]), "entered from its file")
            yield Finding(Kind.SWEEP, name, "the index does not name it", done)

    def _sweep_files(self) -> Iterator[tuple[str, tuple[StoredSweep, list[str]]]]:
        for file in sorted((self._path / "sweeps").glob("*.json")):
            try:
                sweep = document_from("sweep", read_inside(self._path, file))
                run_ids = sweep.pop("run_ids")
                yield sweep["name"], (StoredSweep(**sweep), run_ids)
            except (OSError, Damaged):
                continue  # the index has the sweep too, unless that is damaged as well

    # ---- remarks ------------------------------------------------------------------------------------------------

    def _check_remarks(self) -> Iterator[Finding]:
        """Index and files say the same twice; the index counts, unless it was changed or lost."""
        sound, damaged = self._store.sound_and_damaged_remarks()
        files = dict(self._remarks_files())
        for run_id in damaged:
            if run_id in files:
                done = self._do(
                    partial(self._store.put_remarks, run_id, files[run_id]), "entered again from their file"
                )
            else:
                done = self._do(partial(self._store.drop, "remarks", run_id), "removed")
            yield Finding(Kind.REMARKS, run_id, "their entry in the index has been changed", done)
        for run_id in sorted(files.keys() - sound.keys() - set(damaged)):
            done = self._do(partial(self._store.put_remarks, run_id, files[run_id]), "entered from their file")
            yield Finding(Kind.REMARKS, run_id, "the index does not have them", done)
        for run_id, remarks in sound.items():
            if files.get(run_id) != remarks:
                done = self._do(partial(self._store.put_remarks, run_id, remarks), "written again")
                yield Finding(Kind.COPY, run_id, "the index has them, but no sound file", done)

    def _remarks_files(self) -> Iterator[tuple[str, Remarks]]:
        for file in sorted((self._path / "remarks").glob(f"{'[0-9a-f]' * 16}.json")):
            try:
                yield file.stem, remarks_from(document_from("remarks", read_inside(self._path, file)), file.stem)
            except (OSError, Damaged):
                continue  # the index has them too, unless that is damaged as well


def _packed(run: StoredRun, content: Content) -> Packed:
    return pack(content.arrays, run.run_id, run.record())


def _age(file: Path) -> float:
    return time.time() - file.lstat().st_mtime


# ---- the index -----------------------------------------------------------------------------------------------------


def _rebuild(path: Path) -> str:
    """Make the index again from the files, and from what can still be read of the old one.

    The new index is made aside and takes the place of the old one when it is complete; the old one is kept in
    `damaged/`. What the files say is entered by the checks that follow.
    """
    aside = path / f".index-{secrets.token_hex(4)}"
    old = _salvaged(path)
    new = Store(aside, create=True)
    for run in old:
        new.enter(run.record(), run.file, run.checksum)
    new.close()
    (path / "damaged").mkdir(exist_ok=True)
    stamp = f"{int(time.time())}-{secrets.token_hex(2)}"
    for suffix in ("", "-wal", "-shm"):
        file, kept = path / f"{INDEX}{suffix}", path / "damaged" / f"{INDEX}-{stamp}{suffix}"
        if is_ordinary(file):
            shutil.copyfile(file, kept)
        elif os.path.lexists(file):
            file.rename(kept)
    for suffix in ("-wal", "-shm"):  # of the old index: SQLite would write them into the new one
        (path / f"{INDEX}{suffix}").unlink(missing_ok=True)
    move(aside / INDEX, path / INDEX)
    shutil.rmtree(aside)
    read = f"; {len(old)} entries of the old one could be read" if old else ""
    return f"made again{read}; the old one is in damaged/"


def _salvaged(path: Path) -> list[StoredRun]:
    """The sound entries of a damaged index, as far as it can be read."""
    try:
        store = Store(path, create=False)
    except StoreError:
        return []
    found = []
    try:
        for run_id in store.files():
            try:
                found.append(store.entry(run_id))
            except (Damaged, StoreError):
                continue
    except StoreError:
        pass  # it ends here
    finally:
        store.close()
    return found

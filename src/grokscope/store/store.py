"""Runs on disk: an SQLite index and one safetensors file per run.

    store = Store(Path("grokscope-runs"))
    store.save(result)
    store.load(result.run_id)

The index knows the runs and their outcomes, the sweeps, the leases, the checkpoints and the failures. The file of a run
holds its curve, the spectra of its neurons and, if they were kept, its weights. A file is complete before the index
names it. It is never changed, and is removed only after the index no longer names it. So a crash at any moment leaves
the store as it was either before or after a save.

    grokscope-runs/
      index.sqlite
      runs/3f/3f0c…-7d1e….safetensors
      checkpoints/3f0c…-51aa….safetensors
"""

import json
import os
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from grokscope.errors import SpecError, StoreError
from grokscope.measure import NeuronSpectra
from grokscope.phases import Phase
from grokscope.result import Checkpoint, RunResult, row_to_dict
from grokscope.spec import RunSpec, unknown_key
from grokscope.store.files import (
    array_bytes,
    checkpoint_bytes,
    checkpoint_from,
    curve_from,
    group,
    write_atomically,
)
from grokscope.store.owners import describe_owner, is_alive, owner_name
from grokscope.store.schema import SCHEMA_VERSION, schema_version, upgrade
from grokscope.store.where import Condition, fields_of_users_own, where_clause

DEFAULT_STORE = Path("grokscope-runs")
BUSY_SECONDS = 30.0  # how long a process waits while another one writes the index
LEASE_SECONDS = 120.0  # a process of another host loses its lease if it has not renewed it for this long


@dataclass(frozen=True)
class StoredRun:
    """What the index knows about a run."""

    run_id: str
    spec: RunSpec
    status: str
    phase: Phase | None
    diverged_step: int | None
    engine: str
    seconds: float
    has_weights: bool
    finished_at: str
    final: dict[str, float | None] | None  # None if it diverged before the first measured step
    file: str


@dataclass(frozen=True)
class StoredSweep:
    """A sweep that was started on this store."""

    name: str
    definition: dict[str, Any]
    refined: bool
    started_at: str


class CellOutcome(NamedTuple):
    """The outcome of one run of a sweep."""

    place: int
    run_id: str
    outcome: str | None  # the value of a phase, "diverged" or "failed"; None if the run is not done yet
    train_accuracy: float | None
    test_accuracy: float | None


@dataclass(frozen=True)
class Failure:
    """A run that ended with an exception, or whose process was killed."""

    run_id: str
    spec: RunSpec
    error: str
    traceback: str
    failed_at: str


class LeaseAnswer(Enum):
    """What the store answers a process that asks for a lease on a run."""

    GRANTED = "granted"
    HELD = "held"  # somebody else is working on it
    DONE = "done"


class Store:
    """A directory of runs. Any number of processes may open it."""

    def __init__(self, path: str | Path = DEFAULT_STORE, *, create: bool = True) -> None:
        """Open a store. With `create`, make it if needed, and check that it can be written before any work is done."""
        self.path = Path(path)
        index = self.path / "index.sqlite"
        if not create and not index.exists():
            raise StoreError(f"there is no store at {path}; name one with --store, or train a run first")
        with _as_store_error(f"cannot open the store {path}"):
            if create:
                (self.path / "runs").mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=self.path / "runs").close()
            # SQLite cannot share an index with writers in a read-only directory, but there are no writers there.
            writable = os.access(self.path, os.W_OK)
            self._index = sqlite3.connect(
                f"{index.absolute().as_uri()}{'' if writable else '?immutable=1'}",
                timeout=BUSY_SECONDS,
                isolation_level=None,
                uri=True,
            )
            if create:
                _write_ahead(self._index)
            self._index.execute("PRAGMA synchronous = FULL")
            if create or (writable and 0 < schema_version(self._index) < SCHEMA_VERSION):
                upgrade(self._index)
            version = schema_version(self._index)
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"the store {path} was written by a newer grokscope (format {version}, this one reads "
                f"{SCHEMA_VERSION}); upgrade grokscope, or use another --store"
            )
        if version < SCHEMA_VERSION:
            raise StoreError(
                f"the store {path} has an older format ({version}, this grokscope reads {SCHEMA_VERSION}) and cannot "
                "be written, so it cannot be upgraded; copy it to a place where it can be written"
            )

    def close(self) -> None:
        """Close the index. Saved runs are safe even without this."""
        self._index.close()

    # ---- runs ---------------------------------------------------------------------------------------------------

    def save(self, result: RunResult, *, weights: bool = False) -> None:
        """Write a run, in place of an earlier one with the same spec. Removes its lease, checkpoint and failure."""
        keep_weights = weights and result.weights is not None
        final = row_to_dict(result.final) if result.curve else None
        file = f"{result.run_id[:2]}/{result.run_id}-{secrets.token_hex(4)}.safetensors"
        with _as_store_error(f"cannot write run {result.run_id} to the store {self.path}"):
            write_atomically(self._path(file), array_bytes(result, weights=keep_weights))
            with self._transaction():
                outdated = self._files_of(result.run_id)
                self._index.execute(
                    "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        result.run_id,
                        json.dumps(result.spec.model_dump(mode="json")),
                        result.status,
                        result.phase.value if result.phase else None,
                        result.diverged_step,
                        result.engine,
                        result.seconds,
                        int(keep_weights),
                        _now(),
                        json.dumps(final) if final else None,
                        file,
                        final and final["train_accuracy"],
                        final and final["test_accuracy"],
                    ),
                )
                for table in ("leases", "checkpoints", "failures"):
                    self._index.execute(f"DELETE FROM {table} WHERE run_id = ?", (result.run_id,))
            _remove(outdated)

    def find(self, run_id: str) -> StoredRun | None:
        """The run with exactly this id, or None."""
        rows = self._select("WHERE run_id = ?", run_id)
        return rows[0] if rows else None

    def resolve(self, prefix: str) -> StoredRun:
        """The run whose id begins with `prefix`. If there is not exactly one, the error lists the nearest."""
        if not prefix:
            raise StoreError("name a run by its id or the first digits of it; `grokscope runs list` shows them")
        matches = self._ids_from(prefix)
        if len(matches) == 1 and (run := self.find(matches[0])):
            return run
        if matches:
            some = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
            raise StoreError(f"run {prefix!r} is ambiguous: {some}; type more of the id")
        shorter = prefix
        while shorter and not matches:
            shorter = shorter[:-1]
            matches = self._ids_from(shorter)
        nearest = f"; nearest: {', '.join(matches[:5])}" if matches else "; the store is empty"
        raise StoreError(f"there is no run {prefix!r} in the store {self.path}{nearest}")

    def all(self) -> list[StoredRun]:
        """All runs, oldest first."""
        return self._select("ORDER BY finished_at, run_id")

    def runs(self, where: Sequence[str | Condition] = (), limit: int | None = None) -> list[StoredRun]:
        """The runs that meet all conditions, oldest first; with `limit` only the newest.

        store.runs(where=["optimizer.weight_decay>=5", "phase=coexistence"])
        """
        return self.search(where, limit)[1]

    def search(self, where: Sequence[str | Condition] = (), limit: int | None = None) -> tuple[int, list[StoredRun]]:
        """How many runs meet all conditions, and the newest `limit` of them, oldest first."""
        clause, values = where_clause(where)
        self._check_known(where)
        with self._reading():
            found = self._index.execute(f"SELECT run_id FROM runs {clause} ORDER BY finished_at, run_id", values)
            run_ids = [run_id for (run_id,) in found]
        newest = json.dumps(run_ids if limit is None else run_ids[-limit:])
        chosen = "WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY finished_at, run_id"
        return len(run_ids), self._select(chosen, newest)

    def _check_known(self, where: Sequence[str | Condition]) -> None:
        """Refuse a condition on a field of a user's own that no run here has: it is misspelt."""
        for field in fields_of_users_own(where):
            with self._reading():
                query = "SELECT 1 FROM runs WHERE json_extract(spec, ?) IS NOT NULL LIMIT 1"
                known = self._index.execute(query, (f"$.{field}",)).fetchone()
            if not known:
                raise SpecError(
                    f"{unknown_key(field)}; nor has a run in the store {self.path} such a field of your own"
                )

    def load(self, run_id: str) -> RunResult:
        """Load a run with its curve, its spectra and, if they were kept, its weights."""
        run = self.resolve(run_id)
        file = self._path(run.file)
        try:
            arrays = safetensors.numpy.load_file(file)
        except (OSError, SafetensorError) as error:
            raise StoreError(f"cannot read {file}: {error}; delete the run and train it again") from None
        neurons, outputs = group(arrays, "neurons"), group(arrays, "outputs")
        weights = group(arrays, "weights")
        return RunResult(
            spec=run.spec,
            engine=run.engine,
            seconds=run.seconds,
            status="finished" if run.status == "finished" else "diverged",
            diverged_step=run.diverged_step,
            weights={name: array.astype(np.float32, copy=False) for name, array in weights.items()} or None,
            curve=curve_from(arrays),
            neurons=NeuronSpectra(**neurons) if neurons else None,
            outputs=NeuronSpectra(**outputs) if outputs else None,
            phase=run.phase,
        )

    def delete(self, run_id: str) -> None:
        """Remove a run, first from the index, so that the index never names a missing file."""
        run = self.resolve(run_id)
        with _as_store_error(f"cannot delete run {run.run_id}"):
            with self._transaction():
                outdated = self._files_of(run.run_id)
                for table in ("runs", "checkpoints"):
                    self._index.execute(f"DELETE FROM {table} WHERE run_id = ?", (run.run_id,))
            _remove(outdated)

    # ---- unfinished runs ----------------------------------------------------------------------------------------

    def lease(self, run_id: str, *, weights: bool = False, again: bool = False) -> LeaseAnswer:
        """Ask for a run to work on. Of all processes that ask, one gets it, until it saves, releases or dies.

        With `weights`, a run that is stored without them is to be done again; with `again`, any stored run is.
        """
        with _as_store_error(f"cannot lease run {run_id} in the store {self.path}"), self._transaction(durable=False):
            done = "SELECT 1 FROM runs WHERE run_id = ? AND (has_weights OR NOT ? OR status = 'diverged')"
            if not again and self._index.execute(done, (run_id, weights)).fetchone():
                return LeaseAnswer.DONE
            lease = self._index.execute("SELECT owner, expires FROM leases WHERE run_id = ?", (run_id,)).fetchone()
            if lease and lease[0] != owner_name() and is_alive(*lease):
                return LeaseAnswer.HELD
            self._index.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (run_id, *_lease()))
            return LeaseAnswer.GRANTED

    def renew(self, run_id: str) -> None:
        """Renew the lease of a run: this process is still working on it."""
        with _as_store_error(f"cannot renew the lease of run {run_id}"), self._transaction(durable=False):
            self._index.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (run_id, *_lease()))

    def release(self, run_id: str) -> None:
        """Give up the lease of a run."""
        with _as_store_error(f"cannot release run {run_id}"), self._transaction(durable=False):
            self._index.execute("DELETE FROM leases WHERE run_id = ? AND owner = ?", (run_id, owner_name()))

    def holder(self, run_id: str) -> str | None:
        """Who is working on a run now, in words."""
        with self._reading():
            lease = self._index.execute("SELECT owner, expires FROM leases WHERE run_id = ?", (run_id,)).fetchone()
        return describe_owner(lease[0]) if lease and is_alive(*lease) else None

    def running(self) -> set[str]:
        """The runs that a process is working on now."""
        with self._reading():
            leases = self._index.execute("SELECT run_id, owner, expires FROM leases").fetchall()
        return {run_id for run_id, owner, expires in leases if is_alive(owner, expires)}

    def save_checkpoint(self, run_id: str, checkpoint: Checkpoint) -> None:
        """Save the state of an unfinished run, in place of its earlier checkpoint."""
        file = f"{run_id}-{secrets.token_hex(4)}.safetensors"
        with _as_store_error(f"cannot write a checkpoint of run {run_id} to the store {self.path}"):
            write_atomically(self._checkpoint_path(file), checkpoint_bytes(checkpoint))
            with self._transaction():
                before = self._checkpoint_file(run_id)
                self._index.execute(
                    "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", (run_id, checkpoint.state.step, file)
                )
            _remove(before)

    def load_checkpoint(self, run_id: str) -> Checkpoint | None:
        """The last saved state of an unfinished run; None if it must start from the beginning."""
        with self._reading():
            files = self._checkpoint_file(run_id)
        try:
            return checkpoint_from(safetensors.numpy.load_file(files[0])) if files else None
        except (OSError, SafetensorError):
            return None  # damaged: the run starts from the beginning, which costs only time

    # ---- failures -----------------------------------------------------------------------------------------------

    def save_failure(self, spec: RunSpec, error: str, traceback: str) -> None:
        """Record that a run failed, and how. Its checkpoint stays."""
        with _as_store_error(f"cannot write the failure of run {spec.run_id} to the store"), self._transaction():
            content = (spec.run_id, json.dumps(spec.model_dump(mode="json")), error, traceback, _now())
            self._index.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?)", content)
            self._index.execute("DELETE FROM leases WHERE run_id = ? AND owner = ?", (spec.run_id, owner_name()))

    def failures(self, sweep: str | None = None) -> list[Failure]:
        """Failed runs that have not been run again since, of one sweep or of all, oldest first."""
        clause = "" if sweep is None else "WHERE run_id IN (SELECT run_id FROM cells WHERE sweep = ?)"
        values = () if sweep is None else (sweep,)
        with self._reading():
            rows = self._index.execute(f"SELECT * FROM failures {clause} ORDER BY failed_at, run_id", values).fetchall()
        return [Failure(row[0], RunSpec.stored(json.loads(row[1])), *row[2:]) for row in rows]

    def forget_failures(self, sweep: str) -> int:
        """Remove the failures of a sweep, so that its failed runs are tried again. Returns how many there were."""
        with _as_store_error(f"cannot write the store {self.path}"), self._transaction():
            return self._index.execute(
                "DELETE FROM failures WHERE run_id IN (SELECT run_id FROM cells WHERE sweep = ?)", (sweep,)
            ).rowcount

    # ---- sweeps -------------------------------------------------------------------------------------------------

    def record_sweep(self, name: str, definition: dict[str, Any], run_ids: Iterable[str], *, refined: bool) -> None:
        """Record the runs of a sweep, in the order of its places. Replaces a sweep of the same name."""
        with _as_store_error(f"cannot write the sweep {name} to the store {self.path}"), self._transaction():
            self._index.execute("DELETE FROM cells WHERE sweep = ?", (name,))
            self._index.execute(
                "INSERT OR REPLACE INTO sweeps VALUES (?, ?, ?, ?)", (name, json.dumps(definition), refined, _now())
            )
            self._index.executemany(
                "INSERT INTO cells VALUES (?, ?, ?)", ((name, place, run_id) for place, run_id in enumerate(run_ids))
            )

    def sweeps(self) -> list[StoredSweep]:
        """All sweeps, in the order in which they were last started."""
        with self._reading():
            rows = self._index.execute("SELECT * FROM sweeps ORDER BY started_at, name").fetchall()
        return [StoredSweep(name, json.loads(definition), bool(refined), at) for name, definition, refined, at in rows]

    def outcomes(self, run_ids: Iterable[str]) -> list[CellOutcome]:
        """The outcomes of these runs, of a sweep or not. The place of a run is its index among the ids."""
        with self._reading():
            rows = self._index.execute(
                "SELECT key, value, coalesce(phase, status, iif(failures.run_id IS NULL, NULL, 'failed')), "
                "       train_accuracy, test_accuracy "
                "FROM json_each(?) LEFT JOIN runs INDEXED BY runs_by_outcome ON runs.run_id = value "
                "LEFT JOIN failures ON failures.run_id = value ORDER BY key",
                (json.dumps(list(run_ids)),),
            ).fetchall()
        return [CellOutcome._make(row) for row in rows]

    def without_weights(self, run_ids: Iterable[str]) -> list[str]:
        """Which of these runs are missing, or finished but stored without weights, in the same order."""
        with self._reading():
            rows = self._index.execute(
                "SELECT value FROM json_each(?) LEFT JOIN runs ON runs.run_id = value "
                "WHERE runs.run_id IS NULL OR NOT (has_weights OR status = 'diverged') ORDER BY key",
                (json.dumps(list(run_ids)),),
            ).fetchall()
        return [run_id for (run_id,) in rows]

    def cells(self, sweep: str) -> list[CellOutcome]:
        """The outcome of every run of a sweep, in the order of the places."""
        with self._reading():
            rows = self._index.execute(
                "SELECT place, cells.run_id, coalesce(phase, status, iif(failures.run_id IS NULL, NULL, 'failed')), "
                "       train_accuracy, test_accuracy "
                "FROM cells LEFT JOIN runs INDEXED BY runs_by_outcome USING (run_id) "
                "LEFT JOIN failures ON failures.run_id = cells.run_id WHERE sweep = ? ORDER BY place",
                (sweep,),
            ).fetchall()
        return [CellOutcome._make(row) for row in rows]

    def counts(self, sweep: str) -> dict[str, int]:
        """How many runs of a sweep ended in each phase, diverged, failed, or are not done yet ("missing")."""
        with self._reading():
            rows = self._index.execute(
                "SELECT coalesce(phase, status, iif(failures.run_id IS NULL, 'missing', 'failed')) AS outcome, "
                "       count(*) "
                "FROM (SELECT DISTINCT run_id FROM cells WHERE sweep = ?) AS wanted "
                "LEFT JOIN runs INDEXED BY runs_by_outcome USING (run_id) "
                "LEFT JOIN failures ON failures.run_id = wanted.run_id GROUP BY outcome",
                (sweep,),
            ).fetchall()
        return dict(rows)

    def count_members(self, sweep: str, run_ids: Iterable[str]) -> int:
        """How many of these runs belong to a sweep."""
        with self._reading():
            members = self._index.execute(
                "SELECT count(DISTINCT run_id) FROM cells, json_each(?) WHERE sweep = ? AND run_id = json_each.value",
                (json.dumps(sorted(run_ids)), sweep),
            )
            (count,) = members.fetchone()
            return int(count)

    # ---- inside -------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[None]:
        """All or nothing. A durable transaction survives a power cut once it has returned; a lease need not."""
        self._index.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._index.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._index.execute("COMMIT")
        except BaseException:
            if self._index.in_transaction:
                self._index.execute("ROLLBACK")
            raise

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with _as_store_error(f"cannot read the store {self.path}"):
            yield

    def _select(self, clause: str, *values: object) -> list[StoredRun]:
        with self._reading():
            rows = self._index.execute(f"SELECT {_COLUMNS} FROM runs {clause}", values).fetchall()
        return [_stored_run(row) for row in rows]

    def _ids_from(self, prefix: str) -> list[str]:
        # Ids are hexadecimal, so those that begin with the prefix lie before prefix + "g": a range of the primary key.
        with self._reading():
            rows = self._index.execute(
                "SELECT run_id FROM runs WHERE run_id >= ? AND run_id < ? ORDER BY run_id LIMIT 6",
                (prefix, prefix + "g"),
            )
            return [run_id for (run_id,) in rows]

    def _files_of(self, run_id: str) -> list[Path]:
        rows = self._index.execute("SELECT file FROM runs WHERE run_id = ?", (run_id,)).fetchall()
        return [self._path(file) for (file,) in rows] + self._checkpoint_file(run_id)

    def _checkpoint_file(self, run_id: str) -> list[Path]:
        rows = self._index.execute("SELECT file FROM checkpoints WHERE run_id = ?", (run_id,)).fetchall()
        return [self._checkpoint_path(file) for (file,) in rows]

    def _path(self, file: str) -> Path:
        return self.path / "runs" / file

    def _checkpoint_path(self, file: str) -> Path:
        return self.path / "checkpoints" / file


_COLUMNS = ", ".join(field.name for field in fields(StoredRun))


def _stored_run(row: tuple[Any, ...]) -> StoredRun:
    run_id, spec, status, phase, diverged_step, engine, seconds, has_weights, finished_at, final, file = row
    return StoredRun(
        run_id=run_id,
        spec=RunSpec.stored(json.loads(spec)),
        status=status,
        phase=Phase(phase) if phase else None,
        diverged_step=int(diverged_step) if diverged_step is not None else None,
        engine=engine,
        seconds=float(seconds),
        has_weights=bool(has_weights),
        finished_at=finished_at,
        final=json.loads(final) if final else None,
        file=file,
    )


def store_flag(path: Path) -> str:
    """What a suggested command needs to find the same store.

    >>> store_flag(Path("grokscope-runs")), store_flag(Path("other"))
    ('', ' --store other')
    """
    return "" if path == DEFAULT_STORE else f" --store {path}"


def _lease() -> tuple[str, float]:
    return owner_name(), time.time() + LEASE_SECONDS


def _write_ahead(index: sqlite3.Connection) -> None:
    """Switch a new index to a write-ahead log, so that readers and a writer do not wait for each other.

    SQLite waits for other processes everywhere but here: of two that switch at the same moment one fails at once.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            index.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _remove(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


@contextmanager
def _as_store_error(message: str) -> Iterator[None]:
    """Turn errors of the file system and of SQLite into a one-line StoreError."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{message}: {getattr(error, 'strerror', None) or error}") from error

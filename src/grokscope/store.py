"""Runs on disk: an SQLite index and one safetensors file per run.

    store = Store(Path("grokscope-runs"))
    store.save(result)
    store.load(result.run_id)

The index answers which runs there are and how they ended; a run's file holds its curve, its neurons' spectra and, if
they were kept, its weights. A file is complete before the index names it, is never changed, and is removed only after
the index has let go of it: a crash at any moment leaves the store as it was before a save or as it is after.

    grokscope-runs/
      index.sqlite
      runs/3f/3f0c…-7d1e….safetensors
"""

import json
import os
import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from grokscope.errors import StoreError
from grokscope.measure import Measurement, NeuronSpectra
from grokscope.phases import Phase
from grokscope.result import RunResult, row_to_dict
from grokscope.spec import RunSpec

DEFAULT_STORE = Path("grokscope-runs")
SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE runs (
  run_id        TEXT PRIMARY KEY,
  spec          TEXT NOT NULL,     -- every field, as JSON
  status        TEXT NOT NULL,     -- finished or diverged
  phase         TEXT,              -- null if diverged
  diverged_step INTEGER,
  engine        TEXT NOT NULL,
  seconds       REAL NOT NULL,
  has_weights   INTEGER NOT NULL,
  finished_at   TEXT NOT NULL,     -- UTC
  final         TEXT,              -- the last row of the curve, as JSON
  file          TEXT NOT NULL      -- the arrays, below runs/
) STRICT
"""


@dataclass(frozen=True)
class StoredRun:
    """What the index knows of a run."""

    run_id: str
    spec: RunSpec
    status: str
    phase: Phase | None
    diverged_step: int | None
    engine: str
    seconds: float
    has_weights: bool
    finished_at: str
    final: dict[str, float | None] | None  # None if it diverged before the first measurement
    file: str


class Store:
    """A directory of runs. Any number of processes may have it open."""

    def __init__(self, path: str | Path = DEFAULT_STORE, *, create: bool = True) -> None:
        """Open a store, or with `create` make one and see that it can be written before any work is done for it."""
        self.path = Path(path)
        index = self.path / "index.sqlite"
        if not create and not index.exists():
            raise StoreError(f"there is no store at {path}; name one with --store, or train a run first")
        with _as_store_error(f"cannot open the store {path}"):
            if create:
                (self.path / "runs").mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=self.path / "runs").close()
            # In a directory that cannot be written SQLite cannot share an index with writers, but there are none.
            readable = "" if os.access(self.path, os.W_OK) else "?immutable=1"
            self._index = sqlite3.connect(
                f"{index.absolute().as_uri()}{readable}", timeout=30, isolation_level=None, uri=True
            )
            if create:
                self._create_schema()
            (version,) = self._index.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"the store {path} was written by a newer grokscope (format {version}, this one reads "
                f"{SCHEMA_VERSION}); upgrade grokscope, or use another --store"
            )

    def close(self) -> None:
        """Close the index. Runs already saved are safe without it."""
        self._index.close()

    def save(self, result: RunResult, *, weights: bool = False) -> None:
        """Write a run, replacing an earlier one with the same spec."""
        keep_weights = weights and result.weights is not None
        before = self.find(result.run_id)
        file = f"{result.run_id[:2]}/{result.run_id}-{secrets.token_hex(4)}.safetensors"
        with _as_store_error(f"cannot write run {result.run_id} to the store {self.path}"):
            _write_atomically(self._path(file), array_bytes(result, weights=keep_weights))
            self._index.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    result.run_id,
                    json.dumps(result.spec.model_dump(mode="json")),
                    result.status,
                    result.phase.value if result.phase else None,
                    result.diverged_step,
                    result.engine,
                    result.seconds,
                    int(keep_weights),
                    datetime.now(UTC).isoformat(timespec="seconds"),
                    json.dumps(row_to_dict(result.final)) if result.curve else None,
                    file,
                ),
            )
            if before is not None:
                self._path(before.file).unlink(missing_ok=True)

    def find(self, run_id: str) -> StoredRun | None:
        """The run with exactly this id, if it is here."""
        rows = self._select("WHERE run_id = ?", run_id)
        return rows[0] if rows else None

    def resolve(self, prefix: str) -> StoredRun:
        """The one run whose id begins with `prefix`; an error that lists the nearest if there is not one."""
        if not prefix:
            raise StoreError("name a run by its id or the beginning of it; `grokscope runs list` shows them")
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

    def load(self, run_id: str) -> RunResult:
        """The whole run."""
        run = self.resolve(run_id)
        file = self._path(run.file)
        try:
            arrays = safetensors.numpy.load_file(file)
        except (OSError, SafetensorError) as error:
            raise StoreError(f"cannot read {file}: {error}; delete the run and train it again") from None
        return _from_arrays(run, arrays)

    def delete(self, run_id: str) -> None:
        """Remove a run. The index goes first, so that it never names a file that is not there."""
        run = self.resolve(run_id)
        with _as_store_error(f"cannot delete run {run.run_id}"):
            self._index.execute("DELETE FROM runs WHERE run_id = ?", (run.run_id,))
            self._path(run.file).unlink(missing_ok=True)

    def _create_schema(self) -> None:
        self._index.execute("PRAGMA journal_mode = WAL")
        self._index.execute("PRAGMA synchronous = FULL")
        self._index.execute("BEGIN IMMEDIATE")
        (version,) = self._index.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._index.execute(_SCHEMA)
        if version <= SCHEMA_VERSION:  # writes even if nothing is new: an index that cannot be written fails here
            self._index.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._index.execute("COMMIT")

    def _select(self, clause: str, *values: str) -> list[StoredRun]:
        with _as_store_error(f"cannot read the store {self.path}"):
            rows = self._index.execute(f"SELECT * FROM runs {clause}", values).fetchall()
        return [_stored_run(row) for row in rows]

    def _ids_from(self, prefix: str) -> list[str]:
        # Ids are hexadecimal, so all that begin with the prefix lie before prefix + "g": a range of the primary key.
        with _as_store_error(f"cannot read the store {self.path}"):
            rows = self._index.execute(
                "SELECT run_id FROM runs WHERE run_id >= ? AND run_id < ? ORDER BY run_id LIMIT 6",
                (prefix, prefix + "g"),
            )
            return [run_id for (run_id,) in rows]

    def _path(self, file: str) -> Path:
        return self.path / "runs" / file


def _stored_run(row: tuple[str, ...]) -> StoredRun:
    run_id, spec, status, phase, diverged_step, engine, seconds, has_weights, finished_at, final, file = row
    return StoredRun(
        run_id=run_id,
        spec=RunSpec.from_json(spec),
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


def array_bytes(result: RunResult, *, weights: bool) -> bytes:
    """The arrays of a run as the content of a safetensors file: curve.*, neurons.* and weights.*"""
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    columns = zip(*(astuple(row) for row in result.curve), strict=True)
    for field, column in zip(fields(Measurement), columns, strict=False):
        arrays[f"curve.{field.name}"] = np.array(column, np.int64 if field.type is int else np.float64)
    if result.neurons is not None:
        arrays |= {f"neurons.{name}": array for name, array in vars(result.neurons).items()}
    if weights and result.weights is not None:
        arrays |= {f"weights.{name}": array for name, array in result.weights.items()}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return safetensors.numpy.save(contiguous, metadata={"run_id": result.run_id})


def _from_arrays(run: StoredRun, arrays: dict[str, npt.NDArray[np.generic]]) -> RunResult:
    def group(prefix: str) -> dict[str, npt.NDArray[np.generic]]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    columns = group("curve.")
    rows = zip(*(columns[field.name].tolist() for field in fields(Measurement) if columns), strict=True)
    neurons = group("neurons.")
    weights = group("weights.")
    return RunResult(
        spec=run.spec,
        engine=run.engine,
        seconds=run.seconds,
        status="finished" if run.status == "finished" else "diverged",
        diverged_step=run.diverged_step,
        weights={name: array.astype(np.float32, copy=False) for name, array in weights.items()} or None,
        curve=tuple(Measurement(*row) for row in rows),
        neurons=NeuronSpectra(**neurons) if neurons else None,  # type: ignore[arg-type]
        phase=run.phase,
    )


def _write_atomically(path: Path, content: bytes) -> None:
    """Under another name first: a crash leaves `path` whole or absent, and a stray file that harms nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _as_store_error(message: str) -> Iterator[None]:
    """What the file system and SQLite complain about, as one line."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{message}: {getattr(error, 'strerror', None) or error}") from error

"""Runs on disk: an SQLite index and one safetensors file per run.

    store = Store(Path("grokscope-runs"))
    store.save(result)
    store.load(result.run_id)

The index answers which runs there are and how they ended; a run's file holds its curve, its neurons' spectra and, if
they were kept, its weights. A run's file is complete before the index names it, and both are written
atomically, so that a crash at any moment leaves the store as it was or with one more run.

    grokscope-runs/
      index.sqlite
      runs/3f/3f0c….safetensors
"""

import json
import os
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
  final         TEXT               -- the last row of the curve, as JSON
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


class Store:
    """A directory of runs. Any number of processes may have it open."""

    def __init__(self, path: Path = DEFAULT_STORE, *, create: bool = True) -> None:
        self.path = path
        index = path / "index.sqlite"
        if not create and not index.exists():
            raise StoreError(f"there is no store at {path}; name one with --store, or train a run first")
        with _as_store_error(f"cannot open the store {path}"):
            path.mkdir(parents=True, exist_ok=True)
            if create and not os.access(path, os.W_OK):
                raise PermissionError("the directory is not writable")
            self._index = sqlite3.connect(index, timeout=30, isolation_level=None)
            self._index.execute("PRAGMA journal_mode = WAL")
            self._index.execute("PRAGMA synchronous = FULL")
            self._create_or_check_schema()

    def close(self) -> None:
        """Close the index. Runs already saved are safe without it."""
        self._index.close()

    def save(self, result: RunResult, *, weights: bool = False) -> None:
        """Write a run, replacing an earlier one with the same spec."""
        keep_weights = weights and result.weights is not None
        with _as_store_error(f"cannot write run {result.run_id} to the store {self.path}"):
            _write_atomically(self._file(result.run_id), array_bytes(result, weights=keep_weights))
            self._index.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
                ),
            )

    def find(self, run_id: str) -> StoredRun | None:
        """The run with exactly this id, if it is here."""
        rows = self._select("WHERE run_id = ?", run_id)
        return rows[0] if rows else None

    def resolve(self, prefix: str) -> StoredRun:
        """The one run whose id begins with `prefix`; an error that lists the nearest if there is not one."""
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
        file = self._file(run.run_id)
        try:
            arrays = safetensors.numpy.load_file(file)
        except (OSError, SafetensorError) as error:
            raise StoreError(f"cannot read {file}: {error}; delete the run and train it again") from None
        return _from_arrays(run, arrays)

    def delete(self, run_id: str) -> None:
        """Remove a run. The index goes first, so that it never names a file that is not there."""
        with _as_store_error(f"cannot delete run {run_id}"):
            self._index.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
            self._file(run_id).unlink(missing_ok=True)

    def _create_or_check_schema(self) -> None:
        self._index.execute("BEGIN IMMEDIATE")
        (version,) = self._index.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._index.execute(_SCHEMA)
            self._index.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._index.execute("COMMIT")
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"the store {self.path} was written by a newer grokscope (format {version}, this one reads "
                f"{SCHEMA_VERSION}); upgrade grokscope, or use another --store"
            )

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

    def _file(self, run_id: str) -> Path:
        return self.path / "runs" / run_id[:2] / f"{run_id}.safetensors"


def _stored_run(row: tuple[str, ...]) -> StoredRun:
    run_id, spec, status, phase, diverged_step, engine, seconds, has_weights, finished_at, final = row
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
    """To a file of its own name first; a crash leaves `path` whole or absent, and a stray file that harms nothing."""
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

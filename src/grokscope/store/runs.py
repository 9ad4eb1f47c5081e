"""The runs of a store: saving, finding, loading and deleting them."""

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from string import hexdigits
from typing import Any, NamedTuple

from grokscope.errors import DamagedError, SpecError, StoreError, did_you_mean, quoted
from grokscope.result import RunResult
from grokscope.store.contents import Content, Damaged, Packed, pack_run, run_from, snapshots_in, unpack
from grokscope.store.files import read_head_inside, read_inside, write_atomically
from grokscope.store.opened import OpenStore, as_store_error, now, store_flag
from grokscope.store.records import DAMAGED_REMARKS, RECORD, StoredRun, record_of, result_of, run_of_row
from grokscope.store.schema import OUTCOME_SEAL, ROW_SEAL, SOUND_REMARKS
from grokscope.store.where import (
    SOUND_SPEC,
    SPEC,
    Condition,
    column_of,
    fields_of_users_own,
    known_somewhere,
    unknown_field,
    where_clause,
)

SOUND = f"(outcome_seal IS {OUTCOME_SEAL} AND row_seal IS {ROW_SEAL})"
_REMARKS = (
    f"(SELECT iif({SOUND_REMARKS}, json_array(remarks.name, json(remarks.tags), remarks.note), "
    f"'{DAMAGED_REMARKS}') FROM remarks WHERE remarks.run_id = runs.run_id)"
)
_SAID = (
    "(SELECT coalesce(remarks.name, '') || ' ' || remarks.note || ' ' || "
    "coalesce((SELECT group_concat('#' || value, ' ') "
    "FROM json_each(iif(json_valid(remarks.tags), remarks.tags, '[]'))), '') "
    "FROM remarks WHERE remarks.run_id = runs.run_id)"
)
_COLUMNS = f"{', '.join(RECORD)}, file, checksum, {_REMARKS}, {SOUND}"


class Page(NamedTuple):
    """Some of many runs."""

    total: int  # of all that were asked for, damaged ones included
    runs: list[StoredRun]
    damaged: list[str]  # ids of runs that belong here and whose entry was changed


class Runs(OpenStore):
    """The finished runs."""

    def save(self, result: RunResult, *, weights: bool = False) -> None:
        """Write a run, in place of an earlier one with the same spec. Removes its lease, checkpoint and failure.

        Snapshots are written if the result has them.
        """
        record = record_of(result, now(), weights=weights and result.weights is not None)
        self.put(record, pack_run(result, record, weights=weights))

    def put(self, record: dict[str, Any], packed: Packed) -> None:
        """Write the file of a run, and enter what is known about it into the index."""
        run_id = record["run_id"]
        with as_store_error(f"cannot write run {run_id} to the store {self.path}"):
            self._make_if_new()
            self._check_unmoved()
            file = f"{run_id[:2]}/{run_id}-{secrets.token_hex(4)}.safetensors"
            (self._root / "runs" / run_id[:2]).mkdir(exist_ok=True)
            write_atomically(self._root / "runs" / file, packed.content)
            self.enter(record, file, packed.checksum)

    def enter(self, record: dict[str, Any], file: str, checksum: str | None) -> None:
        """Let the index name a file that is there. An earlier file of the run is removed."""
        run_id, final = record["run_id"], record["final"]
        columns = record | {
            "spec": json.dumps(record["spec"]),
            "final": json.dumps(final) if final else None,
            "file": file,
            "checksum": checksum,
            "train_accuracy": final and final["train_accuracy"],
            "test_accuracy": final and final["test_accuracy"],
        }
        places = ", ".join("?" * len(columns))
        with self._transaction():
            outdated = [path for path in self._files_of(run_id) if path != self._root / "runs" / file]
            self._index.execute(
                f"INSERT OR REPLACE INTO runs ({', '.join(columns)}) VALUES ({places})", list(columns.values())
            )
            self._index.execute(f"UPDATE runs SET outcome_seal = {OUTCOME_SEAL} WHERE run_id = ?", (run_id,))
            self._index.execute(f"UPDATE runs SET row_seal = {ROW_SEAL} WHERE run_id = ?", (run_id,))
            for table in ("leases", "checkpoints", "failures"):
                self._index.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
        self._remove(outdated)

    def find(self, run_id: str) -> StoredRun | None:
        """The run with exactly this id, or None. A damaged one is as none, with a warning."""
        rows = self._select("WHERE run_id = ?", run_id)
        return rows[0] if rows else None

    def resolve(self, prefix: str) -> StoredRun:
        """The run whose id begins with `prefix`, or that has this name; an error lists the nearest if there is none."""
        run_id = self.resolve_id(prefix)
        try:
            return self.entry(run_id)
        except Damaged as reason:
            raise self._damaged(run_id, reason) from None

    def entry(self, run_id: str) -> StoredRun:
        """What the index says about a run that it has; raises Damaged if it cannot be believed."""
        with self._reading():
            row = self._index.execute(f"SELECT {_COLUMNS} FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        if row is None:
            raise StoreError(f"run {run_id} was deleted just now")
        return run_of_row(row)

    def without_weights(self, run_ids: Iterable[str]) -> list[str]:
        """Which of these runs are missing, or finished but stored without weights, in the same order."""
        return self.lacking(dict.fromkeys(run_ids, ()), weights=True)

    def lacking(self, snapshots: Mapping[str, Sequence[int]], *, weights: bool) -> list[str]:
        """Which of these runs are missing, or stored without the weights, or with fewer snapshots than these steps.

        Of a run that diverged nobody wants the last weights, nor snapshots of steps that it did not come to.
        """
        with self._reading():
            return self._lacking(snapshots, weights=weights)

    def _lacking(self, snapshots: Mapping[str, Sequence[int]], *, weights: bool) -> list[str]:
        rows = self._index.execute(
            "SELECT value, runs.run_id IS NULL OR NOT (has_weights OR NOT ? OR status = 'diverged'), diverged_step, "
            f"file FROM json_each(?) LEFT JOIN runs ON runs.run_id = value AND {SOUND} ORDER BY key",
            (weights, json.dumps(list(snapshots))),
        ).fetchall()
        lacking = []
        for run_id, bare, diverged_step, file in rows:
            wanted = [step for step in snapshots[run_id] if diverged_step is None or step < diverged_step]
            if bare or (wanted and self._snapshots_in(file, run_id) < len(wanted)):
                lacking.append(run_id)
        return lacking

    def snapshot_count(self, run: StoredRun) -> int:
        """How many snapshots a run was stored with. The index does not say; the head of its file does."""
        return self._snapshots_in(run.file, run.run_id)

    def _snapshots_in(self, file: object, run_id: str) -> int:
        if not _is_run_file(file, run_id):
            return 0
        try:
            return snapshots_in(read_head_inside(self._root, self._root / "runs" / str(file)))
        except OSError:
            return 0

    def files(self) -> dict[str, str]:
        """The file of every run, as the index has it."""
        with self._reading():
            return dict(self._index.execute("SELECT run_id, file FROM runs ORDER BY run_id").fetchall())

    def resolve_id(self, prefix: str) -> str:
        """The id that begins with `prefix`, also of a run that is damaged; or the run that has this name."""
        if not prefix:
            raise StoreError("name a run by its id or the first digits of it; `grokscope runs list` shows them")
        matches = self._ids_from(prefix) if re.fullmatch("[0-9a-f]{1,16}", prefix) else []  # ids have no other digits
        if len(matches) == 1:
            return matches[0]
        if matches:
            some = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
            raise StoreError(f"run {prefix!r} is ambiguous: {some}; type more of the id")
        if called := self._ids_called(prefix):
            return called[0]
        shorter = "".join(takewhile(hexdigits.__contains__, prefix))[:16]
        while shorter and not matches:
            shorter = shorter[:-1]
            matches = self._ids_from(shorter)
        if meant := did_you_mean(prefix, self._names()):
            nearest = meant
        elif matches := matches or self._ids_from(""):
            nearest = f"; nearest: {', '.join(matches[:5])}" if shorter else "; `grokscope runs list` shows them"
        else:
            nearest = "; the store is empty"
        raise StoreError(f"there is no run {quoted(prefix)} in the store {self.path}{nearest}")

    def all(self) -> list[StoredRun]:
        """All runs, oldest first."""
        return self._select("ORDER BY finished_at, run_id")

    def runs(
        self,
        where: Sequence[str | Condition] = (),
        limit: int | None = None,
        *,
        sweep: str | None = None,
        sort: str | None = None,
    ) -> list[StoredRun]:
        """The runs that meet all conditions, oldest first, or sorted by a field; with `limit` only the last of them.

        `sort="-test_accuracy"` has the largest first, and `limit` then keeps the first.

        store.runs(where=["optimizer.weight_decay>=5", "phase=coexistence"], sweep="fig3a", sort="test_accuracy")
        """
        return self.search(where, limit, sweep=sweep, sort=sort)[1]

    def search(
        self,
        where: Sequence[str | Condition] = (),
        limit: int | None = None,
        *,
        sweep: str | None = None,
        sort: str | None = None,
    ) -> tuple[int, list[StoredRun]]:
        """How many runs meet all conditions, and some of them as `runs` says."""
        run_ids = self.ids(where, sweep=sweep, sort=sort)
        falling = sort is not None and sort.startswith("-")
        chosen = run_ids if limit is None else run_ids[:limit] if falling else run_ids[-limit:]
        runs = self.entries(chosen)
        return len(run_ids) - len(chosen) + len(runs), runs

    def ids(
        self, where: Sequence[str | Condition] = (), *, sweep: str | None = None, sort: str | None = None
    ) -> list[str]:
        """The ids of the runs that meet all conditions, damaged ones included, in the order of `runs`."""
        sorted_by = [Condition(sort.removeprefix("-"), "=", 0)] if sort else []
        self._check_known([*([where] if isinstance(where, str) else where), *sorted_by])
        try:
            return self._ids_where(where, sweep, sort, SPEC)
        except StoreError:
            return self._ids_where(where, sweep, sort, SOUND_SPEC)

    def entries(self, run_ids: Sequence[str]) -> list[StoredRun]:
        """What the index says about these runs, in their order; those that are damaged or not there are left out."""
        places = {run_id: place for place, run_id in enumerate(run_ids)}
        runs = self._select("WHERE run_id IN (SELECT value FROM json_each(?))", json.dumps(list(places)))
        return sorted(runs, key=lambda run: places[run.run_id])

    def load_all(self, run_ids: Iterable[str]) -> Iterator[RunResult]:
        """Load runs one after the other. Damaged ones are left out, and named in a warning at the end."""
        damaged = []
        for run_id in run_ids:
            try:
                yield self.load(run_id)
            except DamagedError:
                damaged.append(run_id)
        self._warn("run", damaged)

    def _ids_where(self, where: Sequence[str | Condition], sweep: str | None, sort: str | None, spec: str) -> list[str]:
        clause, values = where_clause(where, spec)
        if sweep is not None:
            clause += f" {'AND' if clause else 'WHERE'} run_id IN (SELECT run_id FROM cells WHERE sweep = ?)"
            values.append(sweep)
        column, defaults = column_of(sort.removeprefix("-"), spec) if sort else ("finished_at", [])
        falling = " DESC" if sort and sort.startswith("-") else ""
        order = f"ORDER BY {column}{falling}, finished_at, run_id"
        with self._reading():
            found = self._index.execute(f"SELECT run_id FROM runs {clause} {order}", [*values, *defaults])
            return [run_id for (run_id,) in found]

    def page(
        self, where: Sequence[str | Condition] = (), text: Sequence[str] = (), *, limit: int, offset: int = 0
    ) -> Page:
        """Some of the runs that meet all conditions and have all these words somewhere, newest first.

        A word is looked for in the id, the phase, the spec, the name, the tags and the note.

        store.page(["task.corruption>=0.3"], ["transformer"], limit=50)
        """
        clause, values = where_clause(where, SOUND_SPEC)
        self._check_known(where)
        for word in text:
            pattern = "%" + re.sub("([%_!])", r"!\1", word) + "%"
            clause += f" {'AND' if clause else 'WHERE'} (run_id LIKE ? ESCAPE '!' OR phase LIKE ? ESCAPE '!'"
            clause += f" OR spec LIKE ? ESCAPE '!' OR {_SAID} LIKE ? ESCAPE '!')"
            values += [pattern[1:], pattern, pattern, pattern]
        with self._reading():
            (total,) = self._index.execute(f"SELECT count(*) FROM runs {clause}", values).fetchone()
            # The ids first: sorting all rows with all columns would check the seal of every run.
            order = "ORDER BY finished_at DESC, run_id"
            chosen = f"SELECT run_id FROM runs {clause} {order} LIMIT ? OFFSET ?"
            rows = self._index.execute(
                f"SELECT {_COLUMNS} FROM runs WHERE run_id IN ({chosen}) {order}", (*values, limit, offset)
            ).fetchall()
        return Page(int(total), *_sound_and_damaged(rows))

    def _check_known(self, where: Sequence[str | Condition]) -> None:
        """Refuse a condition on a field of a user's own that no run here has: it is misspelt."""
        for field in fields_of_users_own(where):
            with self._reading():
                query = f"SELECT 1 FROM runs WHERE {known_somewhere(field)} IS NOT NULL LIMIT 1"
                known = self._index.execute(query).fetchone()
            if not known:
                raise SpecError(f"no run in the store {self.path} has {field}: {unknown_field(field)}")

    def load(self, run_id: str) -> RunResult:
        """Load a run with its curve, its spectra and, if they were kept, its weights."""
        run = self.resolve(run_id)
        try:
            arrays = run_from(self.content(run), run.spec)
        except Damaged as reason:
            raise self._damaged(run.run_id, reason) from None
        return result_of(run, arrays)

    def damage(self, run_id: str) -> str | None:
        """What is the matter with a run that the index has; None if it can be loaded. Reads its whole file."""
        try:
            run = self.entry(run_id)
            run_from(self.content(run), run.spec)
        except Damaged as reason:
            return str(reason)
        return None

    def content(self, run: StoredRun) -> Content:
        """The file of a run: its own, with the content that was written."""
        if not _is_run_file(run.file, run.run_id):
            raise Damaged("its entry in the index names a file that cannot be its own")
        file = self._root / "runs" / run.file
        try:
            content = unpack(read_inside(self._root, file))
        except FileNotFoundError:
            raise Damaged(f"its file {file} is missing") from None
        except PermissionError:
            raise StoreError(f"cannot read {file}: this user may not read it") from None
        except OSError as error:
            raise Damaged(f"its file cannot be read: {error.strerror or error}") from None
        if content.run_id != run.run_id:
            raise Damaged(f"its file is that of run {str(content.run_id)[:16]}")
        if run.checksum is not None and content.checksum != run.checksum:
            raise Damaged("its file is not the one that was written")
        return content

    def delete(self, run_id: str) -> None:
        """Remove a run, first from the index, so that the index never names a missing file."""
        run_id = self.resolve_id(run_id)
        with as_store_error(f"cannot delete run {run_id}"):
            with self._transaction():
                outdated = self._files_of(run_id)
                sound = self._index.execute(f"SELECT {SOUND} FROM runs WHERE run_id = ?", (run_id,)).fetchone()
                if sound and not sound[0]:  # its entry may name another file than its own
                    outdated += (self._root / "runs" / run_id[:2]).glob(f"{run_id}-*.safetensors")
                for table in ("runs", "checkpoints", "remarks"):
                    self._index.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
            self._remove([*outdated, self._remarks_file(run_id)])

    def _select(self, clause: str, *values: object) -> list[StoredRun]:
        with self._reading():
            rows = self._index.execute(f"SELECT {_COLUMNS} FROM runs {clause}", values).fetchall()
        found, damaged = _sound_and_damaged(rows)
        self._warn("run", damaged)
        self._warn("tags, name or note of run", [str(row[0]) for row in rows if row[-2] == DAMAGED_REMARKS])
        return found

    def _damaged(self, run_id: str, reason: Damaged) -> DamagedError:
        return DamagedError(
            f"run {run_id} in the store {self.path} is damaged: {reason}; delete it with `grokscope runs delete "
            f"{run_id}{store_flag(self.path)}`, and train it again"
        )

    def _ids_from(self, prefix: str) -> list[str]:
        # Ids are hexadecimal, so those that begin with the prefix lie before prefix + "g": a range of the primary key.
        with self._reading():
            rows = self._index.execute(
                "SELECT run_id FROM runs WHERE run_id >= ? AND run_id < ? ORDER BY run_id LIMIT 6",
                (prefix, prefix + "g"),
            )
            return [run_id for (run_id,) in rows]

    def _ids_called(self, name: str) -> list[str]:
        with self._reading():
            rows = self._index.execute(
                f"SELECT run_id FROM remarks JOIN runs USING (run_id) WHERE name = ? AND {SOUND_REMARKS}",
                (name,),
            )
            return [run_id for (run_id,) in rows]

    def _names(self) -> list[str]:
        with self._reading():
            return [name for (name,) in self._index.execute("SELECT name FROM remarks WHERE name IS NOT NULL")]

    def _files_of(self, run_id: str) -> list[Path]:
        """The files of a run, without names that cannot be those of its files: nothing else is ever removed."""
        rows = self._index.execute("SELECT file FROM runs WHERE run_id = ?", (run_id,)).fetchall()
        files = [self._root / "runs" / file for (file,) in rows if _is_run_file(file, run_id)]
        return files + self._checkpoint_file(run_id)

    def _remarks_file(self, run_id: str) -> Path:
        return self._root / "remarks" / f"{run_id}.json"

    def _checkpoint_file(self, run_id: str) -> list[Path]:
        rows = self._index.execute("SELECT file FROM checkpoints WHERE run_id = ?", (run_id,)).fetchall()
        return [self._root / "checkpoints" / file for (file,) in rows if is_file_of(file, run_id)]


def _sound_and_damaged(rows: Sequence[tuple[Any, ...]]) -> tuple[list[StoredRun], list[str]]:
    found, damaged = [], []
    for row in rows:
        try:
            found.append(run_of_row(row))
        except Damaged:
            damaged.append(str(row[0]))
    return found, damaged


_FILE_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}\.safetensors")


def _is_run_file(file: object, run_id: str) -> bool:
    return isinstance(file, str) and file[:3] == f"{run_id[:2]}/" and is_file_of(file[3:], run_id)


def is_file_of(name: object, run_id: str) -> bool:
    """Whether a name is one that a store gives to the files of a run.

    >>> is_file_of("3f0c9a5be1d27f48-0a1b2c3d.safetensors", "3f0c9a5be1d27f48")
    True
    """
    return isinstance(name, str) and name[:16] == run_id and bool(_FILE_NAME.fullmatch(name))

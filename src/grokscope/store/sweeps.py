"""The sweeps of a store, and what became of their cells."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from grokscope.store.contents import document_bytes, sweep_file_name
from grokscope.store.files import write_atomically
from grokscope.store.opened import OpenStore, as_store_error, now
from grokscope.store.records import CellOutcome, StoredSweep
from grokscope.store.runs import SOUND
from grokscope.store.schema import FAILURE_SEAL, OUTCOME_SEAL, SWEEP_SEAL

_OUTCOME = (
    "CASE WHEN runs.run_id IS NULL THEN iif(failures.run_id IS NULL, NULL, 'failed') "
    f"WHEN outcome_seal IS {OUTCOME_SEAL} THEN coalesce(phase, status) ELSE 'damaged' END"
)


class Sweeps(OpenStore):
    """Sweeps, by their names, and cells, by the ids of their runs."""

    def record_sweep(self, name: str, definition: dict[str, Any], run_ids: Iterable[str], *, refined: bool) -> None:
        """Record the runs of a sweep, in the order of its places. Replaces a sweep of the same name."""
        self.put_sweep(StoredSweep(name, definition, refined, now()), list(run_ids))

    def put_sweep(self, sweep: StoredSweep, run_ids: list[str]) -> None:
        """Write a sweep as a file, from which an index can be made again, and enter it into the index."""
        with as_store_error(f"cannot write the sweep {sweep.name} to the store {self.path}"):
            self._make_if_new()
            self._check_unmoved()
            (self._root / "sweeps").mkdir(exist_ok=True)
            content = document_bytes("sweep", vars(sweep) | {"run_ids": run_ids})
            write_atomically(self._root / "sweeps" / sweep_file_name(sweep.name), content)
            self.enter_sweep(sweep, run_ids)

    def enter_sweep(self, sweep: StoredSweep, run_ids: list[str]) -> None:
        """Enter a sweep into the index."""
        with self._transaction():
            self._index.execute("DELETE FROM cells WHERE sweep = ?", (sweep.name,))
            content = (sweep.name, json.dumps(sweep.definition), sweep.refined, sweep.started_at)
            self._index.execute("INSERT OR REPLACE INTO sweeps VALUES (?, ?, ?, ?, '')", content)
            self._index.executemany(
                "INSERT INTO cells VALUES (?, ?, ?)",
                ((sweep.name, place, run_id) for place, run_id in enumerate(run_ids)),
            )
            self._index.execute(f"UPDATE sweeps SET seal = {SWEEP_SEAL} WHERE name = ?", (sweep.name,))

    def sweeps(self) -> list[StoredSweep]:
        """All sweeps, in the order in which they were last started."""
        found, damaged = self.sound_and_damaged_sweeps()
        self._warn("sweep", damaged)
        return found

    def sound_and_damaged_sweeps(self) -> tuple[list[StoredSweep], list[str]]:
        """The sweeps, and the names of those whose entry in the index has been changed."""
        with self._reading():
            rows = self._index.execute(
                f"SELECT name, definition, refined, started_at, seal IS {SWEEP_SEAL} FROM sweeps "
                "ORDER BY started_at, name"
            ).fetchall()
        found, damaged = [], []
        for name, definition, refined, started_at, sound in rows:
            if sound:
                found.append(StoredSweep(name, json.loads(definition), bool(refined), started_at))
            else:
                damaged.append(str(name))
        return found, damaged

    def forget_sweep(self, name: str) -> None:
        """Remove a sweep from the index. Its runs stay."""
        with as_store_error(f"cannot write the store {self.path}"), self._transaction():
            self._index.execute("DELETE FROM cells WHERE sweep = ?", (name,))
            self._index.execute("DELETE FROM sweeps WHERE name = ?", (name,))

    def delete_sweep(self, name: str) -> None:
        """Remove a sweep, with its file. Its runs stay."""
        self.forget_sweep(name)
        self._remove([self._root / "sweeps" / sweep_file_name(name)])

    def rename_sweep(self, sweep: StoredSweep, name: str) -> None:
        """Call a sweep something else. After a crash it has at least one of the two names."""
        self.put_sweep(replace(sweep, name=name), [cell.run_id for cell in self.cells(sweep.name)])
        self.delete_sweep(sweep.name)

    def only_in(self, sweep: str) -> list[str]:
        """The finished runs that belong to this sweep and to no other."""
        with self._reading():
            rows = self._index.execute(
                "SELECT DISTINCT run_id FROM cells JOIN runs USING (run_id) WHERE sweep = ? "
                "AND run_id NOT IN (SELECT run_id FROM cells WHERE sweep != ?) ORDER BY place",
                (sweep, sweep),
            ).fetchall()
        return [run_id for (run_id,) in rows]

    def outcomes(self, run_ids: Iterable[str]) -> list[CellOutcome]:
        """The outcomes of these runs, of a sweep or not. The place of a run is its index among the ids."""
        with self._reading():
            rows = self._index.execute(
                f"SELECT key, value, {_OUTCOME}, train_accuracy, test_accuracy "
                "FROM json_each(?) LEFT JOIN runs INDEXED BY runs_by_outcome ON runs.run_id = value "
                f"LEFT JOIN failures ON failures.run_id = value AND failures.seal IS {FAILURE_SEAL} ORDER BY key",
                (json.dumps(list(run_ids)),),
            ).fetchall()
        found, damaged = _sound_outcomes(rows)
        self._warn("run", damaged)
        return found

    def cells(self, sweep: str) -> list[CellOutcome]:
        """The outcome of every run of a sweep, in the order of the places."""
        found, damaged = self.cells_and_damaged(sweep)
        self._warn("run", damaged)
        return found

    def cells_and_damaged(self, sweep: str) -> tuple[list[CellOutcome], list[str]]:
        """The cells of a sweep, and the ids of the damaged runs among them, which are as missing."""
        with self._reading():
            rows = self._index.execute(
                f"SELECT place, cells.run_id, {_OUTCOME}, train_accuracy, test_accuracy "
                "FROM cells LEFT JOIN runs INDEXED BY runs_by_outcome USING (run_id) "
                f"LEFT JOIN failures ON failures.run_id = cells.run_id AND failures.seal IS {FAILURE_SEAL} "
                "WHERE sweep = ? ORDER BY place",
                (sweep,),
            ).fetchall()
        return _sound_outcomes(rows)

    def final_columns(self, sweep: str, columns: Iterable[str]) -> dict[str, tuple[float | None, ...]]:
        """What some columns of the last measured row are in each sound run of a sweep, by the run's id."""
        paths = [f"$.{column}" for column in columns]
        chosen = ", ".join(["json_extract(final, ?)"] * len(paths))
        with self._reading():
            rows = self._index.execute(
                f"SELECT run_id, {chosen} FROM runs WHERE run_id IN (SELECT run_id FROM cells WHERE sweep = ?) "
                f"AND {SOUND} AND json_valid(final)",
                (*paths, sweep),
            ).fetchall()
        return {run_id: tuple(values) for run_id, *values in rows}

    def progress(self) -> dict[str, tuple[int, int]]:
        """How many cells each sweep has, and how many of them have a run. Does not look whether a run is damaged."""
        with self._reading():
            rows = self._index.execute(
                "SELECT sweep, count(*), count(runs.run_id) FROM cells "
                "LEFT JOIN runs INDEXED BY runs_by_outcome USING (run_id) GROUP BY sweep"
            ).fetchall()
        return {sweep: (cells, done) for sweep, cells, done in rows}

    def counts(self, sweep: str) -> dict[str, int]:
        """How many runs of a sweep ended in each phase, diverged, failed, or are not done yet ("missing")."""
        outcomes = {cell.run_id: cell.outcome or "missing" for cell in self.cells(sweep)}
        return dict(Counter(outcomes.values()))

    def count_members(self, sweep: str, run_ids: Iterable[str]) -> int:
        """How many of these runs belong to a sweep."""
        with self._reading():
            members = self._index.execute(
                "SELECT count(DISTINCT run_id) FROM cells, json_each(?) WHERE sweep = ? AND run_id = json_each.value",
                (json.dumps(sorted(run_ids)), sweep),
            )
            (count,) = members.fetchone()
            return int(count)


def _sound_outcomes(rows: list[tuple[Any, ...]]) -> tuple[list[CellOutcome], list[str]]:
    """The outcomes, a damaged run being as missing, and the ids of those."""
    damaged = list(dict.fromkeys(row[1] for row in rows if row[2] == "damaged"))
    return [
        CellOutcome._make(row if row[2] != "damaged" else (row[0], row[1], None, None, None)) for row in rows
    ], damaged

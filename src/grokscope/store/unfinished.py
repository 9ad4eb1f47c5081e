"""Runs that are not finished: who is working on them, where they stand, and how they failed."""

import json
import secrets
import time
from collections.abc import Sequence
from enum import Enum
from typing import Literal

from grokscope.errors import StoreError
from grokscope.result import Checkpoint, RunResult
from grokscope.spec import RunSpec
from grokscope.store.contents import Content, Damaged, Packed, checkpoint_from, pack_checkpoint, unpack
from grokscope.store.files import read_inside, write_atomically
from grokscope.store.opened import as_store_error, now
from grokscope.store.owners import describe_owner, is_alive, owner_name
from grokscope.store.records import Failure, failure_of_row
from grokscope.store.runs import Runs
from grokscope.store.schema import FAILURE_SEAL

LEASE_SECONDS = 120.0  # a process of another host loses its lease if it has not renewed it for this long


class LeaseAnswer(Enum):
    """What the store answers a process that asks for a lease on a run."""

    GRANTED = "granted"
    HELD = "held"  # somebody else is working on it
    DONE = "done"


class Unfinished(Runs):
    """Leases, checkpoints and failures."""

    def save(self, result: RunResult, *, weights: bool = False) -> None:
        """Write a run, in place of an earlier one with the same spec. Removes its lease, checkpoint and failure.

        Snapshots are written if the result has them. A run that was stopped is not yet the run that its id names: it is
        saved as a checkpoint, and `gs.train` or `grokscope train` goes on from there.
        """
        if result.status != "stopped":
            super().save(result, weights=weights)
            return
        if result.checkpoint is None:
            raise StoreError(
                f"run {result.run_id} was stopped and has no checkpoint, so there is nothing to go on from"
            )
        self._make_if_new()
        if self.find(result.run_id):
            raise StoreError(
                f"run {result.run_id} was stopped at step {result.final.step}, and the store {self.path} has it whole: "
                "nothing was saved"
            )
        self.save_checkpoint(result.run_id, result.checkpoint)

    def lease(
        self, run_id: str, *, weights: bool = False, snapshots: Sequence[int] = (), again: bool = False
    ) -> LeaseAnswer:
        """Ask for a run to work on. Of all processes that ask, one gets it, until it saves, releases or dies.

        With `weights`, a run that is stored without them is to be done again, and so is one with fewer snapshots than
        there are steps in `snapshots`; with `again`, any stored run is.
        """
        with as_store_error(f"cannot lease run {run_id} in the store {self.path}"), self._transaction(durable=False):
            if not again and not self._lacking({run_id: snapshots}, weights=weights):
                return LeaseAnswer.DONE
            lease = self._index.execute("SELECT owner, expires FROM leases WHERE run_id = ?", (run_id,)).fetchone()
            if lease and lease[0] != owner_name() and is_alive(*lease):
                return LeaseAnswer.HELD
            self._index.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (run_id, *_lease()))
            return LeaseAnswer.GRANTED

    def renew(self, *run_ids: str) -> None:
        """Renew the leases of runs: this process is still working on them."""
        leases = [(run_id, *_lease()) for run_id in run_ids]
        with as_store_error(f"cannot renew leases in the store {self.path}"), self._transaction(durable=False):
            self._index.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", leases)

    def release(self, run_id: str) -> None:
        """Give up the lease of a run."""
        with as_store_error(f"cannot release run {run_id}"), self._transaction(durable=False):
            self._index.execute("DELETE FROM leases WHERE run_id = ? AND owner = ?", (run_id, owner_name()))

    def holder(self, run_id: str) -> str | None:
        """Who is working on a run now, in words."""
        with self._reading():
            lease = self._index.execute("SELECT owner, expires FROM leases WHERE run_id = ?", (run_id,)).fetchone()
        return describe_owner(lease[0]) if lease and is_alive(*lease) else None

    def running(self) -> set[str]:
        """The runs that a process is working on now."""
        return {run_id for run_id, alive in self.leases().items() if alive}

    def leases(self) -> dict[str, bool]:
        """All runs that a process took, and whether it is still alive."""
        with self._reading():
            rows = self._index.execute("SELECT run_id, owner, expires FROM leases").fetchall()
        return {run_id: is_alive(owner, expires) for run_id, owner, expires in rows}

    def save_checkpoint(self, run_id: str, checkpoint: Checkpoint) -> None:
        """Save the state of an unfinished run, in place of its earlier checkpoint."""
        self.put_checkpoint(run_id, checkpoint.state.step, pack_checkpoint(run_id, checkpoint))

    def put_checkpoint(self, run_id: str, step: int, packed: Packed) -> None:
        """Write the file of a checkpoint, and let the index name it."""
        file = f"{run_id}-{secrets.token_hex(4)}.safetensors"
        with as_store_error(f"cannot write a checkpoint of run {run_id} to the store {self.path}"):
            self._make_if_new()
            self._check_unmoved()
            (self._root / "checkpoints").mkdir(exist_ok=True)
            write_atomically(self._root / "checkpoints" / file, packed.content)
            with self._transaction():
                before = self._checkpoint_file(run_id)
                self._index.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", (run_id, step, file))
            self._remove(before)

    def load_checkpoint(self, spec: RunSpec) -> Checkpoint | None:
        """The last saved state of an unfinished run; None if it must start from the beginning."""
        try:
            content = self.checkpoint_content(spec.run_id)
            return checkpoint_from(content, spec) if content else None
        except StoreError:
            raise
        except Exception:  # unusable, or a user's code fails, which it will do again in training, where it is noted
            return None

    def checkpoint_bytes(self, run_id: str) -> bytes | None:
        """The file of a checkpoint as it is, if there is one."""
        with self._reading():
            files = self._checkpoint_file(run_id)
        try:
            return read_inside(self._root, files[0]) if files else None
        except OSError as error:
            raise Damaged(f"its file cannot be read: {error.strerror or error}") from None

    def checkpoint_content(self, run_id: str) -> Content | None:
        """The file of a checkpoint, if there is one."""
        packed = self.checkpoint_bytes(run_id)
        if packed is None:
            return None
        content = unpack(packed)
        if content.run_id != run_id:
            raise Damaged(f"its file is that of run {str(content.run_id)[:16]}")
        return content

    def checkpoints(self) -> dict[str, str]:
        """The checkpoint file of every unfinished run that has one, as the index has it."""
        with self._reading():
            return dict(self._index.execute("SELECT run_id, file FROM checkpoints ORDER BY run_id").fetchall())

    def drop(self, table: Literal["runs", "leases", "checkpoints", "failures", "remarks"], run_id: str) -> None:
        """Remove what the index says about a run in one respect. Files stay."""
        with as_store_error(f"cannot write the store {self.path}"), self._transaction():
            self._index.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))

    # ---- failures -----------------------------------------------------------------------------------------------

    def save_failure(self, spec: RunSpec, error: str, traceback: str) -> None:
        """Record that a run failed, and how. Its checkpoint stays."""
        with as_store_error(f"cannot write the failure of run {spec.run_id} to the store"), self._transaction():
            content = (spec.run_id, json.dumps(spec.model_dump(mode="json")), error, traceback, now())
            self._index.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, '')", content)
            self._index.execute(f"UPDATE failures SET seal = {FAILURE_SEAL} WHERE run_id = ?", (spec.run_id,))
            self._index.execute("DELETE FROM leases WHERE run_id = ? AND owner = ?", (spec.run_id, owner_name()))

    def failures(self, sweep: str | None = None) -> list[Failure]:
        """Failed runs that have not been run again since, of one sweep or of all, oldest first."""
        found, damaged = self.sound_and_damaged_failures(sweep)
        self._warn("failure of run", damaged)
        return found

    def sound_and_damaged_failures(self, sweep: str | None = None) -> tuple[list[Failure], list[str]]:
        """The failures, and the runs whose failure has an entry in the index that has been changed."""
        clause = "" if sweep is None else "WHERE run_id IN (SELECT run_id FROM cells WHERE sweep = ?)"
        values = () if sweep is None else (sweep,)
        with self._reading():
            rows = self._index.execute(
                f"SELECT run_id, spec, error, traceback, failed_at, seal IS {FAILURE_SEAL} FROM failures {clause} "
                "ORDER BY failed_at, run_id",
                values,
            ).fetchall()
        found, damaged = [], []
        for row in rows:
            try:
                found.append(failure_of_row(row))
            except Damaged:
                damaged.append(str(row[0]))
        return found, damaged

    def forget_failures(self, sweep: str) -> int:
        """Remove the failures of a sweep, so that its failed runs are tried again. Returns how many there were."""
        with as_store_error(f"cannot write the store {self.path}"), self._transaction():
            return self._index.execute(
                "DELETE FROM failures WHERE run_id IN (SELECT run_id FROM cells WHERE sweep = ?)", (sweep,)
            ).rowcount


def _lease() -> tuple[str, float]:
    return owner_name(), time.time() + LEASE_SECONDS

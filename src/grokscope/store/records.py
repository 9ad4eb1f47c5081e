"""What the index of a store says about runs, sweeps and failures."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from grokscope.phases import Phase
from grokscope.result import RunResult, row_to_dict
from grokscope.spec import RunSpec
from grokscope.store.contents import Damaged, RunArrays


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
    checksum: str | None  # of the file; None if an older release wrote it
    # What people say about it: remarks.py
    name: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""

    def __repr__(self) -> str:
        called = f" {self.name}" if self.name else ""
        outcome = self.phase.label if self.phase else self.status
        return f"<StoredRun {self.run_id}{called}: {outcome}, {self.finished_at}>"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"spec": self.spec.model_dump(mode="json")}

    def record(self) -> dict[str, Any]:
        """What its file says about it beside the arrays."""
        return {name: value for name, value in self.to_dict().items() if name in RECORD}


DAMAGED_REMARKS = "damaged"

# What the file of a run repeats of the index, so that an index can be made again from files.
RECORD = (
    "run_id",
    "spec",
    "status",
    "phase",
    "diverged_step",
    "engine",
    "seconds",
    "has_weights",
    "finished_at",
    "final",
)


def record_of(result: RunResult, finished_at: str, *, weights: bool) -> dict[str, Any]:
    """What is written about a run, in its file and in the index."""
    return {
        "run_id": result.run_id,
        "spec": result.spec.model_dump(mode="json"),
        "status": result.status,
        "phase": result.phase.value if result.phase else None,
        "diverged_step": result.diverged_step,
        "engine": result.engine,
        "seconds": float(result.seconds),
        "has_weights": weights,
        "finished_at": finished_at,
        "final": row_to_dict(result.final) if result.curve else None,
    }


def run_of(record: Mapping[str, Any], file: str, checksum: str | None) -> StoredRun:
    """The run that a record describes; its spec must be the one that its id is the hash of."""
    try:
        spec = RunSpec.stored(record["spec"])
        run = StoredRun(
            run_id=record["run_id"],
            spec=spec,
            status=record["status"],
            phase=Phase(record["phase"]) if record["phase"] else None,
            diverged_step=int(record["diverged_step"]) if record["diverged_step"] is not None else None,
            engine=record["engine"],
            seconds=float(record["seconds"]),
            has_weights=bool(record["has_weights"]),
            finished_at=record["finished_at"],
            final=record["final"],
            file=file,
            checksum=checksum,
        )
    except Exception as error:  # of a damaged record anything may come
        raise Damaged(f"what is written about it cannot be read ({str(error)[:100]})") from None
    if spec.run_id != run.run_id:
        raise Damaged(f"its spec is that of run {spec.run_id}")
    return run


def result_of(run: StoredRun, arrays: RunArrays) -> RunResult:
    """A run as it was when it was saved, from what is written about it and from the arrays of its file."""
    return RunResult(
        spec=run.spec,
        engine=run.engine,
        seconds=run.seconds,
        status="finished" if run.status == "finished" else "diverged",
        diverged_step=run.diverged_step,
        weights=arrays.weights,
        curve=arrays.curve,
        neurons=arrays.neurons,
        outputs=arrays.outputs,
        phase=run.phase,
        ipr_history=arrays.ipr_history,
        weights_at=arrays.weights_at,
    )


def run_of_row(row: tuple[Any, ...]) -> StoredRun:
    """A run from its columns in the index: what is said about it, and last whether its seals fit."""
    *columns, file, checksum, remarks, sound = row
    if not sound:
        raise Damaged("its entry in the index has been changed")
    record = dict(zip(RECORD, columns, strict=True))
    try:
        record |= {"spec": json.loads(record["spec"]), "final": json.loads(record["final"] or "null")}
    except (TypeError, ValueError, RecursionError):
        raise Damaged("its entry in the index cannot be read") from None
    run = run_of(record, file, checksum)
    if not remarks or remarks == DAMAGED_REMARKS:
        return run
    name, tags, note = json.loads(remarks)
    return replace(run, name=name, tags=tuple(map(str, tags)), note=note)


@dataclass(frozen=True)
class StoredSweep:
    """A sweep that was started on this store."""

    name: str
    definition: dict[str, Any]
    refined: bool
    started_at: str

    def __repr__(self) -> str:
        return f"<StoredSweep {self.name}{', refined' if self.refined else ''}, {self.started_at}>"


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


def failure_of_row(row: tuple[Any, ...]) -> Failure:
    """A failure from its columns in the index, the last of which says whether its seal fits."""
    run_id, spec, error, traceback, failed_at, sound = row
    if not sound:
        raise Damaged("its entry in the index has been changed")
    try:
        failure = Failure(run_id, RunSpec.stored(json.loads(spec)), error, traceback, failed_at)
    except Exception as problem:  # of a damaged spec anything may come
        raise Damaged(f"its spec cannot be read ({str(problem)[:100]})") from None
    if failure.spec.run_id != run_id:
        raise Damaged(f"its spec is that of run {failure.spec.run_id}")
    return failure

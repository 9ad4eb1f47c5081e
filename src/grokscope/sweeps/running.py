"""How runs are executed. None of it changes what they compute."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from grokscope.engines import resolve_engine
from grokscope.errors import GrokscopeError, quoted
from grokscope.snapshots import Snapshots, snapshot_steps
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps.executor import Cluster

MOST_PER_CORE = 8  # processes; more of them only wait for each other, and for memory
MOST_STACKED = 256  # runs that a worker with the stacked engine is given together


@dataclass(frozen=True)
class Running:
    """With how many processes, which engine and device, and what is kept.

    >>> Running(device="cuda").engine_used, Running(device="cuda").processes
    ('stacked', 1)
    """

    workers: int | None = None  # processes; 0: no others, all in this one; None: one for each core, or one for a GPU
    engine: str = "auto"
    device: str = "cpu"
    weights: bool = False  # keep the networks; a run stored without its network is trained again
    snapshots: Snapshots = None  # and the networks on the way, likewise; who keeps them keeps the last one too
    cluster: Cluster | None = None  # where else to train; None: on this machine
    track: Path | None = None  # a directory for event files of TensorBoard
    again: bool = False  # train runs that are stored already; the stored one stays until the new one is saved

    def __post_init__(self) -> None:
        """Refuse a number of processes that is none, or that no machine like this one can use."""
        object.__setattr__(self, "weights", self.weights or self.snapshots is not None)
        if self.workers is not None and self.cluster is not None:
            raise GrokscopeError("workers are processes of this machine: a cluster has its own, so leave them out")
        if self.workers is not None and self.workers < 0:
            raise GrokscopeError(f"workers = {self.workers} is not allowed: must be at least 0, or None for all cores")
        most = MOST_PER_CORE * available_cores()
        if self.workers is not None and self.workers > most:
            raise GrokscopeError(
                f"workers = {quoted(self.workers)} is not allowed: at most {most} here, {MOST_PER_CORE} for each core"
            )

    @property
    def engine_used(self) -> str:
        """The engine; on a GPU "auto" means many runs at once."""
        return "stacked" if self.engine == "auto" and self.device != "cpu" else self.engine

    @property
    def at_once(self) -> int:
        """How many runs a worker process is given together."""
        return MOST_STACKED if self.engine_used == "stacked" else 1

    def snapshots_of(self, spec: RunSpec) -> tuple[int, ...]:
        """The steps of a run that its weights are kept at."""
        return snapshot_steps(spec.training, self.snapshots)

    def lacking(self, store: Store, specs: Iterable[RunSpec]) -> set[str]:
        """The runs that the store does not have, or not with all that is to be kept of them."""
        return set(store.lacking({spec.run_id: self.snapshots_of(spec) for spec in specs}, weights=self.weights))

    @property
    def processes(self) -> int:
        """How many worker processes; 0 for none."""
        if self.cluster is not None:
            return self.cluster.slots(self.device)
        if self.workers is not None:
            return self.workers
        return 1 if self.engine_used == "stacked" else available_cores()


def check_engines(running: Running, specs: Iterable[RunSpec]) -> None:
    """Refuse an engine, a device or a cluster that cannot train one of the runs, before anything is made."""
    usable = [spec for spec in specs if not spec.unresolved]  # the others fail with any engine, each by itself
    unlike = {(spec.model, spec.task.kind, spec.optimizer.kind, spec.regularizer.kind): spec for spec in usable}
    # Which devices the workers of a cluster have is not for this machine to say.
    device = running.device if running.cluster is None else "cpu"
    for spec in unlike.values():
        resolve_engine(running.engine_used, device, spec)
    if running.cluster is not None:
        running.cluster.check({tuple(spec.code()): spec for spec in usable}.values())


def check_data(running: Running, specs: Iterable[RunSpec], store: Path) -> None:
    """Refuse runs whose data is not here, before anything is made. Those that are in the store need none."""
    if running.cluster is not None:  # what its workers have is not for this machine to say
        return
    for spec in specs:
        if (reason := spec.task.why_no_data()) and not _has(store, spec.run_id):
            raise GrokscopeError(reason)


def check_reached(running: Running, store: Path) -> None:
    """Refuse a cluster that does not answer, before a store is made for its runs."""
    if running.cluster is not None and not (store / "index.sqlite").exists():
        running.cluster.connect()


def _has(store: Path, run_id: str) -> bool:
    return (store / "index.sqlite").exists() and Store(store, create=False).find(run_id) is not None


def available_cores() -> int:
    """Cores this process may use, which on a shared machine can be fewer than it has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""Training from Python: one run, or a whole sweep.

import grokscope as gs

diagram = gs.sweep({"task.data_fraction": [0.3, 0.6], "task.corruption": [0, 0.3]}, seeds=3)
diagram = gs.sweep("fig3a", grid="5x5")
"""

import multiprocessing
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grokscope.cluster import cluster_at
from grokscope.engines import resolve_engine
from grokscope.errors import GrokscopeError, SpecError, did_you_mean, quoted
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.store import DEFAULT_STORE, Store, StoredSweep
from grokscope.sweeps import Finished, Measured, Running, StillWaiting, Waiting, run_all
from grokscope.sweeps.diagram import PhaseDiagram
from grokscope.sweeps.notes import note
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.running import check_data, check_engines
from grokscope.sweeps.stopping import stop_on_request
from grokscope.sweeps.sweep import Sweep

MANY_RUNS = 20_000  # that take a second to plan, about
Axes = Mapping[Any, Iterable[object]]  # keys are fields or tuples of fields; dict is invariant in them, hence Any


def sweep(
    what: Axes | Plan | str | Path,
    *,
    base: RunSpec | None = None,
    name: str | None = None,
    seeds: int | None = None,
    grid: str | None = None,
    refine: bool = False,
    limit: int | None = None,
    retry_failed: bool = False,
    store: Store | str | Path = DEFAULT_STORE,
    workers: int | None = None,
    engine: str = "auto",
    device: str = "cpu",
    cluster: str | None = None,
    cluster_config: str | Path | None = None,
    hosts: str | Sequence[str] = (),
    weights: bool = False,
    progress: bool = True,
) -> PhaseDiagram:
    """Train a whole diagram of networks, and return it.

    >>> import tempfile
    >>> from grokscope.spec import ModelSpec, TaskSpec, TrainingSpec
    >>> small = RunSpec(task=TaskSpec(modulus=7), model=ModelSpec(width=8), training=TrainingSpec(steps=2))
    >>> with tempfile.TemporaryDirectory() as store:
    ...     diagram = sweep({"task.corruption": [0, 0.3]}, base=small, store=store, workers=0, progress=False)
    >>> [cell.outcome for cell in diagram.all_cells()]
    ['confusion', 'confusion']

    `what` is the axes (fields and their values; a tuple of fields changes together), a `Plan`, the name of a sweep of
    the paper, or a TOML file. `base` has the fields that no axis has. `seeds`, `grid`, `refine`, `limit`, `weights` and
    `retry_failed` are as for `grokscope sweep`, and so are `cluster`, `cluster_config` and `hosts`.

    Runs are kept in the store, and those that are there are not trained again. Ctrl-C saves where the runs under way
    stand and raises KeyboardInterrupt; the same call goes on from there. `workers=0` trains in this process, where an
    exception in a run can be seen with a debugger.
    """
    if multiprocessing.current_process().daemon:
        raise GrokscopeError(
            "a worker of a sweep imports this file for a class in it, and the file starts a sweep: "
            'put that under `if __name__ == "__main__":`, or the class into a file of its own'
        )
    plan = _plan(what, base).changed(name=name, grid=grid, seeds=_at_least(1, "seeds", seeds))
    limit = _at_least(1, "limit", limit)
    with cluster_at(cluster, cluster_config, hosts) as place:
        running = Running(workers=workers, engine=engine, device=device, weights=weights, cluster=place)
        started = start_sweep(plan, running, store, refined=refine, retry_failed=retry_failed)
        if started.carry_out(running, limit=limit, progress=progress):
            raise KeyboardInterrupt
    return started.diagram()


def start_sweep(
    plan: Plan,
    running: Running,
    store: Store | str | Path,
    *,
    refined: bool = False,
    retry_failed: bool = False,
    keep_both: str = "another name keeps both",
) -> Sweep:
    """A sweep that is checked and written down, and has nothing done yet. Says if its name meant another one."""
    specs = specs_to_run(plan, running)
    check_data(running, specs, _path(store))
    started = Sweep(plan, store if isinstance(store, Store) else Store(store), specs=specs, refined=refined)
    if started.record():
        note(
            f"The store has a sweep {plan.name} with other settings. Its runs stay, and the name now means this one; "
            f"{keep_both}."
        )
    if retry_failed:
        note(f"{started.store.forget_failures(plan.name)} failed runs will be tried again.")
    return started


def _path(store: Store | str | Path) -> Path:
    return store.path if isinstance(store, Store) else Path(store)


def specs_to_run(plan: Plan, running: Running) -> list[RunSpec]:
    """The runs of a plan, if the engine can do them; says so if making them takes more than a moment."""
    if plan.size >= MANY_RUNS:
        note(f"Planning {plan.size:,} runs …")
    specs = list(plan.specs())
    check_engines(running, specs)
    return specs


def train(
    spec: RunSpec,
    *,
    store: Store | str | Path = DEFAULT_STORE,
    weights: bool = False,
    force: bool = False,
    engine: str = "auto",
    device: str = "cpu",
) -> RunResult:
    """Train one network as a sweep of one run: with a lease and checkpoints, kept in the store.

    >>> import tempfile
    >>> from grokscope.spec import ModelSpec, TaskSpec, TrainingSpec
    >>> small = RunSpec(task=TaskSpec(modulus=7), model=ModelSpec(width=8), training=TrainingSpec(steps=2))
    >>> with tempfile.TemporaryDirectory() as store:
    ...     result = train(small, store=store)
    >>> result.outcome
    'Confusion'

    A run that is in the store is not trained again unless `force` says so, or its `weights` are wanted and were not
    kept. Ctrl-C saves where the run stands and raises KeyboardInterrupt; the same call goes on from there. Without a
    store, `gs.run` trains and forgets.
    """
    resolve_engine(engine, device, spec)
    check_data(Running(), [spec], _path(store))
    opened = store if isinstance(store, Store) else Store(store)
    before = opened.find(spec.run_id)
    if before and not force and engine in ("auto", before.engine) and (before.has_weights or not weights):
        note(f"Run {spec.run_id} is in the store already; --force trains it again.")
    else:
        kept = weights or (before is not None and before.has_weights)
        running = Running(workers=0, engine=engine, device=device, weights=kept, again=before is not None)
        _train_here(spec, opened.path, running)
    return opened.load(spec.run_id).resolved()


def _train_here(spec: RunSpec, store: Path, running: Running) -> None:
    from grokscope.sweeps.bars import RunsProgress  # with rich, which worker processes do not need

    finished = False
    with stop_on_request() as should_stop, RunsProgress([spec], [f"training {spec.run_id}"]) as progress:
        for event in run_all([spec], store, running, should_stop=should_stop):
            match event:
                case Measured():
                    progress.show(event)
                case Waiting(_, owner):
                    note(f"Run {spec.run_id} is being trained by {owner}: waiting for it.")
                case StillWaiting():
                    note(str(event))
                case Finished():
                    finished = True
    if not finished:
        raise KeyboardInterrupt


def _plan(what: Axes | Plan | str | Path, base: RunSpec | None) -> Plan:
    if isinstance(what, Mapping):
        return Plan.over(what, base)
    if base is not None:
        raise SpecError("base goes with axes; a plan, a sweep of the paper and a file have their own")
    return what if isinstance(what, Plan) else find_plan(what)


def find_plan(what: str | Path) -> Plan:
    """A sweep of the paper, such as "fig3a", or the one in a TOML file."""
    from grokscope.experiments.catalogue import SWEEPS

    name = re.sub(r"^fig0(\d)", r"fig\1", str(what))  # as the figure that it belongs to is called
    if name in SWEEPS:
        return SWEEPS[name]
    if str(what).endswith(".toml") or _is_there(Path(what)):
        return Plan.from_file(Path(what))
    raise SpecError(
        f"there is no sweep {quoted(str(what))}: name one of {', '.join(SWEEPS)}, or a .toml file, or a sweep of the "
        f"store{did_you_mean(str(what), SWEEPS)}"
    )


def stored_sweep(name: str, store: Path) -> StoredSweep | None:
    """The sweep of a store by its name, unless the paper or a file has one of this name."""
    from grokscope.experiments.catalogue import SWEEPS

    if name in SWEEPS or name.endswith(".toml") or not _is_there(store / "index.sqlite"):
        return None
    opened = Store(store, create=False)
    try:
        return next((sweep for sweep in opened.sweeps() if sweep.name == name), None)
    finally:
        opened.close()


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no file can have such a name
        return False


def _at_least(least: int, name: str, value: int | None) -> int | None:
    if value is not None and value < least:
        raise GrokscopeError(f"{name} = {quoted(value)} is not allowed: must be at least {least}")
    return value

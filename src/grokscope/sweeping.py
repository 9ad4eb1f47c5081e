"""Training from Python: one run, or a whole sweep.

import grokscope as gs

diagram = gs.sweep({"task.data_fraction": [0.3, 0.6], "task.corruption": [0, 0.3]}, seeds=3)
diagram = gs.sweep("fig3a", grid="5x5")
"""

import multiprocessing
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from grokscope.cluster import cluster_at
from grokscope.engines import resolve_engine
from grokscope.errors import EngineError, GrokscopeError, SpecError, did_you_mean, quoted
from grokscope.measure import Moment, Row
from grokscope.notes import note
from grokscope.result import RunResult
from grokscope.snapshots import Snapshots, snapshots_from
from grokscope.spec import RunSpec
from grokscope.store import DEFAULT_STORE, Store, StoredSweep
from grokscope.sweeps import Finished, Measured, Running, StillWaiting, Waiting, run_all
from grokscope.sweeps.diagram import PhaseDiagram
from grokscope.sweeps.plan import Plan, check_sweep_name
from grokscope.sweeps.recorded import NOTHING_RECORDED, Recorded, read_outcomes
from grokscope.sweeps.running import check_data, check_engines, check_reached
from grokscope.sweeps.stopping import stop_on_request
from grokscope.sweeps.sweep import Sweep
from grokscope.sweeps.tracking import track_directory, track_stored
from grokscope.training import OnEvaluation, OnMeasurement, execute

QUICK_SECONDS = 1.0  # a run that takes no longer need not show how far it is
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
    cells: str | Path | None = None,
    store: Store | str | Path = DEFAULT_STORE,
    workers: int | None = None,
    engine: str = "auto",
    device: str = "cpu",
    cluster: str | None = None,
    cluster_config: str | Path | None = None,
    hosts: str | Sequence[str] = (),
    weights: bool = False,
    snapshots: Snapshots | bool = None,
    track: str | None = None,
    track_dir: str | Path | None = None,
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

    `what` is the axes (fields and their values; a tuple of fields changes together), a `Plan`, a TOML file, or the name
    of a sweep of the paper or of the store. `base` has the fields that no axis has. `seeds`, `grid`, `refine`, `limit`,
    `weights`, `snapshots`, `retry_failed` and `cells` are as for `grokscope sweep`, and so are `cluster`,
    `cluster_config`, `hosts`, `track` and `track_dir`.

    Runs are kept in the store, and those that are there are not trained again. Ctrl-C saves where the runs under way
    stand and raises KeyboardInterrupt; the same call goes on from there. `workers=0` trains in this process, where an
    exception in a run can be seen with a debugger.
    """
    if multiprocessing.current_process().daemon:
        raise GrokscopeError(
            "a worker of a sweep imports this file for a class in it, and the file starts a sweep: "
            'put that under `if __name__ == "__main__":`, or the class into a file of its own'
        )
    plan, refined_before = _plan(what, base, _path(store))
    plan = plan.changed(name=name, grid=grid, seeds=_at_least(1, "seeds", seeds))
    limit, kept = _at_least(1, "limit", limit), snapshots_from(snapshots)
    tracked = track_directory(track, track_dir, store.path if isinstance(store, Store) else Path(store))
    recorded = read_outcomes(Path(cells)) if cells else NOTHING_RECORDED
    with cluster_at(cluster, cluster_config, hosts) as place:
        running = Running(workers, engine, device, weights=weights, snapshots=kept, cluster=place, track=tracked)
        refined = refine or refined_before
        started = start_sweep(plan, running, store, refined=refined, recorded=recorded, retry_failed=retry_failed)
        if started.carry_out(running, limit=limit, progress=progress):
            raise KeyboardInterrupt
    return started.diagram()


def start_sweep(
    plan: Plan,
    running: Running,
    store: Store | str | Path,
    *,
    refined: bool = False,
    recorded: Recorded = NOTHING_RECORDED,
    retry_failed: bool = False,
    keep_both: str = "another name keeps both",
) -> Sweep:
    """A sweep that is checked and written down, and has nothing done yet. Says if its name meant another one."""
    specs = specs_to_run(plan, running)
    check_data(running, specs, _path(store))
    check_reached(running, _path(store))
    opened = store if isinstance(store, Store) else Store(store)
    started = Sweep(plan, opened, specs=specs, refined=refined, recorded=recorded)
    if started.takes_a_name():
        if running.cluster is not None:
            running.cluster.connect()  # a cluster that cannot be had must not cost a finished sweep its name
        note(
            f"The store has a sweep {plan.name} with other settings. Its runs stay, and the name now means this one; "
            f"{keep_both}."
        )
    started.record()
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


def run(
    spec: RunSpec, *, store: Store | str | Path | None = None, progress: bool | None = None, **options: Any
) -> RunResult:
    """Train the network that `spec` describes, measure it on the way, and name its phase.

    >>> from grokscope.spec import ModelSpec, TaskSpec, TrainingSpec
    >>> result = run(RunSpec(task=TaskSpec(modulus=7), model=ModelSpec(width=8), training=TrainingSpec(steps=2)))
    >>> result.outcome, result.weights["U"].shape
    ('Confusion', (8, 7))

    Without a store, nothing is kept but the result; `options` are those of `grokscope.training.execute`: the engine,
    the device and callbacks. With a `store`, the run and its network are kept there, and a run that is there with its
    network is not trained again; `options` are then those of `gs.train`.

    In a terminal or a notebook, a run that takes longer than a second shows its progress; `progress` says otherwise.
    """
    shown = _somebody_looks_on() if progress is None else progress
    _check_spec(spec)
    known = signature(execute if store is None else train).parameters.keys() - {"spec", "weights", "store"}
    if store is not None:
        for name in options.keys() & {"on_measurement", "on_evaluation", "on_pause", "start"}:
            raise GrokscopeError(
                f"{name} cannot be used with a store, whose runs may be trained already: leave one out"
            )
    for name in options.keys() - known:
        kept = "; the network is kept in any case" if name == "weights" else ""
        raise GrokscopeError(
            f"gs.run has no option {quoted(name)}{kept}: it has {', '.join(sorted(known))}{did_you_mean(name, known)}"
        )
    if store is not None:
        return train(spec, store=store, weights=True, progress=shown, **options)
    if not shown:
        return execute(spec, **options)
    from grokscope.sweeps.bars import RunsProgress  # with rich, which worker processes do not need

    theirs, began = options.pop("on_measurement", None), time.monotonic()
    with RunsProgress([spec], [f"training {spec.run_id}"], hidden=not progress) as bars:

        def on_measurement(row: Row, *measured: Any) -> None:
            if progress or time.monotonic() - began > QUICK_SECONDS:
                bars.update(0, row)
            if theirs is not None:
                theirs(row, *measured)

        return execute(spec, on_measurement=on_measurement, **options)


def _check_spec(spec: object) -> None:
    if not isinstance(spec, RunSpec):
        raise SpecError(f"a run is trained from a RunSpec, not from {quoted(spec)}; gs.RunSpec.from_toml reads TOML")


def _somebody_looks_on() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def train(
    spec: RunSpec,
    *,
    store: Store | str | Path = DEFAULT_STORE,
    weights: bool = False,
    snapshots: Snapshots | bool = None,
    force: bool = False,
    engine: str = "auto",
    device: str = "cpu",
    track: str | None = None,
    track_dir: str | Path | None = None,
    progress: bool = True,
) -> RunResult:
    """Train one network as a sweep of one run: with a lease and checkpoints, kept in the store.

    >>> import tempfile
    >>> from grokscope.spec import ModelSpec, TaskSpec, TrainingSpec
    >>> small = RunSpec(task=TaskSpec(modulus=7), model=ModelSpec(width=8), training=TrainingSpec(steps=2))
    >>> with tempfile.TemporaryDirectory() as store:
    ...     result = train(small, store=store)
    >>> result.outcome
    'Confusion'

    A run that is in the store is not trained again unless `force` says so, or its `weights` or `snapshots` ("all", or
    a number) are wanted and were not kept. Ctrl-C saves where the run stands and raises KeyboardInterrupt; the same
    call goes on from there. Without a store, `gs.run` trains and forgets. `track="tensorboard"` writes event
    files, into `track_dir` or beside the store.
    """
    _check_spec(spec)
    resolve_engine(engine, device, spec)
    check_data(Running(), [spec], _path(store))
    opened = store if isinstance(store, Store) else Store(store)
    opened.make()
    tracked = track_directory(track, track_dir, opened.path)
    before = opened.find(spec.run_id)
    running = Running(0, engine, device, weights=weights, snapshots=snapshots_from(snapshots), track=tracked)
    if before and not force and engine in ("auto", before.engine) and not running.lacking(opened, [spec]):
        if progress:
            note(f"Run {spec.run_id} is in the store already; --force trains it again.")
    else:
        if before:  # what was kept once is kept again
            kept = running.snapshots or opened.snapshot_count(before) or None
            running = replace(running, weights=weights or before.has_weights, snapshots=kept, again=True)
        _train_here(spec, opened.path, running, progress=progress)
    track_stored(opened, [spec.run_id], tracked)
    return opened.load(spec.run_id).resolved()


def _train_here(spec: RunSpec, store: Path, running: Running, *, progress: bool) -> None:
    from grokscope.sweeps.bars import RunsProgress  # with rich, which worker processes do not need

    finished = False
    bars = RunsProgress([spec], [f"training {spec.run_id}"]) if progress else None
    with stop_on_request() as should_stop, bars or nullcontext():
        for event in run_all([spec], store, running, should_stop=should_stop):
            match event:
                case Measured():
                    if bars:
                        bars.show(event)
                case Waiting(_, owner):
                    note(f"Run {spec.run_id} is being trained by {owner}: waiting for it.")
                case StillWaiting():
                    note(str(event))
                case Finished():
                    finished = True
    if not finished:
        raise KeyboardInterrupt


def train_again(
    stored: RunResult, *, on_measurement: OnMeasurement | None = None, on_evaluation: OnEvaluation | None = None
) -> RunResult:
    """Train a run once more, for what was not kept of it: with the same engine, so to the same bits. Stores nothing.

    train_again(result, on_measurement=lambda row, moment: kept.append(moment.weights))
    """
    from grokscope.sweeps.bars import RunsProgress

    spec, engine = stored.resolved().spec, stored.engine
    try:
        resolve_engine(engine, "cpu", spec)
    except EngineError as error:
        note(f"The engine of the stored run is not available, so numbers can differ by rounding: {error}")
        engine = "auto"
    with RunsProgress([spec], [f"training {spec.run_id} again"]) as progress:

        def show(row: Row, moment: Moment) -> None:
            progress.update(0, row)
            if on_measurement is not None:
                on_measurement(row, moment)

        return execute(spec, engine=engine, on_measurement=show, on_evaluation=on_evaluation)


def _plan(what: Axes | Plan | str | Path, base: RunSpec | None, store: Path) -> tuple[Plan, bool]:
    if isinstance(what, Mapping):
        return Plan.over(what, base), False
    if base is not None:
        raise SpecError("base goes with axes; a plan, a sweep of the paper and a file have their own")
    if isinstance(what, Plan):
        return what, False
    if not isinstance(what, str | Path):
        raise SpecError(f"a sweep is made of axes, a Plan, a name or a file, not of {quoted(what)}")
    return named_sweep(what, store)


def named_sweep(what: str | Path, store: Path) -> tuple[Plan, bool]:
    """A sweep of the paper, such as "fig3a", one of the store, or the one in a TOML file; and whether it is refined."""
    from grokscope.experiments.catalogue import SWEEPS

    named = str(what)
    of_the_paper = re.sub(r"^fig0(\d)", r"fig\1", named)  # as the figure that it belongs to is called
    if of_the_paper in SWEEPS:
        return SWEEPS[of_the_paper], False
    kept = {} if named.endswith(".toml") else _sweeps_of(store)
    if named in kept:
        return Plan.stored(named, kept[named].definition), kept[named].refined
    if named.endswith(".toml") or _is_there(Path(what)):
        return Plan.from_file(Path(what)), False
    of_the_store = f" ({', '.join(kept)})" if kept else ""
    raise SpecError(
        f"there is no sweep {quoted(named)}: name one of {', '.join(SWEEPS)}, or a .toml file, or a sweep of the "
        f"store{of_the_store}{did_you_mean(named, [*kept, *SWEEPS])}"
    )


def check_free_name(name: str) -> None:
    """Refuse a name for a sweep of the store by which `named_sweep` would not find it."""
    from grokscope.experiments.catalogue import SWEEPS

    check_sweep_name(name)
    if name.endswith(".toml"):
        raise SpecError(f"a sweep cannot be called {name}: that is a file")
    if re.sub(r"^fig0(\d)", r"fig\1", name) in SWEEPS:
        raise SpecError(f"a sweep cannot be called {name}: that is one of the paper's")


def _sweeps_of(store: Path) -> dict[str, StoredSweep]:
    if not _is_there(store / "index.sqlite"):
        return {}
    with Store(store, create=False) as opened:
        return {sweep.name: sweep for sweep in opened.sweeps()}


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no file can have such a name
        return False


def _at_least(least: int, name: str, value: int | None) -> int | None:
    if value is not None and value < least:
        raise GrokscopeError(f"{name} = {quoted(value)} is not allowed: must be at least {least}")
    return value

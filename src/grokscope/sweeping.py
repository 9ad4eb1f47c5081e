"""Sweeps from Python.

import grokscope as gs

diagram = gs.sweep({"task.data_fraction": [0.3, 0.6], "task.corruption": [0, 0.3]}, seeds=3)
diagram = gs.sweep("fig3a", grid="5x5")
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from grokscope.errors import GrokscopeError, SpecError, did_you_mean
from grokscope.spec import RunSpec
from grokscope.store import DEFAULT_STORE, Store
from grokscope.sweeps.diagram import PhaseDiagram
from grokscope.sweeps.notes import note
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.running import Running, check_engines
from grokscope.sweeps.sweep import Sweep

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
    `retry_failed` are as for `grokscope sweep`.

    Runs are kept in the store, and those that are there are not trained again. Ctrl-C saves where the runs under way
    stand and raises KeyboardInterrupt; the same call goes on from there. `workers=0` trains in this process, where an
    exception in a run can be seen with a debugger.
    """
    plan = _plan(what, base).changed(name=name, grid=grid, seeds=_at_least(1, "seeds", seeds))
    limit = _at_least(1, "limit", limit)
    running = Running(workers=workers, engine=engine, device=device, weights=weights)
    specs = list(plan.specs())
    check_engines(running, specs)
    started = Sweep(plan, store if isinstance(store, Store) else Store(store), specs=specs, refined=refine)
    if started.record() and progress:
        note(f"The store had another sweep {plan.name}. Its runs stay, and the name now means this one.")
    if retry_failed:
        started.store.forget_failures(plan.name)
    if started.carry_out(running, limit=limit, progress=progress):
        raise KeyboardInterrupt
    return started.diagram()


def _plan(what: Axes | Plan | str | Path, base: RunSpec | None) -> Plan:
    if isinstance(what, Mapping):
        return Plan.over(what, base)
    if base is not None:
        raise SpecError("base goes with axes; a plan, a sweep of the paper and a file have their own")
    return what if isinstance(what, Plan) else find_plan(what)


def find_plan(what: str | Path) -> Plan:
    """A sweep of the paper, such as "fig3a", or the one in a TOML file."""
    from grokscope.experiments.catalogue import SWEEPS

    if what in SWEEPS:
        return SWEEPS[str(what)]
    if str(what).endswith(".toml") or Path(what).exists():
        return Plan.from_file(Path(what))
    raise SpecError(
        f"there is no sweep {str(what)!r}: name one of {', '.join(SWEEPS)}, or a .toml file"
        f"{did_you_mean(str(what), SWEEPS)}"
    )


def _at_least(least: int, name: str, value: int | None) -> int | None:
    if value is not None and value < least:
        raise GrokscopeError(f"{name} = {value} is not allowed: must be at least {least}")
    return value

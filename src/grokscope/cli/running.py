"""A sweep from its first missing run to its last, shown as it goes: what `sweep`, `figure` and `claims` share."""

import json
from collections.abc import Iterator, Sequence

from grokscope.cli.live import SweepDisplay
from grokscope.cli.options import note
from grokscope.errors import GrokscopeError
from grokscope.spec import RunSpec
from grokscope.store import CellOutcome, Store
from grokscope.sweeps import run_all
from grokscope.sweeps.diagram import wanted_places
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.running import available_cores
from grokscope.sweeps.stopping import stop_on_request

FEWER_WITH_REFINE = "With --refine it will be fewer runs: how many shows only while it runs."


def worker_count(text: str, engine: str) -> int:
    """How many processes, from what the command line says."""
    if text == "auto":
        return 1 if engine == "stacked" else available_cores()
    if not text.isdecimal() or int(text) < 1:
        raise GrokscopeError(f"--workers = {text!r} is not allowed: must be auto or a number of at least 1")
    return int(text)


def record_plan(store: Store, plan: Plan, specs: Sequence[RunSpec], *, refined: bool, keep_both: str) -> None:
    """Write down which runs the sweep of this name is made of; if the name meant others until now, say so."""
    before = next((sweep for sweep in store.sweeps() if sweep.name == plan.name), None)
    if before and before.definition != json.loads(json.dumps(plan.to_dict())):
        note(
            f"The store has a sweep {plan.name} with other settings. Its runs stay, and the name now means this one; "
            f"{keep_both}."
        )
    store.record_sweep(plan.name, plan.to_dict(), (spec.run_id for spec in specs), refined=refined)


def run_plan(
    store: Store,
    plan: Plan,
    specs: Sequence[RunSpec],
    workers: int,
    engine: str,
    device: str,
    limit: int | None = None,
    *,
    refined: bool,
    weights: bool = False,
) -> bool:
    """Do the runs that are missing, or of a refined sweep those that are wanted; whether it was asked to stop."""
    run_ids = [spec.run_id for spec in specs]  # not the name's: another command may give that to another sweep
    cells = store.outcomes(run_ids)
    places = {cell.run_id: cell.place for cell in reversed(_to_do(store, cells, weights=weights))}  # each run once
    display = SweepDisplay(plan, specs, cells)
    left = plan.size if limit is None else limit

    def batches() -> Iterator[Sequence[int]]:
        nonlocal left
        wanted = wanted_places(plan, cells) if refined else sorted(places.values())
        while wanted and left:
            chosen = wanted[:left]
            left -= len(chosen)
            display.expect(chosen)
            yield chosen
            wanted = wanted_places(plan, store.outcomes(run_ids)) if refined else []

    with stop_on_request() as should_stop, display:
        for event in run_all(
            specs,
            store.path,
            workers=workers,
            engine=engine,
            device=device,
            weights=weights,
            batches=batches(),
            should_stop=should_stop,
        ):
            display.update(event)
        return should_stop()


def _to_do(store: Store, cells: Sequence[CellOutcome], *, weights: bool) -> list[CellOutcome]:
    """The cells without a run, and if weights are wanted those whose run was stored without them."""
    bare = set(store.without_weights(cell.run_id for cell in cells)) if weights else set()
    return [cell for cell in cells if cell.outcome is None or (cell.outcome != "failed" and cell.run_id in bare)]

"""Phase diagrams for the page, from the index of a store alone.

view = diagram_view(store, "fig3a")
view.panels[0].outcome
"""

from collections.abc import Mapping

import numpy as np

from grokscope.errors import DamagedError, StoreError, did_you_mean
from grokscope.explorer import models as m
from grokscope.explorer.numbers import rounded
from grokscope.explorer.words import axis_title, short_name, text_of
from grokscope.measure import training_events
from grokscope.store import Store, StoredSweep
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import OUTCOMES, PhaseDiagram, assemble, cells_of_places, diagram_axes
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.recorded import NOTHING_RECORDED, Recorded, completed

FINAL_COLUMNS = ("corrupted_accuracy", "recovered_accuracy", "mean_ipr")  # colours that the index knows
GROKKED = "grokked_step"  # a colour that needs the curves


def find(store: Store, name: str) -> StoredSweep:
    """The sweep of this name; a damaged one is an error that says so."""
    found, damaged = store.sound_and_damaged_sweeps()
    by_name = {sweep.name: sweep for sweep in found}
    if name in damaged:
        raise DamagedError(f"the sweep {name} is damaged in the store; `grokscope store check --repair` mends it")
    if name not in by_name:
        raise StoreError(f"there is no sweep {name!r} in the store{did_you_mean(name, by_name)}")
    return by_name[name]


def diagram_view(store: Store, name: str, recorded: Recorded = NOTHING_RECORDED) -> m.DiagramView:
    """The phase diagram of a sweep as the store has it now, from the index alone, and what tables of cells add."""
    sweep = find(store, name)
    plan = Plan.stored(name, sweep.definition)
    cells, damaged = store.cells_and_damaged(name)
    places = completed(cells, recorded)
    diagram = assemble(plan, places, refined=sweep.refined)
    running, broken = store.running(), set(damaged)
    states = [
        "damaged" if cell.run_id in broken else cell.outcome or ("running" if cell.run_id in running else None)
        for cell in places
    ]
    by_cell = _places_by_cell(plan, len(diagram.panels) * _panel_size(diagram))
    size = _panel_size(diagram)
    panels = []
    for number, panel in enumerate(diagram.panels):
        shown = [cell for row in panel.cells for cell in row]
        own = by_cell[number * size : (number + 1) * size]
        panels.append(
            m.PanelView(
                title=", ".join(f"{short_name(path)} {text_of(value)}" for path, value in panel.fields.items()),
                fields={path: _plain(value) for path, value in panel.fields.items()},
                outcome=[cell.outcome for cell in shown],
                source=[
                    "recorded" if cell.source == "run" and not any(cells[at].outcome for at in seeds) else cell.source
                    for cell, seeds in zip(shown, own, strict=True)
                ],
                counts=[[cell.counts.get(outcome, 0) for outcome in OUTCOMES] for cell in shown],
                train_accuracy=[rounded(cell.train_accuracy) for cell in shown],
                test_accuracy=[rounded(cell.test_accuracy) for cell in shown],
                run_ids=[[places[at].run_id for at in seeds] for seeds in own],
                seeds=[[states[at] for at in seeds] for seeds in own],
            )
        )
    return m.DiagramView(
        name=name,
        started_at=sweep.started_at,
        refined=sweep.refined,
        words=diagram.describe(),
        columns=_axis_view(diagram.columns),
        rows=_axis_view(diagram.rows) if diagram.rows else None,
        seeds=plan.seed_count,
        panels=panels,
    )


def _panel_size(diagram: PhaseDiagram) -> int:
    return len(diagram.columns) * (len(diagram.rows) if diagram.rows else 1)


def _places_by_cell(plan: Plan, cells: int) -> list[list[int]]:
    """The places of the seeds of every cell, in the order of the seeds."""
    cell_of = cells_of_places(plan, diagram_axes(plan))
    order = np.argsort(cell_of, kind="stable")
    ends = np.cumsum(np.bincount(cell_of, minlength=cells))
    return [part.tolist() for part in np.split(order, ends[:-1])]


def color_view(store: Store, name: str, panel: int, quantity: str) -> m.ColorView:
    """A column of the last measured row in every cell of a panel, from the index."""
    values = store.final_columns(name, [quantity])
    return _over_seeds(_run_ids(store, name, panel), {run_id: own for run_id, (own,) in values.items()}, left=0)


def grokked_view(store: Store, name: str, panel: int, known: dict[str, float | None], most: int) -> m.ColorView:
    """The step at which each cell grokked. Needs the curves, so it looks at `most` runs that are not `known` yet."""
    run_ids = _run_ids(store, name, panel)
    done = {cell.run_id for cell in store.cells_and_damaged(name)[0] if cell.outcome and cell.outcome != "failed"}
    unknown = [run_id for seeds in run_ids for run_id in seeds if run_id in done and run_id not in known]
    for run_id in unknown[:most]:
        known[run_id] = _grokked_step(store, run_id)
    return _over_seeds(run_ids, known, left=max(0, len(unknown) - most))


def _grokked_step(store: Store, run_id: str) -> float | None:
    try:
        curve = store.load(run_id).curve
    except StoreError:  # damaged, or deleted just now
        return None
    return training_events(curve).grokked.step if curve else None


def _run_ids(store: Store, name: str, panel: int) -> list[list[str]]:
    """The runs of every cell of a panel."""
    plan = Plan.stored(name, find(store, name).definition)
    width, height = diagram_axes(plan).size
    places = store.cells_and_damaged(name)[0]
    own = _places_by_cell(plan, plan.size // plan.seed_count)[panel * width * height : (panel + 1) * width * height]
    if not own:
        raise StoreError(f"the sweep {name} has no panel {panel}")
    return [[places[at].run_id for at in seeds] for seeds in own]


def _over_seeds(cells: list[list[str]], values: Mapping[str, float | None], left: int) -> m.ColorView:
    means: m.Numbers = []
    for seeds in cells:
        there = [value for run_id in seeds if (value := values.get(run_id)) is not None]
        means.append(rounded(sum(there) / len(there)) if there else None)
    return m.ColorView(values=means, left=left)


def _axis_view(axis: Axis) -> m.AxisView:
    single = len(axis.fields) == 1
    values = [point[0] for point in axis.points]
    numeric = single and len(axis) > 0 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return m.AxisView(
        title=" and ".join(axis_title(path) for path in axis.fields),
        fields=list(axis.fields),
        labels=[", ".join(text_of(value) for value in point) for point in axis.points],
        numbers=[float(str(value)) for value in values] if numeric else None,
    )


def _plain(value: object) -> m.Value:
    if isinstance(value, tuple):
        return [str(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)

"""A store as tables and labelled arrays, read when they are asked for.

    import grokscope as gs

    runs = gs.open("grokscope-runs")
    runs.runs                                     # a DataFrame, from the index
    runs.where("phase=coexistence").curves        # a DataFrame of all their curves
    runs.sweep("fig3a").to_xarray()               # a Dataset over the axes of the sweep

Nothing is ever written, so a store that may only be read is enough.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from grokscope.errors import GrokscopeError
from grokscope.exports.dataset import runs_dataset, sweep_dataset
from grokscope.exports.tables import curves_table, neurons_table, runs_table
from grokscope.result import RunResult
from grokscope.store import DEFAULT_STORE, Store
from grokscope.sweeps.diagram import PhaseDiagram, find_sweep, phase_diagram
from grokscope.sweeps.plan import Plan
from grokscope.tables import data_frame

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def open_store(store: Store | str | Path = DEFAULT_STORE) -> "StoreView":
    """Look at a store: `gs.open("grokscope-runs").runs`."""
    return StoreView(Store(store.path if isinstance(store, Store) else store, create=False))


class StoreView:
    """The runs of a store, or some of them. Each table is read anew when it is asked for."""

    def __init__(self, store: Store, conditions: Sequence[str] = (), sweep: str | None = None) -> None:
        self.store, self._conditions, self._sweep = store, tuple(conditions), sweep

    def where(self, *conditions: str) -> "StoreView":
        """Only the runs that meet these conditions too, which are those of `grokscope runs list --where`."""
        return StoreView(self.store, (*self._conditions, *conditions), self._sweep)

    def sweep(self, name: str) -> "SweepView":
        """One sweep, with all of its runs."""
        if self._conditions:
            raise GrokscopeError("name the sweep first, and choose among its runs then: .sweep(name).where(…)")
        return SweepView(self.store, name)

    def ids(self) -> list[str]:
        """The ids of the runs, oldest first."""
        return self.store.ids(self._conditions, sweep=self._sweep)

    @property
    def runs(self) -> "pd.DataFrame":
        """A row for each run: what became of it, its settings, its last measured row. Reads the index only."""
        return runs_table(self.store, self.ids()).to_pandas()

    @property
    def curves(self) -> "pd.DataFrame":
        """A row for each measured step of each run, with the settings in which the runs differ. Reads every run."""
        return curves_table(self.store, self.ids()).to_pandas()

    @property
    def neurons(self) -> "pd.DataFrame":
        """A row for each neuron of each run, with the settings in which the runs differ. Reads every run."""
        return neurons_table(self.store, self.ids()).to_pandas()

    @property
    def sweeps(self) -> "pd.DataFrame":
        """A row for each sweep of the store: its name, its fields, how many cells it has, and how many are done."""
        progress = self.store.progress()
        sweeps = self.store.sweeps()
        axes = [Plan.from_dict(sweep.name, sweep.definition).axes for sweep in sweeps]
        return data_frame(
            {
                "sweep": [sweep.name for sweep in sweeps],
                "fields": [", ".join(path for axis in own for path in axis.fields) for own in axes],
                "cells": [progress.get(sweep.name, (0, 0))[0] for sweep in sweeps],
                "done": [progress.get(sweep.name, (0, 0))[1] for sweep in sweeps],
                "started_at": [sweep.started_at for sweep in sweeps],
            }
        )

    def run(self, run_id: str) -> RunResult:
        """One run with all that its file has; the beginning of its id is enough."""
        return self.store.load(run_id)

    def to_xarray(self) -> "xr.Dataset":
        """The runs along a dimension `run`. Curves and spectra are read when they are looked at."""
        return runs_dataset(self.store, self.ids())

    def __len__(self) -> int:
        return len(self.ids())

    def __repr__(self) -> str:
        chosen = f" with {' and '.join(self._conditions)}" if self._conditions else ""
        return f"<StoreView {self.store.path}: {len(self):,} runs{chosen}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store.close()


class SweepView(StoreView):
    """The runs of a sweep."""

    def __init__(self, store: Store, name: str) -> None:
        super().__init__(store, (), name)
        self.name, self.plan = name, Plan.from_dict(name, find_sweep(store, name).definition)

    def ids(self) -> list[str]:
        """The ids of the runs that are there, in the order of the cells."""
        there = (cell.run_id for cell in self.store.cells(self.name) if cell.outcome not in (None, "failed"))
        return list(dict.fromkeys(there))

    def diagram(self) -> PhaseDiagram:
        """What the runs of each cell show together."""
        return phase_diagram(self.store, self.name)

    def to_xarray(self) -> "xr.Dataset":
        """Arrays over the axes of the sweep. Curves and spectra are read when they are looked at."""
        return sweep_dataset(self.store, self.plan)

    def __repr__(self) -> str:
        return f"<SweepView {self.name} in {self.store.path}: {len(self):,} of {self.plan.size:,} runs>"

"""Runs as labelled arrays: a sweep over its axes, or runs in a row. Curves and spectra are read when looked at.

>>> short_names(["task.data_fraction", "task.kind", "model.kind", "task.step"])
{'task.data_fraction': 'data_fraction', 'task.kind': 'task_kind', 'model.kind': 'model_kind', 'task.step': 'task_step'}
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from grokscope.arrays import FloatArray
from grokscope.errors import StoreError
from grokscope.exports.fields import (
    Survey,
    Words,
    common_kind,
    declared_kind,
    words_for_column,
    words_for_field,
)
from grokscope.exports.tables import entries
from grokscope.measure import COLUMNS
from grokscope.phases import Phase
from grokscope.result import RunResult
from grokscope.spec import TrainingSpec
from grokscope.store import Store, StoredRun
from grokscope.sweeps.plan import GRID, Plan
from grokscope.tables import Value, optional_module, plain

if TYPE_CHECKING:
    import xarray as xr

OnRun = Callable[[], None]
Coordinates = dict[str, tuple[Any, ...]]

_RESERVED = {"run", "run_id", "step", "neuron", "status", "phase", "seconds", "diverged_step", "ipr", "gini", "kind"}
_WORDS = {
    "run_id": Words("run", "The id of the run; empty where there is none."),
    "status": Words("status", "finished, diverged, failed, damaged, or missing where no run was done."),
    "phase": Words("phase", f"One of {', '.join(phase.value for phase in Phase)}; empty where there is none."),
    "diverged_step": Words("diverged at", "The first step at which a loss was not a finite number."),
    "seconds": Words("seconds", "How long the training took."),
    "step": Words("step", "The optimisation step after which the network was measured."),
    "neuron": Words("neuron", "Index of the neuron: of the hidden layer, or of a Transformer's embedding."),
    "ipr": Words("IPR", "Inverse participation ratio of Equation 4 in the final network; NaN for a dead neuron."),
    "gini": Words("Gini", "Gini coefficient of the spectra in the final network; NaN for a dead neuron."),
}


def sweep_dataset(store: Store, plan: Plan, on_run: OnRun = lambda: None) -> "xr.Dataset":
    """A sweep over its axes, each named by its field: data_fraction, corruption, weight_decay, seed, …

    Fields that change together share a dimension, such as width_and_steps, and are coordinates along it.
    """
    cells, damaged = store.cells_and_damaged(plan.name)
    if len(cells) != plan.size:
        raise StoreError(f"the sweep {plan.name} is damaged in the store: start it again, which keeps its runs")
    names = short_names([path for axis in plan.axes for path in axis.fields] + list(plan.derived))
    dimensions = ["_and_".join(names[path] for path in axis.fields) for axis in plan.axes]
    coordinates: Coordinates = {}
    for axis, dimension in zip(plan.axes, dimensions, strict=True):
        for path, values in zip(axis.fields, zip(*axis.points, strict=True), strict=True):
            points = _coordinate(path, [plain(value) for value in values])
            coordinates[names[path]] = (dimension, points, words_for_field(path)._asdict() | {"field": path})
    shape = [len(axis) for axis in plan.axes]
    missing = {cell.run_id: {None: "missing", "failed": "failed"}.get(cell.outcome, "") for cell in cells}
    missing |= dict.fromkeys(damaged, "damaged")
    run_ids = np.array([cell.run_id for cell in cells]).reshape(shape, order="F")
    summary = _Summary(store, list(dict.fromkeys(run_ids.flat)), missing)
    variables = {
        names[path]: (dimensions, summary.each(run_ids, path), words_for_field(path)._asdict() | {"field": path})
        for path in plan.derived
    }
    moving = {path for axis in plan.axes for path in axis.fields} | set(plan.derived)
    constants = {path: value for path, value in plan.base.settings().items() if path not in moving}
    attributes = {"title": f"The sweep {plan.name}", "sweep": plan.name} | _attributes(constants)
    return _dataset(summary, run_ids, dimensions, coordinates, variables, attributes, on_run)


def runs_dataset(store: Store, run_ids: Sequence[str], on_run: OnRun = lambda: None) -> "xr.Dataset":
    """Runs along the dimension `run`, with the settings in which they differ as coordinates."""
    summary = _Summary(store, run_ids, {})
    there = np.array(list(summary.runs), dtype=str)
    differing = summary.survey.differing()
    coordinates: Coordinates = {"run": ("run", there, _WORDS["run_id"]._asdict())}
    for path, name in short_names(differing).items():
        words = words_for_field(path)._asdict() | {"field": path}
        coordinates[name] = ("run", summary.each(there, path), words)
    attributes = {"title": f"{len(there)} runs"} | _attributes(summary.survey.constants())
    return _dataset(summary, there, ["run"], coordinates, {}, attributes, on_run)


def run_dataset(store: Store, run_id: str, on_run: OnRun = lambda: None) -> "xr.Dataset":
    """One run: its curve along `step`, its neurons along `neuron`, its settings as attributes."""
    return runs_dataset(store, [run_id], on_run).isel(run=0, drop=True).assign_attrs(title=f"The run {run_id}")


class _Summary:
    """What the index says about the runs of a dataset, and which shape the arrays in their files have."""

    def __init__(self, store: Store, run_ids: Sequence[str], missing: Mapping[str, str]) -> None:
        self.store, self._missing = store, missing
        self.survey = Survey()
        self.runs: dict[str, _Run] = {}
        self._columns: dict[str, None] = dict.fromkeys(COLUMNS)
        trained: dict[tuple[int, ...], TrainingSpec] = {}  # one for each choice of measured steps
        alike: dict[tuple[Value, ...], str] = {}  # a finished run of each kind of network
        for run in entries(store, run_ids):
            fields = run.spec.settings()
            self.survey.add(fields)
            self.runs[run.run_id] = _Run(run, fields)
            self._columns |= dict.fromkeys(run.final or ())
            training = run.spec.training
            measured = (training.steps, training.measure_every, training.measure_per_decade)
            trained.setdefault(measured, training)
            if run.status == "finished":
                alike.setdefault(_network(fields), run.run_id)
        differing = self.survey.differing()
        for entry in self.runs.values():  # the others are the same everywhere, and there may be many runs
            entry.fields = {path: entry.fields[path] for path in differing if path in entry.fields}
        self._constants = self.survey.constants()
        steps = {step for training in trained.values() for step in training.measured_steps()}
        self.steps = np.array(sorted(steps), np.int64)
        self.neurons = max((_neuron_count(result) for result in store.load_all(alike.values())), default=0)

    @property
    def columns(self) -> list[str]:
        """The columns of the curves."""
        return [name for name in self._columns if name != "step"]

    def status(self, run_id: str) -> str:
        """What became of a run; of one that the index does not believe in, that it is damaged."""
        run = self.runs.get(run_id)
        return run.status if run else self._missing.get(run_id) or "damaged"

    def each(self, run_ids: npt.NDArray[Any], path: str) -> npt.NDArray[Any]:
        """The value of a field in every cell."""
        constant = self._constants.get(path)
        values = [run.fields.get(path, constant) if (run := self.runs.get(run_id)) else None for run_id in run_ids.flat]
        return _coordinate(path, values).reshape(run_ids.shape)

    def numbers(self, run_ids: npt.NDArray[Any], value: Callable[["_Run"], float | None]) -> FloatArray:
        """A number for every cell, NaN where there is none."""
        found = [value(run) if (run := self.runs.get(run_id)) else None for run_id in run_ids.flat]
        return np.array(found, np.float64).reshape(run_ids.shape)

    def finals(self, run_ids: npt.NDArray[Any], column: str) -> FloatArray:
        """A column of the last measured row of every cell."""
        return self.numbers(run_ids, lambda run: run.final.get(column))

    def texts(self, run_ids: npt.NDArray[Any], value: Callable[[str], str]) -> npt.NDArray[Any]:
        """A text for every cell."""
        return np.array([value(run_id) for run_id in run_ids.flat], dtype=str).reshape(run_ids.shape)


class _Run:
    """What a dataset keeps of the entry of a run."""

    def __init__(self, run: StoredRun, fields: dict[str, Value]) -> None:
        self.status, self.phase, self.fields = run.status, run.phase.value if run.phase else "", fields
        self.seconds, self.diverged_step, self.final = run.seconds, run.diverged_step, run.final or {}


class _Reader:
    """Reads the file of a run once, and keeps what a dataset needs of it."""

    def __init__(self, summary: _Summary, on_run: OnRun) -> None:
        self._store, self._steps, self._neurons = summary.store, summary.steps, summary.neurons
        self._read: dict[str, dict[str, FloatArray]] = {}
        self._on_run = on_run

    def numbers(self, name: str, run_id: str, length: int) -> FloatArray:
        """A column of the curve, or the IPR or Gini coefficients of the neurons."""
        if run_id not in self._read:
            result = next(self._store.load_all([run_id]), None)  # a damaged one is left out, with a warning
            self._read[run_id] = self._arrays(result) if result else {}
            self._on_run()
        return self._read[run_id].get(name, np.full(length, np.nan))

    def _arrays(self, result: RunResult) -> dict[str, FloatArray]:
        names = list(result.curve[0]) if result.curve else []
        curve = np.full((len(names), len(self._steps)), np.nan)
        places = np.searchsorted(self._steps, [row.step for row in result.curve])
        for column, name in zip(curve, names, strict=True):
            column[places] = [row[name] for row in result.curve]
        arrays: dict[str, FloatArray] = dict(zip(names, curve, strict=True))
        if result.neurons is not None:
            gini = result.neurons.gini.mean(axis=0, dtype=np.float64)
            for name, values in (("ipr", result.neurons.neuron_ipr), ("gini", gini)):
                arrays[name] = np.full(self._neurons, np.nan)
                arrays[name][: len(values)] = values
        return arrays


def _dataset(
    summary: _Summary,
    run_ids: npt.NDArray[Any],
    dimensions: Sequence[str],
    coordinates: Coordinates,
    variables: dict[str, Any],
    attributes: dict[str, Any],
    on_run: OnRun,
) -> "xr.Dataset":
    xarray = optional_module("xarray")
    from grokscope.exports.lazy import CellArray, lazy

    there = np.where(np.isin(run_ids, list(summary.runs)), run_ids, "")
    reader = _Reader(summary, on_run)

    def of_file(name: str, dimension: str, length: int, words: Words) -> Any:
        array = CellArray(there, length, lambda run_id: reader.numbers(name, run_id, length))
        return xarray.Variable([*dimensions, dimension], lazy(array), words._asdict())

    outcomes = {
        "run_id": there,
        "status": summary.texts(run_ids, summary.status),
        "phase": summary.texts(there, lambda run_id: summary.runs[run_id].phase if run_id else ""),
        "diverged_step": summary.numbers(there, lambda run: run.diverged_step),
        "seconds": summary.numbers(there, lambda run: run.seconds),
    }
    variables |= {name: (dimensions, values, _WORDS[name]._asdict()) for name, values in outcomes.items()}
    for name in summary.columns:
        words = words_for_column(name)
        last = Words(f"final {words.long_name}", f"{words.description} In the last measured row of the run.")
        variables[f"final_{name}"] = (dimensions, summary.finals(there, name), last._asdict())
    for name in summary.columns:
        variables[name] = of_file(name, "step", len(summary.steps), words_for_column(name))
    coordinates = coordinates | {"step": ("step", summary.steps, _WORDS["step"]._asdict())}
    if summary.neurons:
        coordinates["neuron"] = ("neuron", np.arange(summary.neurons), _WORDS["neuron"]._asdict())
        for name in ("ipr", "gini"):
            variables[name] = of_file(name, "neuron", summary.neurons, _WORDS[name])
    return xarray.Dataset(variables, coordinates, attributes)


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """What the fields are called in a dataset: without their section, unless that would mean two things."""
    paths = list(paths)
    often = Counter(path.partition(".")[2] for path in paths)
    taken = _RESERVED | set(COLUMNS)
    return {
        path: path.replace(".", "_") if often[field] > 1 or field in taken else field
        for path in paths
        for field in [path.partition(".")[2]]
    }


def _coordinate(path: str, values: Sequence[Value]) -> npt.NDArray[Any]:
    """The values of a field as an array of numbers, of true and false, or of texts; nothing is NaN or empty."""
    kind = declared_kind(path)
    for value in values:
        kind = common_kind(kind, value)
    if kind in (int, float) and None in values:
        return np.array(values, np.float64)
    if kind in (int, float) or (kind is bool and None not in values):
        return np.array(values, kind)
    return np.array(["" if value is None else str(value) for value in values], dtype=str)


def _attributes(fields: Mapping[str, Value]) -> dict[str, Value]:
    """As netCDF can keep them: without those that have no value, and true and false as texts."""
    return {
        path: str(value).lower() if isinstance(value, bool) else value
        for path, value in fields.items()
        if value not in (None, "")
    }


def _network(fields: Mapping[str, Value]) -> tuple[Value, ...]:
    """Equal for runs whose networks have as many neurons."""
    return tuple(value for path, value in fields.items() if path.startswith(("model.", "task.")) and path not in GRID)


def _neuron_count(result: RunResult) -> int:
    return 0 if result.neurons is None else result.neurons.ipr.shape[1]

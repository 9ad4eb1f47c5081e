"""Stores and sweeps as tables and labelled arrays: known values in, the same values out, read when asked for."""

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from tests.unit.test_store import as_ordinary_user

import grokscope as gs
from grokscope.errors import DamageWarning
from grokscope.exports import runs_dataset, write_csv, write_netcdf, write_parquet
from grokscope.exports.tables import AT_ONCE, curves_table, runs_table
from grokscope.measure import COLUMNS
from grokscope.sweeps.sweep import Sweep

TINY = gs.RunSpec(
    task=gs.TaskSpec(modulus=11), model=gs.ModelSpec(width=24), training=gs.TrainingSpec(steps=30, measure_every=10)
)
STEPS = [*range(1, 11), 20, 30]


@pytest.fixture(scope="module")
def trained() -> gs.RunResult:
    return gs.run(TINY)


def known(trained: gs.RunResult, spec: gs.RunSpec, number: float) -> gs.RunResult:
    """A run whose numbers say which run, column, step and neuron they belong to."""
    curve = tuple(
        gs.Row({name: step if name == "step" else number + place + step / 1000 for place, name in enumerate(COLUMNS)})
        for step in spec.training.measured_steps()
    )
    curve = tuple(gs.Row({**row, "dead_neurons": 3, "corrupted_accuracy": math.nan}) for row in curve)
    assert trained.neurons is not None
    width = spec.model.neuron_count
    ipr = np.tile(number + np.arange(width) / 1024, (3, 1))  # exact in float32
    neurons = gs.NeuronSpectra(ipr.astype(np.float32), (ipr / 2).astype(np.float32), np.zeros((3, width), np.int16))
    return replace(trained, spec=spec, curve=curve, neurons=neurons, ipr_history=None)


def filled(store: gs.Store, plan: gs.Plan, trained: gs.RunResult, leave_out: tuple[int, ...] = ()) -> None:
    """The runs of a plan, whose numbers are 100 times their places."""
    sweep = Sweep(plan, store)
    sweep.record()
    for place, spec in enumerate(sweep.specs):
        if place not in leave_out:
            store.save(known(trained, spec, 100 * place))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[gs.Store]:
    store = gs.Store(tmp_path / "store")
    yield store
    store.close()


GRID: dict[str, list[float]] = {
    "task.data_fraction": [0.3, 0.5, 0.7],
    "task.corruption": [0, 0.2],
    "optimizer.weight_decay": [0, 5],
}


@pytest.fixture
def swept(store: gs.Store, trained: gs.RunResult) -> gs.Store:
    """3 × 2 × 2 cells with 2 seeds: 24 runs, of which the second failed and the third is missing."""
    plan = gs.Plan.over(GRID, TINY, "mine").with_seeds(2)
    filled(store, plan, trained, leave_out=(1, 2))
    store.save_failure(list(plan.specs())[1], "ValueError: no", "Traceback …")
    return store


def place(fraction: int, corruption: int, decay: int, seed: int) -> int:
    """The first axis runs fastest."""
    return fraction + 3 * corruption + 6 * decay + 12 * seed


# ---- labelled arrays ------------------------------------------------------------------------------------------------


def test_a_sweep_over_its_axes(swept: gs.Store) -> None:
    data = gs.open(swept.path).sweep("mine").to_xarray()
    axes = ("data_fraction", "corruption", "weight_decay", "seed")
    assert dict(data.sizes) == dict(zip((*axes, "step", "neuron"), (3, 2, 2, 2, 12, 24), strict=True))
    assert data["test_accuracy"].dims == (*axes, "step")
    assert data["ipr"].dims == (*axes, "neuron")
    assert data["data_fraction"].values.tolist() == [0.3, 0.5, 0.7]
    assert data["corruption"].dtype == np.float64
    assert data["seed"].dtype == np.int64
    assert data["step"].values.tolist() == STEPS
    cell = data.sel(data_fraction=0.7, corruption=0.2, weight_decay=5, seed=1)
    number = 100 * place(2, 1, 1, 1)
    column = list(COLUMNS).index("test_accuracy")
    assert cell["test_accuracy"].values.tolist() == [number + column + step / 1000 for step in STEPS]
    assert cell["final_test_accuracy"] == number + column + 30 / 1000
    assert cell["ipr"].values.tolist() == [number + k / 1024 for k in range(24)]
    assert cell["gini"].values.tolist() == [number / 2 + k / 2048 for k in range(24)]
    assert cell["dead_neurons"].values.tolist() == [3] * 12
    assert np.isnan(cell["corrupted_accuracy"]).all()
    assert cell["phase"] == "memorization"
    spec = TINY.updated(
        {"task.data_fraction": 0.7, "task.corruption": 0.2, "optimizer.weight_decay": 5, "training.seed": 1}
    )
    assert cell["run_id"] == spec.run_id


def test_cells_without_a_run_are_empty(swept: gs.Store) -> None:
    data = gs.open(swept.path).sweep("mine").to_xarray()
    first = data.isel(corruption=0, weight_decay=0, seed=0)
    assert first["status"].values.tolist() == ["finished", "failed", "missing"]
    assert first["phase"].values.tolist() == ["memorization", "", ""]
    assert first["run_id"].values.tolist()[1:] == ["", ""]
    for name in ("test_accuracy", "ipr", "final_test_accuracy", "seconds"):
        there = ~np.isnan(first[name].values.reshape(3, -1)).any(axis=1)
        assert there.tolist() == [True, False, False], name


def test_everything_is_described_and_constants_are_attributes(swept: gs.Store) -> None:
    data = gs.open(swept.path).sweep("mine").to_xarray()
    for name, variable in data.variables.items():
        assert variable.attrs["long_name"], name
        assert variable.attrs["description"].endswith("."), name
    assert data["weight_decay"].attrs["field"] == "optimizer.weight_decay"
    assert data.attrs["sweep"] == "mine"
    assert (data.attrs["task.modulus"], data.attrs["model.width"]) == (11, 24)
    assert "task.corruption" not in data.attrs
    assert "training.batch_size" not in data.attrs  # it has no value


def test_nothing_is_read_but_what_is_looked_at(swept: gs.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = gs.Store.load

    def noted(self: gs.Store, run_id: str) -> gs.RunResult:
        read.append(run_id)
        return load(self, run_id)

    monkeypatch.setattr(gs.Store, "load", noted)
    view = gs.open(swept.path)
    assert len(view.runs) == 22
    assert "22 runs" in repr(view)
    data = view.sweep("mine").to_xarray()
    assert len(read) == 1  # to see how many neurons this network has
    read.clear()
    repr(data), data._repr_html_(), data["phase"].values, data["final_test_accuracy"].values
    chosen = data.sel(seed=1, weight_decay=5)["test_accuracy"].isel(corruption=[1], step=slice(0, 3))
    assert read == []
    values = chosen.sel(data_fraction=[0.3, 0.7]).values
    assert sorted(read) == sorted(data["run_id"].sel(seed=1, weight_decay=5, corruption=0.2).values[[0, 2]])
    assert values.shape == (2, 1, 3)
    assert values[:, 0, 0] == pytest.approx([100 * place(i, 1, 1, 1) + list(COLUMNS).index("test_accuracy") + 0.001
                                             for i in (0, 2)])  # fmt: skip
    read.clear()
    data.sel(seed=1, weight_decay=5, corruption=0.2, data_fraction=0.3)["mean_ipr"].load()
    assert read == []  # its file was read before, with all columns


def test_lazy_selection_is_the_selection_of_what_was_loaded(swept: gs.Store) -> None:
    """Slices, steps, single places, lists and masks, before and after loading."""
    whole = gs.open(swept.path).sweep("mine").to_xarray().load()
    for chosen in (
        {"seed": -1},
        {"data_fraction": slice(None, None, -1), "step": [3, 0, 7]},
        {"corruption": [1, 0], "weight_decay": 1, "step": -1},
        {"data_fraction": np.array([True, False, True]), "neuron": slice(2, 20, 5)},
        {"data_fraction": 0, "corruption": 0, "weight_decay": 0, "seed": 0, "step": 5, "neuron": 5},
        {"data_fraction": xr.DataArray([0, 1, 2], dims="pair"), "corruption": xr.DataArray([1, 0, 1], dims="pair")},
    ):
        lazily = gs.open(swept.path).sweep("mine").to_xarray().isel(chosen)
        xr.testing.assert_identical(lazily.load(), whole.isel(chosen))


def test_netcdf_keeps_values_types_and_attributes(swept: gs.Store, tmp_path: Path) -> None:
    data = gs.open(swept.path).sweep("mine").to_xarray()
    write_netcdf(tmp_path / "mine.nc", data)
    with xr.open_dataset(tmp_path / "mine.nc", engine="h5netcdf") as read:
        xr.testing.assert_identical(read.load(), data.load())
        assert read["seed"].dtype == np.int64
        assert read["test_accuracy"].dtype == np.float64
        result = swept.load(read["run_id"].values[2, 1, 1, 1])
        assert read["mean_ipr"].values[2, 1, 1, 1].tolist() == [row.mean_ipr for row in result.curve]
        assert result.neurons is not None
        assert read["ipr"].values[2, 1, 1, 1].tolist() == result.neurons.neuron_ipr.tolist()
    assert list(tmp_path.glob(".*")) == []


ODD: dict[str, Mapping[Any, Iterable[object]]] = {
    "texts": {"model.activation": ["quadratic", "relu"], "task.corruption": [0, 0.2]},
    "true and false, and nothing": {"training.batch_size": [None, 8], "optimizer.decay_embeddings": [True]},
    "two fields on one axis": {("model.width", "training.steps"): [(24, 30), (12, 50)]},
    "one axis": {"optimizer.weight_decay": [0, 0.5]},
    "seeds only": {"training.seed": [3, 5]},
    "lists": {"task.corrupted_operands": [(0, 1), (2,)]},
    "two kinds": {"task.corruption_kind": ["symmetric", "asymmetric"], "optimizer.kind": ["adamw", "sgd"]},
}


@pytest.mark.parametrize("axes", ODD.values(), ids=ODD.keys())
def test_odd_sweeps(
    store: gs.Store, trained: gs.RunResult, tmp_path: Path, axes: Mapping[Any, Iterable[object]]
) -> None:
    plan = gs.Plan.over(axes, TINY, "odd")
    filled(store, plan, trained)
    data = gs.open(store.path).sweep("odd").to_xarray()
    write_netcdf(tmp_path / "odd.nc", data)
    with xr.open_dataset(tmp_path / "odd.nc", engine="h5netcdf") as read:
        xr.testing.assert_identical(read.load(), data.load())
    for number in range(plan.size):
        cell = data.isel(dict(zip(data["phase"].dims, plan.indices(number), strict=True)))
        assert cell["final_train_loss"] == pytest.approx(100 * number + 1 + cell["step"].values[-1] / 1000, abs=0.021)
        assert float(cell["train_loss"].sel(step=1)) == 100 * number + 1 + 0.001


def test_the_coordinates_of_odd_sweeps(store: gs.Store, trained: gs.RunResult) -> None:
    def coordinates(axes: Mapping[Any, Iterable[object]]) -> xr.Dataset:
        filled(store, gs.Plan.over(axes, TINY, "odd"), trained)
        return gs.open(store.path).sweep("odd").to_xarray()

    data = coordinates(ODD["texts"])
    assert data["activation"].values.tolist() == ["quadratic", "relu"]
    data = coordinates(ODD["true and false, and nothing"])
    assert data["batch_size"].values.tolist() == pytest.approx([math.nan, 8], nan_ok=True)
    assert data["decay_embeddings"].values.tolist() == [True]
    data = coordinates(ODD["two fields on one axis"])
    assert data["train_loss"].dims == ("width_and_steps", "step")
    assert (data["width"].values.tolist(), data["steps"].values.tolist()) == ([24, 12], [30, 50])
    assert data["width"].dims == ("width_and_steps",)
    assert data["step"].values.tolist() == [*STEPS, 40, 50]
    assert np.isnan(data["train_loss"].isel(width_and_steps=0)).sum() == 2  # it has no steps 40 and 50
    assert np.isnan(data["ipr"].isel(width_and_steps=1)).values.tolist() == [False] * 12 + [True] * 12
    data = coordinates(ODD["lists"])
    assert data["corrupted_operands"].values.tolist() == ["0,1", "2"]
    data = coordinates(ODD["two kinds"])
    assert data["status"].dims == ("corruption_kind", "optimizer_kind")


def test_derived_fields_are_variables(store: gs.Store, trained: gs.RunResult) -> None:
    rule = {"optimizer.learning_rate": "0.01 * training.batch_size / 8"}
    plan = gs.Plan("derived", TINY, (gs.Axis.over("training.batch_size", [8, 16]),), rule)
    filled(store, plan, trained)
    data = gs.open(store.path).sweep("derived").to_xarray()
    assert data["learning_rate"].dims == ("batch_size",)
    assert data["learning_rate"].values.tolist() == [0.01, 0.02]
    assert "optimizer.learning_rate" not in data.attrs


def test_some_runs_in_a_row(swept: gs.Store) -> None:
    chosen = gs.open(swept.path).sweep("mine").where("task.corruption=0.2", "training.seed=1")
    data = chosen.to_xarray()
    assert dict(data.sizes) == {"run": 6, "step": 12, "neuron": 24}
    assert set(data.coords) == {"run", "data_fraction", "weight_decay", "step", "neuron"}
    assert data.attrs["task.corruption"] == 0.2
    assert data["data_fraction"].dims == ("run",)
    for run_id in data["run"].values:
        row = data.sel(run=run_id)
        assert row["mean_ipr"].values.tolist() == [r.mean_ipr for r in swept.load(run_id).curve]
        assert float(row["data_fraction"]) == swept.load(run_id).spec.task.data_fraction


def test_runs_of_several_networks(store: gs.Store) -> None:
    """Other widths, a task without waves, a measurement's missing column, and a run that diverged at once."""
    specs = [
        TINY,
        TINY.updated({"model.width": 8}),
        gs.RunSpec(task=gs.TaskSpec(kind="parity"), model=gs.ModelSpec(width=8), training=TINY.training),
        TINY.updated({"optimizer.learning_rate": 1e30, "training.steps": 5}),
        gs.RunSpec(task=TINY.task, model=gs.ModelSpec(kind="transformer", embed=8, heads=2), training=TINY.training),
    ]
    for spec in specs:
        store.save(gs.run(spec))
    data = runs_dataset(store, [spec.run_id for spec in specs])
    assert data["status"].values.tolist() == ["finished", "finished", "finished", "diverged", "finished"]
    assert data["phase"].values[3] == ""
    assert (~np.isnan(data["ipr"])).sum("neuron").values.tolist() == [24, 8, 0, 0, 8]
    assert data["width"].values.tolist() == pytest.approx([24, 8, 8, 24, math.nan], nan_ok=True)
    assert data["task_kind"].values.tolist() == ["modular", "modular", "parity", "modular", "modular"]


# ---- tables ---------------------------------------------------------------------------------------------------------


def test_the_table_of_runs(swept: gs.Store) -> None:
    frame = gs.open(swept.path).runs
    assert len(frame) == 22
    assert frame["phase"].dtype == "category"
    assert frame["training.seed"].dtype == np.int64
    assert frame["task.corruption"].dtype == np.float64
    assert frame["training.batch_size"].isna().all()
    row = frame[
        (frame["task.data_fraction"] == 0.7)
        & (frame["task.corruption"] == 0.2)
        & (frame["optimizer.weight_decay"] == 5)
        & (frame["training.seed"] == 1)
    ].iloc[0]
    assert row["test_accuracy"] == 100 * place(2, 1, 1, 1) + list(COLUMNS).index("test_accuracy") + 0.03
    assert gs.open(swept.path).where("training.seed=1").runs["training.seed"].tolist() == [1] * 12


def test_the_table_of_curves_has_what_tells_runs_apart(swept: gs.Store) -> None:
    frame = gs.open(swept.path).sweep("mine").curves
    assert len(frame) == 22 * 12
    assert list(frame.columns)[:5] == ["run_id", *GRID, "training.seed"]
    for run_id, curve in frame.groupby("run_id"):
        result = swept.load(str(run_id))
        assert curve["norm_w"].tolist() == [row.norm_w for row in result.curve]
        assert set(curve["task.corruption"]) == {result.spec.task.corruption}


def test_the_table_of_neurons(swept: gs.Store) -> None:
    frame = gs.open(swept.path).sweep("mine").neurons
    assert len(frame) == 22 * 24
    assert frame["frequency_u"].dtype == np.int64
    assert frame[frame["neuron"] == 5]["ipr_u"].min() == np.float32(5 / 1024)


def test_the_sweeps_of_a_store(swept: gs.Store) -> None:
    (row,) = gs.open(swept).sweeps.to_dict("records")
    assert (row["sweep"], row["cells"], row["done"]) == ("mine", 24, 22)
    assert row["fields"] == "task.data_fraction, task.corruption, optimizer.weight_decay, training.seed"


@pytest.mark.parametrize("make", [runs_table, curves_table])
def test_csv_and_parquet_say_the_same_as_pandas(swept: gs.Store, tmp_path: Path, make: object) -> None:
    assert callable(make)
    expected = make(swept, swept.ids()).to_pandas()
    write_csv(tmp_path / "table.csv", make(swept, swept.ids()))
    write_parquet(tmp_path / "table.parquet", make(swept, swept.ids()))
    from_parquet = pd.read_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(from_parquet, expected, check_dtype=False, check_categorical=False)
    kinds = make(swept, swept.ids()).kinds
    texts = {name: "str" for name, kind in kinds.items() if kind is str}
    from_csv = pd.read_csv(
        tmp_path / "table.csv", keep_default_na=False, na_values={n: [""] for n in kinds.keys() - texts}, dtype=texts
    )
    assert list(from_csv.columns) == list(expected.columns)
    for name in expected:
        wanted = expected[name].astype("str").fillna("") if name in texts else expected[name].astype(float)
        pd.testing.assert_series_equal(from_csv[name], wanted, check_dtype=False, check_exact=True)


def test_a_table_is_made_some_runs_at_a_time(
    store: gs.Store, trained: gs.RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grokscope.exports.tables.AT_ONCE", 4)
    filled(store, gs.Plan.over({"training.seed": range(10)}, TINY, "seeds"), trained)
    ids = gs.open(store.path).sweep("seeds").ids()
    parts = [len(part["run_id"]) for part in curves_table(store, ids).parts]
    assert parts == [4 * 12, 4 * 12, 2 * 12]
    assert AT_ONCE < 1000


def test_a_store_without_runs(store: gs.Store) -> None:
    store.make()
    view = gs.open(store.path)
    assert len(view.runs) == len(view.curves) == len(view.neurons) == len(view.sweeps) == 0
    assert "test_accuracy" in view.curves
    assert dict(view.to_xarray().sizes)["run"] == 0


# ---- what is damaged or not there -----------------------------------------------------------------------------------


def test_damaged_runs_are_left_out_and_said_so(swept: gs.Store) -> None:
    view = gs.open(swept.path)
    victim = view.sweep("mine").ids()[4]
    (file,) = (swept.path / "runs").glob(f"*/{victim}-*")
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.warns(DamageWarning, match=victim):
        assert victim not in set(view.curves["run_id"])
    assert victim in set(view.runs["run_id"])  # the index is sound
    data = view.sweep("mine").to_xarray()
    with pytest.warns(DamageWarning, match=victim):
        values = data["test_accuracy"].values
    assert np.isnan(values).all(axis=-1).sum() == 3  # this one, the failed one and the missing one
    assert np.isnan(data["mean_ipr"].values).all(axis=-1).sum() == 3  # said once


def test_a_damaged_entry_is_left_out_and_said_so(swept: gs.Store) -> None:
    victim = gs.open(swept.path).sweep("mine").ids()[4]
    swept._index.execute("UPDATE runs SET phase = 'confusion', seconds = 3 WHERE run_id = ?", (victim,))
    with pytest.warns(DamageWarning, match=victim):
        data = gs.open(swept.path).sweep("mine").to_xarray()
    assert (data["status"] == "damaged").sum() == 1
    with pytest.warns(DamageWarning, match=victim):
        assert len(gs.open(swept.path).runs) == 21


def test_sweeps_that_are_not_there(swept: gs.Store) -> None:
    with pytest.raises(gs.StoreError, match=r"no sweep 'mien'.*did you mean 'mine'"):
        gs.open(swept.path).sweep("mien")
    with pytest.raises(gs.GrokscopeError, match=r"\.sweep\(name\)\.where"):
        gs.open(swept.path).where("training.seed=1").sweep("mine")
    with pytest.raises(gs.StoreError, match="there is no store"):
        gs.open(swept.path / "nowhere")


READ_ONLY = """
import json, sys
import grokscope as gs
with gs.open(sys.argv[1]) as view:
    data = view.sweep("mine").to_xarray()
    print(json.dumps([len(view.runs), len(view.curves), float(data["mean_ipr"].max()), view.run(data["run_id"].values.flat[0]).run_id]))
"""  # noqa: E501


def test_a_store_that_may_only_be_read(swept: gs.Store) -> None:
    highest = float(gs.open(swept.path).sweep("mine").to_xarray()["mean_ipr"].max())
    first = gs.open(swept.path).sweep("mine").ids()[0]
    swept.close()
    before = {path: path.stat().st_mode for path in (swept.path, *swept.path.rglob("*"))}
    for path in before:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert json.loads(as_ordinary_user(READ_ONLY, str(swept.path))) == [22, 22 * 12, highest, first]
        assert {swept.path, *swept.path.rglob("*")} == set(before)
    finally:
        for path, mode in before.items():
            path.chmod(mode)


@pytest.mark.parametrize(("library", "view"), [("pandas", "runs"), ("pandas", "curves"), ("xarray", "to_xarray")])
def test_a_library_that_is_not_there_is_named(
    swept: gs.Store, library: str, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    opened = gs.open(swept.path)
    with pytest.raises(gs.GrokscopeError, match=rf"this needs {library}.*pip install 'grokscope\[export\]'"):
        opened.to_xarray() if view == "to_xarray" else getattr(opened, view)

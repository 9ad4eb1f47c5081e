"""Results as pictures, tables and labelled arrays."""

import base64
import math
import sys
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.figure import Figure

import grokscope as gs
from grokscope.store import CellOutcome
from grokscope.sweeps.diagram import assemble
from grokscope.tables import csv_text

PLAN = gs.Plan.over(
    {
        "task.data_fraction": [0.3, 0.6, 0.9],
        "task.corruption": [0, 0.2],
        ("model.width", "training.steps"): [(100, 500), (200, 900)],
        "optimizer.weight_decay": [0, 5],
    }
).with_seeds(2)


@pytest.fixture(scope="module")
def diagram() -> gs.PhaseDiagram:
    """Accuracies that say where a cell is; seeds disagree at the first place, and the last cell is missing."""
    places = []
    for place in range(PLAN.size):
        column, row, zipped, decay, seed = PLAN.indices(place)
        last = (column, row, zipped, decay) == (2, 1, 1, 1)
        outcome = "memorization" if place == 0 else "coexistence"
        accuracy = column + 10 * row + 100 * zipped + 1000 * decay
        places.append(
            CellOutcome(place, f"{place:016x}", *((None, None, None) if last else (outcome, accuracy, accuracy + seed)))
        )
    return assemble(PLAN, places, refined=False)


def png_in(html: str) -> bytes:
    return base64.b64decode(html.partition("base64,")[2].partition('"')[0])


# ---- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_shows_itself(tiny: gs.RunSpec) -> None:
    result = gs.run(tiny)
    row = result.final
    assert repr(result) == (
        f"<RunResult {result.run_id}: {result.outcome}, "
        f"train {row.train_accuracy:.3f}, test {row.test_accuracy:.3f} after 30 steps>"
    )
    assert isinstance(result.plot(), Figure)
    html = result._repr_html_()
    assert result.describe() in html
    assert png_in(html).startswith(b"\x89PNG")


@pytest.mark.parametrize("steps", [1, 5])
def test_a_run_that_diverged_shows_itself_too(tiny: gs.RunSpec, steps: int) -> None:
    result = gs.run(tiny.updated({"optimizer.learning_rate": 1e20, "training.steps": steps}))
    assert "Diverged" in repr(result)
    assert "Diverged" in result._repr_html_()


def test_a_run_that_was_never_measured(tiny: gs.RunSpec) -> None:
    nothing = replace(gs.run(tiny), curve=(), neurons=None, phase=None, status="diverged", diverged_step=1)
    assert repr(nothing) == f"<RunResult {nothing.run_id}: Diverged>"
    assert "step 1 is not a finite number" in nothing._repr_html_()
    assert len(nothing.to_pandas()) == 0
    assert "test_accuracy" in nothing.to_pandas()


def test_a_curve_as_a_table(tiny: gs.RunSpec) -> None:
    result = gs.run(tiny)
    frame = result.to_pandas()
    assert list(frame["step"]) == [row.step for row in result.curve]
    assert frame.to_dict("records") == [dict(row) for row in result.curve]


# ---- diagrams -------------------------------------------------------------------------------------------------------


def test_a_diagram_shows_itself(diagram: gs.PhaseDiagram) -> None:
    assert repr(diagram) == f"<PhaseDiagram {PLAN.name}, 3 × 2 cells in 4 panels: 23 run, 1 missing>"
    assert isinstance(diagram.plot(), Figure)
    html = diagram._repr_html_()
    assert PLAN.name in html
    assert png_in(html).startswith(b"\x89PNG")


def test_a_diagram_that_is_too_large_for_a_picture_says_so() -> None:
    plan = gs.Plan.over({"task.data_fraction": [0.5], "task.corruption": [0], "model.width": range(1, 60)})
    html = assemble(
        plan, [CellOutcome(i, f"{i:016x}", None, None, None) for i in range(59)], refined=False
    )._repr_html_()
    assert "59 panels" in html
    assert "at most 48" in html


def test_a_diagram_as_a_table(diagram: gs.PhaseDiagram) -> None:
    frame = diagram.to_pandas()
    assert len(frame) == 24
    first, last = frame.iloc[0], frame.iloc[-1]
    assert (first["task.data_fraction"], first["source"], first["runs"]) == (0.3, "run", 2)
    assert first["coexistence"] == first["memorization"] == 0.5
    assert last["source"] == "missing"
    assert math.isnan(last["test_accuracy"])
    assert math.isnan(last["coexistence"])
    wide = frame[frame["model.width"] == 200]
    assert set(wide["training.steps"]) == {900}
    assert (wide["train_accuracy"].dropna() % 1000 >= 100).all()


def test_a_diagram_as_labelled_arrays(diagram: gs.PhaseDiagram) -> None:
    data = diagram.to_xarray()
    zipped = "model.width and training.steps"
    assert data["test_accuracy"].dims == ("optimizer.weight_decay", zipped, "task.corruption", "task.data_fraction")
    place = {"optimizer.weight_decay": 5, "task.corruption": 0.2, "task.data_fraction": 0.6}
    assert data["train_accuracy"].sel(place).isel({zipped: 0}) == 1 + 10 + 1000
    assert data["train_accuracy"].sel(place).isel({zipped: 1}) == 1 + 10 + 100 + 1000
    assert data["test_accuracy"].sel(place).isel({zipped: 0}) == 1011.5  # the mean over the seeds
    assert list(data["model.width"].values) == [100, 200]
    assert list(data["training.steps"].values) == [500, 900]
    corner = data.isel(dict.fromkeys(data["runs"].dims, 0))
    assert corner["probability"].sel(phase="memorization") == 0.5
    assert corner["outcome"] == "coexistence"
    end = data.isel(dict.fromkeys(data["runs"].dims, -1))
    assert (end["source"].item(), end["outcome"].item(), end["runs"].item()) == ("missing", "", 0)
    assert math.isnan(end["test_accuracy"])


def test_a_diagram_of_one_axis(tiny: gs.RunSpec) -> None:
    plan = gs.Plan.over({"training.seed": [3, 4]}, tiny)
    places = [CellOutcome(i, f"{i:016x}", "confusion", 0.5, 0.1) for i in range(2)]
    data = assemble(plan, places, refined=False).to_xarray()
    assert data["runs"].dims == ("training.seed",)
    assert list(data["training.seed"].values) == [3, 4]


# ---- networks that are taken apart ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def periodic() -> dict[str, npt.NDArray[np.float32]]:
    """The analytic network, with one neuron removed."""
    return gs.pruned(gs.MLP(width=60), gs.analytic_weights(modulus=11, width=60), [7])


def test_neurons_show_their_spectra(periodic: dict[str, npt.NDArray[np.float32]]) -> None:
    spectra = gs.neuron_spectra(gs.MLP(width=60), periodic, gs.TaskSpec(modulus=11))
    assert spectra is not None
    frame = spectra.to_pandas()
    assert list(frame["neuron"]) == list(range(60))
    assert list(np.flatnonzero(frame["dead"])) == [7]
    assert frame["ipr"].dropna().to_numpy() == pytest.approx(1, abs=1e-5)
    assert math.isnan(frame["ipr"][7])
    assert list(frame["frequency_u"]) == spectra.frequency[0].tolist()
    assert isinstance(spectra.plot(), Figure)


def test_neurons_show_their_waves(periodic: dict[str, npt.NDArray[np.float32]]) -> None:
    waves = gs.neuron_waves(gs.MLP(width=60), periodic, gs.TaskSpec(modulus=11))
    frame = waves.to_pandas()
    alive = frame[~frame["dead"]]
    assert (alive["frequency"] == alive["frequency_w"]).all()
    assert alive[alive["frequency"] == 0]["phase_u"].isna().all()  # a constant has no phase
    waving = alive[alive["frequency"] > 0]
    relation = waving["phase_u"] + waving["phase_v"] - waving["phase_w"]
    assert np.cos(relation.to_numpy()) == pytest.approx(1, abs=1e-6)  # Equation 2
    assert np.cos(waving["residual"].to_numpy()) == pytest.approx(1, abs=1e-6)
    assert isinstance(waves.plot(), Figure)


@pytest.mark.parametrize("corruption", [0.0, 0.25, 1.0])
def test_pruning_as_a_picture_and_a_table(corruption: float) -> None:
    weights = gs.analytic_weights(modulus=11, width=60)
    dataset = gs.make_dataset(gs.TaskSpec(modulus=11, data_fraction=0.5, corruption=corruption))
    pruning = gs.measure_pruning(weights, gs.ModelSpec(width=60), dataset)
    assert pruning.corruption == pytest.approx(dataset.corrupted.mean())
    frame = pruning.to_pandas()
    assert set(frame["order"]) == {"lowest_ipr", "highest_ipr", "norm", "random"}
    lowest = frame[frame["order"] == "lowest_ipr"]
    assert list(lowest["pruned"]) == list(range(61))
    assert list(lowest["test_accuracy"]) == pruning.orders["lowest_ipr"].test_accuracy.tolist()
    assert lowest["test_accuracy_low"].isna().all()
    chosen = frame[frame["order"] == "random"]
    assert (chosen["test_accuracy_low"] <= chosen["test_accuracy_high"]).all()
    assert isinstance(pruning.plot(), Figure)


# ---- tables ---------------------------------------------------------------------------------------------------------


def test_csv_has_names_and_rows_and_nothing_where_there_is_nothing() -> None:
    assert csv_text({"k": [1, 2], "name": ["a", None]}) == "k,name\n1,a\n2,\n"
    assert csv_text({"k": []}) == "k\n"


@pytest.mark.parametrize("library", ["pandas", "xarray"])
def test_a_library_that_is_not_there_is_named(
    diagram: gs.PhaseDiagram, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    export = diagram.to_pandas if library == "pandas" else diagram.to_xarray
    with pytest.raises(gs.GrokscopeError, match=rf"this needs {library}.*pip install 'grokscope\[export\]'"):
        export()

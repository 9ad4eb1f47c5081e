"""The commands spectrum and logits, and their pictures."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.processes import grokscope

from grokscope import GrokscopeError, RunSpec, Store, initial_weights, measure_logits, neuron_waves, run
from grokscope.cli.commands import loaded
from grokscope.cli.logits import logits
from grokscope.cli.spectrum import spectrum
from grokscope.measure import logits_of, output_waves
from grokscope.plots import draw_logits, draw_spectrum
from grokscope.result import RunResult, analytic_result

NETWORKS: dict[str, dict[str, object]] = {
    "two-layer": {},
    "norm": {"model.norm": "batch"},
    "deep": {"model.depth": 3},
    "transformer": {"model.kind": "transformer", "model.embed": 16},
    "tied": {"model.kind": "transformer", "model.embed": 16, "model.tie_weights": True},
    "composite": {"task.operation": "multiply", "task.modulus": 15},
    "squares": {"task.operation": "x2+y2"},
    "clean": {"task.corruption": 0.0},
    "all corrupted": {"task.corruption": 1.0},
    "dead": {"optimizer.weight_decay": 40.0, "training.steps": 1000},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module", params=NETWORKS)
def network(request: pytest.FixtureRequest, store: Path) -> RunResult:
    """Each kind, in the store."""
    small: dict[str, object] = {"task.modulus": 11, "model.width": 24, "training.steps": 10}
    if "model.kind" in NETWORKS[request.param]:
        del small["model.width"]
    result = run(RunSpec().updated(small | NETWORKS[request.param]))
    Store(store).save(result, weights=True)
    return result


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def reject(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")


def test_every_network_has_a_spectrum(
    network: RunResult, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spectrum(network.run_id, None, None, store, as_json=True)
    content = json.loads(capsys.readouterr().out, parse_constant=reject)
    assert content["run_id"] == network.run_id
    neurons = network.neurons
    assert neurons is not None
    N = len(neurons.dead)
    assert len(content["ipr"]) == len(content["frequency"]) == len(content["residual"]) == N
    assert [value is None for value in content["ipr"]] == neurons.dead.tolist()
    assert (content["dead_neurons"] == N) == (network.spec.optimizer.weight_decay > 0)
    assert sum(row["neurons"] for row in content["counts"]) == N - content["dead_neurons"]
    assert (content["mean_residual"] is None) == all(value is None for value in content["residual"])
    outputs = output_waves(network.spec.model, network.trained_weights(), network.spec.task)
    assert (content["outputs"] is None) == (outputs is None)

    table, picture = tmp_path / "neurons.csv", tmp_path / "spectrum.png"
    spectrum(network.run_id, [table, picture], "0,7", store)
    words = capsys.readouterr().out
    assert "nan" not in words.lower()
    assert picture.stat().st_size > 10_000
    rows = read(table)
    assert len(rows) == N + (len(content["outputs"]["ipr"]) if content["outputs"] else 0)
    assert [float(row["ipr"]) if row["ipr"] else None for row in rows[:N]] == content["ipr"]
    assert not any(value.lower() == "nan" for row in rows for value in row.values())
    assert all(bool(row["norm_scale"]) == (neurons.norm_scale is not None) for row in rows[:N])


def test_every_network_has_logits(
    network: RunResult, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logits(network.run_id, None, None, store, as_json=True)
    content = json.loads(capsys.readouterr().out, parse_constant=reject)
    dataset = network.dataset()
    assert (content["margins"]["corrupted"] is None) == (not dataset.corrupted.any())
    assert (content["margins"]["clean"] is None) == bool(dataset.corrupted.all())
    for example in content["examples"]:
        assert example["label"] != example["truth"]
        assert len(example["logits"]) == dataset.classes
        assert example["logits"][example["truth"]] == pytest.approx(example["logit_truth"], abs=1e-5)

    table, picture = tmp_path / "examples.csv", tmp_path / "logits.png"
    logits(network.run_id, [table, picture], None, store)
    words = capsys.readouterr().out
    assert ("has no corrupted examples" in words) == (not dataset.corrupted.any())
    assert picture.stat().st_size > 10_000
    rows = read(table)
    assert [row["set"] for row in rows].count("test") == len(dataset.test_labels)
    assert [int(row["corrupted"]) for row in rows[: len(dataset.corrupted)]] == dataset.corrupted.astype(int).tolist()
    agreed = [row["predicted"] == row["label"] for row in rows if row["set"] == "train"]
    assert np.mean(agreed) == pytest.approx(network.final.train_accuracy, abs=1 / len(agreed))


def test_weights_before_training_are_those_it_started_from(
    tiny: RunSpec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(tiny.updated({"training.seed": 5}))
    Store(tmp_path).save(result, weights=True)
    spectrum(result.run_id, None, "9", tmp_path, as_json=True)
    (shown,) = json.loads(capsys.readouterr().out)["weights"]
    started = initial_weights(tiny.model, 11, seed=5)
    assert shown["neuron"] == 9
    np.testing.assert_allclose(shown["before"]["v"], started["V"][9], rtol=1e-6)
    np.testing.assert_allclose(shown["after"]["w"], result.trained_weights()["W"][:, 9], rtol=1e-6)


def test_the_analytic_network_as_a_command(tmp_path: Path) -> None:
    done = grokscope("spectrum", "analytic:23:60", "--json", cwd=tmp_path)
    content = json.loads(done.stdout)
    assert content["run_id"] == "analytic:23:60"
    assert content["agreement"] == 1
    assert content["mean_residual"] < 1e-6
    assert content["weights"][0]["before"] is None
    assert done.stderr == ""
    drawn = grokscope("logits", "analytic:23:60", "--examples", "0,5", cwd=tmp_path)
    picture = tmp_path / "grokscope-figures" / "analytic-23-60-logits.png"
    assert f"Figure: {picture}" in drawn.stdout
    assert picture.exists()


def test_an_error_is_one_line_and_status_2(tmp_path: Path) -> None:
    done = grokscope("spectrum", "analytic:11:20", "--neurons", "20", cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "grokscope: --neurons = '20' is not allowed: the neurons are 0 … 19\n"
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_shown_is_refused(tiny: RunSpec, tmp_path: Path) -> None:
    clean = run(tiny.updated({"task.corruption": 0.0}))
    Store(tmp_path).save(clean, weights=True)
    with pytest.raises(GrokscopeError, match="has no corrupted examples"):
        logits(clean.run_id, None, "0", tmp_path)
    with pytest.raises(GrokscopeError, match="the corrupted examples are 0 … 20"):
        logits("analytic:11:20", None, "-1", tmp_path)
    with pytest.raises(GrokscopeError, match="must be whole numbers such as 0,7"):
        logits("analytic:11:20", None, "one", tmp_path)
    with pytest.raises(GrokscopeError, match="--json writes no files"):
        spectrum(clean.run_id, [Path("a.csv")], None, tmp_path, as_json=True)
    with pytest.raises(GrokscopeError, match="at most 6"):
        spectrum(clean.run_id, None, "0,1,2,3,4,5,6", tmp_path)


def test_the_picture_of_a_spectrum_holds_its_numbers(tiny: RunSpec) -> None:
    result = run(tiny)
    weights = result.trained_weights()
    waves = neuron_waves(tiny.model, weights, tiny.task)
    before = initial_weights(tiny.model, 11)
    figure = draw_spectrum(result, [3, 5])
    panels = {axes.get_title() or axes.get_title(loc="left") or axes.get_ylabel(): axes for axes in figure.axes}
    power = np.asarray(panels["Fourier power of the neurons"].images[0].get_array())
    assert sorted(power.max(axis=1)) == pytest.approx(sorted(waves.power.max(axis=1)))
    assert (np.diff(power.argmax(axis=1)) >= 0).all()
    bars: Any = panels["Neurons for each frequency"].patches[: waves.power.shape[1]]
    assert [bar.get_height() for bar in bars] == waves.counts().tolist()
    earlier, later = panels["Rows of U"].lines
    np.testing.assert_array_equal(np.asarray(earlier.get_ydata()), before["U"][3])
    np.testing.assert_array_equal(np.asarray(later.get_ydata()), weights["U"][3])
    np.testing.assert_allclose(
        np.asarray(panels["Mean IPR over time"].lines[0].get_ydata(), float), [row.mean_ipr for row in result.curve]
    )


def test_the_picture_of_logits_marks_both_labels() -> None:
    result = analytic_result(11, 50)
    table = measure_logits(result.module(), result.dataset())
    shown = np.flatnonzero(table.corrupted & (table.label != table.truth))[:6]
    values = logits_of(result.module(), table.pairs[shown])
    figure = draw_logits(result, table, shown, values)
    for k, row, axes in zip(shown, values, figure.axes[:6], strict=True):
        line, truth, label = axes.lines
        np.testing.assert_array_equal(np.asarray(line.get_ydata()), row)
        assert truth.get_xydata().tolist() == [[table.truth[k], row[table.truth[k]]]]  # type: ignore[union-attr]
        assert label.get_xydata().tolist() == [[table.label[k], row[table.label[k]]]]  # type: ignore[union-attr]


PAGE = (Path(__file__).parents[2] / "docs" / "spectra.md").read_text(encoding="utf-8")


def test_flags_and_columns_named_in_the_page_exist(
    tiny: RunSpec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {flag for name in ("train", "spectrum", "logits") for p in loaded(name).params for flag in p.opts}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= known
    result = run(tiny)
    Store(tmp_path).save(result, weights=True)
    columns = []
    for command in (spectrum, logits):
        command(result.run_id, [tmp_path / "t.csv"], None, tmp_path)
        columns += [*read(tmp_path / "t.csv")[0]]
    capsys.readouterr()
    cells = re.findall(r"^\| (`.*?) \|", PAGE, flags=re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(cells))) <= set(columns)


def test_python_in_the_page_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["1.0 True", "49"]


def test_a_spectrum_needs_only_its_run(tiny: RunSpec) -> None:
    result = run(tiny)
    waves = neuron_waves(tiny.model, result.trained_weights(), tiny.task)
    ipr = waves.spectra.neuron_ipr
    assert waves.extremes() == [int(np.argmax(ipr)), int(np.argmin(ipr))]
    titles = [axes.get_title() or axes.get_title(loc="left") for axes in draw_spectrum(result).axes]
    assert titles == [axes.get_title() or axes.get_title(loc="left") for axes in draw_spectrum(result, [3, 5]).axes]

"""`grokscope prune` as a user types it, and what it draws."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.integration.processes import grokscope

from grokscope import RunResult, RunSpec, Store, measure_pruning, neuron_spectra, pruned, run
from grokscope.plots import draw_pruning

LISTS = {
    "fraction_pruned", "train_accuracy", "test_accuracy", "corrupted_accuracy", "clean_accuracy", "recovered_accuracy",
    "train_loss", "test_loss",
}  # fmt: skip
BAND = {f"{name}_{edge}" for name in LISTS - {"fraction_pruned"} for edge in ("low", "high")}


def stored(spec: RunSpec, directory: Path) -> RunResult:
    result = run(spec)
    Store(directory / "grokscope-runs").save(result, weights=True)
    return result


def test_prune_prints_one_json_object(tiny: RunSpec, tmp_path: Path) -> None:
    result = stored(tiny.updated({"model.norm": "batch"}), tmp_path)
    done = grokscope("prune", result.run_id[:6], "--random-orders", "3", "--seed", "2", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["run_id"] == result.run_id
    assert (found["random_orders"], found["seed"], found["band_percentiles"]) == (3, 2, [5, 95])
    assert list(found["orders"]) == ["lowest_ipr", "highest_ipr", "norm", "norm_scale", "random"]
    assert found["prunable"].keys() == found["orders"].keys()
    for name, lists in found["orders"].items():
        assert lists.keys() == LISTS | (BAND if name == "random" else set())
        assert all(len(values) == 25 for values in lists.values())
        assert lists["fraction_pruned"] == pytest.approx([count / 24 for count in range(25)])
        # Nothing pruned is the network that the run measured last.
        assert lists["test_accuracy"][0] == pytest.approx(result.final.test_accuracy)
        assert lists["corrupted_accuracy"][0] == pytest.approx(result.final.corrupted_accuracy)
        assert lists["test_loss"][0] == pytest.approx(result.final.test_loss, rel=1e-4)
        number = found["prunable"][name]["number"]
        assert found["prunable"][name]["fraction"] == pytest.approx(number / 24)
        assert lists["test_accuracy"][number] >= lists["test_accuracy"][0] - 0.01 - 1e-9
        assert all(value < lists["test_accuracy"][0] - 0.01 for value in lists["test_accuracy"][number + 1 :])
    assert not (tmp_path / "grokscope-figures").exists()


def test_prune_in_words_writes_pictures_and_tables(tiny: RunSpec, tmp_path: Path) -> None:
    result = stored(tiny, tmp_path)
    done = grokscope("prune", result.run_id, "--random-orders", "2", cwd=tmp_path)
    for words in ("24 neurons", "lowest IPR first", "random order (mean of 2)"):
        assert words in done.stdout
    assert "|γ|" not in done.stdout
    assert (tmp_path / "grokscope-figures" / f"{result.run_id}-prune.png").exists()
    grokscope("prune", result.run_id, "--random-orders", "2", "--out", "t.csv", "--out", "f.svg", cwd=tmp_path)
    assert (tmp_path / "f.svg").exists()
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 25
    assert [int(row["pruned"]) for row in rows[:25]] == list(range(25))
    assert {row["order"] for row in rows} == {"lowest_ipr", "highest_ipr", "norm", "random"}
    assert all((row["test_accuracy_low"] == "") == (row["order"] != "random") for row in rows)
    assert float(rows[0]["test_accuracy"]) == pytest.approx(result.final.test_accuracy)


def test_what_does_not_exist_is_null_or_said(tiny: RunSpec, tmp_path: Path) -> None:
    whole = run(tiny.updated({"task.corruption": 0.0}))
    weights = pruned(whole.spec.model, whole.trained_weights(), [1, 5, 6])
    neurons = neuron_spectra(whole.spec.model, weights, whole.spec.task)
    clean = replace(whole, weights=weights, neurons=neurons)
    Store(tmp_path / "grokscope-runs").save(clean, weights=True)
    found = json.loads(grokscope("prune", clean.run_id, "--random-orders", "1", "--json", cwd=tmp_path).stdout)
    assert set(found["orders"]["random"]["corrupted_accuracy_low"]) == {None}
    assert set(found["orders"]["norm"]["recovered_accuracy"]) == {None}
    done = grokscope("prune", clean.run_id, "--random-orders", "1", "--out", "f.pdf", cwd=tmp_path)
    assert "No label is corrupted" in done.stdout
    assert "24 neurons, 3 of them dead" in done.stdout


@pytest.mark.parametrize(
    ("fields", "arguments", "message"),
    [
        ({"model.depth": 3}, (), "3-layer relu 24): pruning is defined here for two-layer networks"),
        ({}, ("--random-orders", "0"), "--random-orders"),
        ({}, ("--out", "a.xls"), "must end in .png, .pdf, .svg or .csv"),
    ],
)
def test_errors_are_one_line(
    tiny: RunSpec, tmp_path: Path, fields: dict[str, int], arguments: tuple[str, ...], message: str
) -> None:
    result = stored(tiny.updated(fields), tmp_path)
    done = grokscope("prune", result.run_id, *arguments, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("fields", "panels"), [({}, 4), ({"model.norm": "layer"}, 5), ({"task.corruption": 0.0}, 4)])
def test_a_panel_for_each_order(tiny: RunSpec, fields: dict[str, object], panels: int) -> None:
    result = run(tiny.updated(fields))
    pruning = measure_pruning(result.trained_weights(), result.spec.model, result.dataset(), random_orders=2)
    corruption = result.dataset().corruption
    figure = draw_pruning(pruning, corruption, "title")
    figure.canvas.draw()
    assert len(figure.axes) == panels
    for axes, curve in zip(figure.axes, pruning.orders.values(), strict=True):
        drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in axes.lines}
        np.testing.assert_array_equal(drawn["test"], curve.test_accuracy)
        assert ("corrupted: as trained" in drawn) == bool(corruption)
        assert any((np.asarray(line.get_ydata()) == 1 - corruption).all() for line in axes.lines)
    assert [len(axes.collections) > 0 for axes in figure.axes] == [False] * (panels - 1) + [True]


def test_the_page_on_pruning(tmp_path: Path) -> None:
    """Its Python runs, its flags exist, and it explains every column."""
    page = (Path(__file__).parents[2] / "docs" / "pruning.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
    shown = grokscope("train", "--help", cwd=tmp_path).stdout + grokscope("prune", "--help", cwd=tmp_path).stdout
    for flag in set(re.findall(r"--[a-z][a-z-]+", page)):
        assert flag in shown
    for column in LISTS | {"pruned", "number_throughout", "fraction_throughout"}:
        assert f"`{column}`" in page

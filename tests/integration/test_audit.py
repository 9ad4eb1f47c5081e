"""`grokscope audit`: of one network and of a sweep."""

import csv
import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from tests.integration.processes import grokscope

from grokscope import GrokscopeError, RunSpec, Store, audit_labels, audit_sweep, run
from grokscope.cli import main
from grokscope.plots import draw_audit, draw_audit_map
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan


def stored(spec: RunSpec, path: Path) -> str:
    result = run(spec)
    Store(path).save(result, weights=True)
    return result.run_id


class Done(NamedTuple):
    """What a command leaves behind."""

    status: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, where torch is loaded already; the working directory is the temporary one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # which the command changes

    def called(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["grokscope", "audit", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(int(ended.value.code or 0), *capsys.readouterr())

    return called


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_prints_draws_and_writes(tmp_path: Path) -> None:
    """In a process of its own."""
    shown = grokscope("audit", "analytic:31:200", "--top", "3", "--out", "a.png", "--out", "a.csv", cwd=tmp_path).stdout
    assert "161 of 480 training labels are wrong. Of 168 corrupted ones 7 were drawn right by chance." in shown
    assert "none of 200 live neurons" in shown
    assert (tmp_path / "a.png").stat().st_size > 10_000
    rows = rows_of(tmp_path / "a.csv")
    assert len(rows) == 480
    for row in rows:
        truth = (int(row["m"]) + int(row["n"])) % 31
        assert int(row["truth"]) == int(row["predicted"]) == truth
        assert row["wrong"] == str(int(int(row["label"]) != truth))
    ranked = sorted(rows, key=lambda row: int(row["rank"]))
    assert [row["wrong"] for row in ranked] == ["1"] * 161 + ["0"] * 319
    assert sorted(rows, key=lambda row: -float(row["pruned_margin"]))[0] == ranked[0]
    top = shown.split("The most suspicious by pruned_margin:\n")[1].splitlines()[1]
    assert top.split()[:4] == ["1", ranked[0]["m"], ranked[0]["n"], ranked[0]["label"]]


def test_json_is_one_object_and_nothing_else(tmp_path: Path, tiny: RunSpec, audit: Command) -> None:
    run_id = stored(tiny.updated({"task.corruption": 0.0}), tmp_path / "store")
    done = audit(run_id[:6], "--store", "store", "--json", "--top", "2")
    content = json.loads(done.stdout, parse_constant=pytest.fail)
    assert content["run_id"] == run_id
    assert (content["wrong"], content["corrupted"], content["drawn_right"]) == (0, 0, 0)
    assert content["scores"]["margin"]["auroc"] is None  # there is nothing to find
    assert [example["rank"] for example in content["top"]] == [1, 2]
    assert content["prune"]["rule"] == "auto"
    assert list(tmp_path.iterdir()) == [tmp_path / "store"]  # nothing is drawn


def test_what_does_not_exist_is_said(tmp_path: Path, tiny: RunSpec, audit: Command) -> None:
    store = tmp_path / "store"
    deep, clean = stored(tiny.updated({"model.depth": 3}), store), stored(tiny.updated({"task.corruption": 0.0}), store)
    said = audit(deep, "--store", "store").stdout
    assert "No pruned scores: they need a two-layer network, and this is a 3-layer relu 24." in said
    assert (tmp_path / "grokscope-figures" / f"{deep}-audit.png").exists()
    said = audit(clean, "--store", "store", "--prune", "none").stdout
    assert "there is nothing to find" in said
    assert "No pruned scores: --prune none." in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either a run"),
        (["analytic", "--sweep", "fig3a"], "either a run"),
        (["analytic", "--prune", "most"], "must be auto, none, a fraction"),
        (["analytic", "--baseline", "guess"], "must be cleanlab"),
        (["analytic", "--out", "a.gif"], "must end in .png"),
        (["--sweep", "fig3a", "--top", "5"], "--top is for a single run"),
        (["--sweep", "fig3a"], "there is no store"),
    ],
)
def test_errors_are_one_line(audit: Command, arguments: list[str], words: str) -> None:
    done = audit(*arguments)
    assert done.status == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


PLAN = Plan(
    "mine",
    RunSpec().updated({"task.modulus": 11, "model.width": 24, "training.steps": 30, "training.measure_every": 10}),
    (
        Axis(("task.data_fraction",), ((0.5,), (0.8,))),
        Axis(("task.corruption",), ((0.0,), (0.3,), (0.6,))),
        Axis(("training.seed",), ((0,), (1,))),
    ),
)


def recorded(path: Path, *, weights: bool = True) -> Store:
    """A sweep of 12 runs: 9 with weights, one without, one diverged and one not run."""
    store = Store(path)
    specs = list(PLAN.specs())
    diverging = specs[3].updated({"optimizer.learning_rate": 1e20})
    specs[3] = diverging
    store.record_sweep(PLAN.name, PLAN.to_dict(), [spec.run_id for spec in specs], refined=False)
    for place, spec in enumerate(specs[:-1]):
        store.save(run(spec), weights=weights and place != 5)
    return store


def test_a_sweep_is_audited_where_there_are_weights(tmp_path: Path) -> None:
    store, heard = recorded(tmp_path), []
    found = audit_sweep(store, "mine", on_run=lambda done, total: heard.append((done, total)))
    assert heard == [(done, 12) for done in range(1, 13)]
    reasons = {run.place: run.reason for run in found.runs if run.reason}
    assert reasons == {3: "diverged", 5: "no stored weights", 11: "not run yet"}
    means = found.mean("auroc", "margin")
    assert means.shape == (1, 3, 2)
    assert np.isnan(means[0, 0]).all()  # ξ = 0: nothing to find
    for place, own in enumerate(found.runs):
        if own.reason:
            continue
        result = store.load(own.run_id)
        expected = audit_labels(result.spec, result.trained_weights(), result.dataset())
        assert own.scores == {name: score.metrics() for name, score in expected.scores.items()}
        assert (own.examples, own.wrong) == (len(expected.wrong), expected.wrong.sum())
        column, row, seed = PLAN.indices(place)
        other = found.runs[place + (6 if seed == 0 else -6)]  # the same cell with the other seed
        both = [run.scores["margin"]["auroc"] for run in (own, other) if run.scores]
        if row:
            assert means[0, row, column] == pytest.approx(np.mean([value for value in both if value is not None]))


def test_the_table_and_the_picture_of_a_sweep(tmp_path: Path, audit: Command) -> None:
    recorded(tmp_path / "store").close()
    done = audit("--sweep", "mine", "--store", "store", "--out", "map.png", "--out", "map.csv")
    assert "9 of 12 runs audited" in done.stdout
    assert ": 12 of 12" in done.stderr
    assert "Not audited: 1 runs, no stored weights" in done.stderr
    rows = rows_of(tmp_path / "map.csv")
    assert len(rows) == 12
    assert [float(row["task.data_fraction"]) for row in rows[:3]] == [0.5, 0.8, 0.5]
    assert rows[0]["auroc_margin"] == rows[5]["auroc_margin"] == ""
    assert 0 <= float(rows[2]["r_precision_pruned_margin"]) <= 1
    content = audit("--sweep", "mine", "--store", "store", "--json").stdout
    listed = json.loads(content, parse_constant=pytest.fail)["runs"]
    assert listed[2]["auroc_margin"] == float(rows[2]["auroc_margin"])
    assert listed[0]["auroc_margin"] is None

    found = audit_sweep(Store(tmp_path / "store"), "mine")
    figure = draw_audit_map(found)
    figure.canvas.draw()
    meshes = [each for axes in figure.axes[:3] for each in axes.collections if isinstance(each, QuadMesh)]
    assert len(meshes) == 3  # both margins above the phases
    shown = meshes[0].get_array()
    assert shown is not None
    np.testing.assert_array_equal(np.ma.filled(shown, np.nan), found.mean("auroc", "margin")[0])


def test_a_sweep_without_weights_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(GrokscopeError, match="--save-weights"):
        audit_sweep(recorded(tmp_path, weights=False), "mine")


@pytest.mark.parametrize("fields", [{}, {"task.corruption": 0.0}, {"model.depth": 3}])
def test_the_picture_of_a_network_shows_all_scores_and_examples(tiny: RunSpec, fields: dict[str, object]) -> None:
    result = run(tiny.updated(fields))
    found = audit_labels(result.spec, result.trained_weights(), result.dataset())
    figure = draw_audit(found, "title")
    figure.canvas.draw()
    curves, histogram = figure.axes
    expected = [score for score in found.scores.values() if score.curve]
    for line, score in zip(curves.lines, expected, strict=False):
        assert score.curve is not None
        assert np.asarray(line.get_xdata())[1:].tolist() == score.curve.recall.tolist()
    assert len(curves.lines) == (len(expected) + 1 if expected else 0)  # and guessing
    assert sum(patch.get_height() for patch in histogram.patches) == len(found.wrong)  # type: ignore[attr-defined]


PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")


def test_python_in_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code, *_ = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(code, {})
    first, *pairs = capsys.readouterr().out.splitlines()
    assert all(0 <= float(value) <= 1 for value in first.split())
    assert len(pairs) == 20


def test_flags_named_in_the_page_exist(audit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = audit("--help").stdout
    commands = " ".join(re.findall(r"grokscope audit .*", PAGE))
    named = set(re.findall(r"--[a-z][a-z-]+", commands)) | set(re.findall(r"`(--[a-z][a-z-]+)", PAGE))
    for flag in named - {"--save-weights"}:  # of train and sweep
        assert flag in shown

"""What a person at a keyboard or a notebook meets: progress, results that are used again, short names of objects."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import grokscope as gs
from grokscope.cli.commands import all_commands
from grokscope.cli.completion import offered_runs, offered_sweeps
from grokscope.sweeps import run_all
from grokscope.sweeps.running import Running

MOST = 450  # characters of what an object says of itself


@pytest.fixture(scope="module")
def result() -> gs.RunResult:
    return gs.run(gs.RunSpec().updated({"task.modulus": 11, "model.width": 16, "training.steps": 20}))


def test_a_run_with_a_store_is_trained_once(
    tiny: gs.RunSpec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = gs.run(tiny, store=tmp_path / "runs")
    second = gs.run(tiny, store=gs.Store(tmp_path / "runs"))
    assert second.seconds == first.seconds, "it was not trained again"
    assert second.curve == first.curve == gs.run(tiny).curve
    assert second.weights is not None
    np.testing.assert_array_equal(second.weights["U"], gs.run(tiny).trained_weights()["U"])
    assert capsys.readouterr().err == "", "nobody looks on"
    assert gs.run(tiny, store=tmp_path / "runs", force=True).seconds != first.seconds


def test_a_run_that_was_stored_without_its_network_is_trained_again_for_it(tiny: gs.RunSpec, tmp_path: Path) -> None:
    gs.train(tiny, store=tmp_path)
    assert gs.run(tiny, store=tmp_path).weights is not None
    assert gs.Store(tmp_path).resolve(tiny.run_id).has_weights


def test_callbacks_need_a_run_that_is_trained(tiny: gs.RunSpec, tmp_path: Path) -> None:
    with pytest.raises(gs.GrokscopeError, match="on_measurement cannot be used with a store"):
        gs.run(tiny, store=tmp_path, on_measurement=lambda row, spectra: None)
    assert not list(tmp_path.iterdir())


def test_options_that_are_none_are_named(tiny: gs.RunSpec, result: gs.RunResult, tmp_path: Path) -> None:
    with pytest.raises(gs.GrokscopeError, match=r"no option 'on_measurment'.*did you mean 'on_measurement'"):
        gs.run(tiny, on_measurment=print)
    for options in ({}, {"store": tmp_path}):
        with pytest.raises(gs.GrokscopeError, match="no option 'weights'; the network is kept in any case: it has"):
            gs.run(tiny, weights=True, **options)  # type: ignore[arg-type]
    for train in (gs.run, gs.train):
        with pytest.raises(gs.SpecError, match=r"from a RunSpec, not from 'my\.toml'"):
            train("my.toml")  # type: ignore[arg-type]
    with pytest.raises(gs.GrokscopeError, match="a film is made of a RunResult, not of '41630c'"):
        gs.animate("41630c", tmp_path / "grok.gif")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_progress_is_shown_if_asked_for(tiny: gs.RunSpec, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []
    shown = gs.run(tiny, progress=True, on_measurement=lambda row, spectra: seen.append(row))
    assert f"training {tiny.run_id}: step {tiny.training.steps} of {tiny.training.steps}" in capsys.readouterr().err
    assert seen == list(shown.curve)
    gs.run(tiny, progress=False)
    gs.run(tiny)
    assert capsys.readouterr().err == ""


def test_a_notebook_shows_the_progress_of_slow_runs(
    tiny: gs.RunSpec, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    gs.run(tiny)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("grokscope.sweeping.QUICK_SECONDS", -1.0)
    gs.run(tiny)
    assert f"training {tiny.run_id}" in capsys.readouterr().err


def test_what_objects_say_of_themselves_is_short(result: gs.RunResult, tmp_path: Path) -> None:
    spec, weights, dataset = result.spec, result.trained_weights(), result.dataset()
    waves = gs.neuron_waves(spec.model, weights, spec.task)
    pruning = gs.measure_pruning(weights, spec.model, dataset, random_orders=2)
    diagram = gs.sweep({"training.seed": [0, 1]}, base=spec, store=tmp_path, workers=0, progress=False)
    store = gs.Store(tmp_path)
    objects = [
        *(result, spec, spec.task, spec.model, spec.optimizer, spec.training, dataset, result.neurons, result.final),
        *(waves, pruning, pruning.orders["random"], result.module()),
        *(gs.audit_labels(spec, weights, dataset), gs.measure_logits(result.module(), dataset)),
        *(gs.ablate(spec.model, weights, dataset), waves.waves, waves.neurons),
        *(diagram, diagram.plan, diagram.panels[0].cells[0][0], store, store.runs()[0], store.sweeps()[0]),
        gs.claims("corrections-vanish", scale="tiny", store=tmp_path)[0],
    ]
    for each in objects:
        assert len(repr(each)) < MOST, type(each)
        assert "\n" not in repr(each)
    assert (
        repr(spec)
        == f"<RunSpec {spec.run_id}: add mod 11, α 0.5, ξ 0.35, quadratic 16, adamw 0.01 wd 0, 20 steps, seed 0>"
    )
    assert str(spec) == repr(spec)
    assert repr(diagram.plan).endswith(": 2 runs, 2 training.seed>")


def test_a_notebook_shows_the_newest_runs_of_a_store(result: gs.RunResult, tmp_path: Path) -> None:
    store = gs.Store(tmp_path / "runs")
    assert store._repr_html_() == f"<p>Store {tmp_path / 'runs'}: not there yet</p>"
    store.save(result)
    store.tag(result.run_id, "good")
    shown = store._repr_html_()
    assert f"<td>{result.run_id}</td><td>{result.outcome}</td>" in shown
    assert "<td>good</td>" in shown


def test_runs_of_a_generator_make_a_diagram(result: gs.RunResult, tmp_path: Path) -> None:
    plan = gs.Plan.over({"task.corruption": [0, 0.3], "training.seed": [0, 1]}, result.spec)
    for _ in run_all(plan.specs(), str(tmp_path), Running(workers=0)):
        pass
    diagram = gs.phase_diagram(gs.Store(tmp_path), plan)
    assert [(cell.source, cell.runs) for cell in diagram.all_cells()] == [("run", 2), ("run", 2)]


def test_the_columns_of_a_diagram_are_numbers(result: gs.RunResult, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    diagram = gs.sweep({"training.seed": [0, 1, 2]}, base=result.spec, store=tmp_path, workers=0, progress=False)
    frame = pandas.DataFrame(diagram.to_columns())
    for column in ("train_accuracy", "test_accuracy", "memorization", "memorization_low", "runs"):
        assert pandas.api.types.is_numeric_dtype(frame[column]), column
    assert 0 <= frame["test_accuracy"].mean() <= 1


def test_a_run_without_a_corrupted_label_says_so(tiny: gs.RunSpec) -> None:
    few = gs.run(tiny.updated({"task.data_fraction": 0.05, "task.corruption": 0.05}))
    assert few.describe().endswith("No label is corrupted: a fraction of 0.05 of 6 training examples is none.")
    assert "No label" not in gs.run(tiny.updated({"task.corruption": 0})).describe()


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_weights_that_decay_too_fast_are_told_from_a_large_learning_rate(tiny: gs.RunSpec, optimizer: str) -> None:
    decayed = gs.run(tiny.updated({"optimizer.kind": optimizer, "optimizer.weight_decay": 1e9}))
    assert "Try a smaller weight decay" in decayed.describe()
    assert "must be below 200" in decayed.describe()
    fast = gs.run(tiny.updated({"optimizer.learning_rate": 1e20}))
    assert fast.describe().endswith("Try a smaller learning rate.")


def test_a_shell_completes_runs_and_sweeps(tiny: gs.RunSpec, tmp_path: Path) -> None:
    with gs.Store(tmp_path / "runs") as store:
        store.save(gs.run(tiny))
        store.set_name(tiny.run_id, "zeroth")
        plan = gs.Plan.over({"training.seed": [0]}, tiny)
        store.record_sweep("mine", plan.to_dict(), [tiny.run_id], refined=False)
    context: Any = SimpleNamespace(params={"store": tmp_path / "runs"})
    assert offered_runs(context, "") == ["zeroth", tiny.run_id]
    assert offered_runs(context, tiny.run_id[:3]) == [tiny.run_id]
    assert offered_sweeps(context, "m") == ["mine"]
    assert offered_sweeps(context, "x") == []
    nowhere: Any = SimpleNamespace(params={"store": tmp_path / "nowhere"})
    assert offered_runs(nowhere, "") == offered_sweeps(nowhere, "") == []


def test_every_argument_that_is_a_run_or_a_sweep_is_completed() -> None:
    commands = all_commands()
    leaves = [leaf for command in commands.values() for leaf in getattr(command, "commands", {"": command}).values()]
    named = [
        parameter
        for leaf in leaves
        for parameter in leaf.params
        if (parameter.metavar or "").strip("[]…") in ("RUN", "SWEEP")
    ]
    assert len(named) > 15
    assert all(parameter._custom_shell_complete for parameter in named)

"""Pictures and lists of runs that use a user's own code: in the user's names, and nothing empty without a word."""

from pathlib import Path

import pytest
from matplotlib.axes import Axes
from typer.testing import CliRunner

import grokscope as gs
from grokscope.cli import app
from grokscope.measure import logits_of, training_events, why_no_relation
from grokscope.measure.spectra.array_names import where_vectors_lie
from grokscope.plots import draw_dynamics, draw_logits, draw_phase_diagram, draw_runs, draw_spectrum, settings_line

MINE = """
import numpy as np
import grokscope as gs


class Triple(gs.Task):
    p: int = 3

    def examples(self):
        inputs = np.indices((self.p,) * 3).reshape(3, -1).T
        return gs.Examples(inputs, inputs.sum(axis=1) % self.p, classes=self.p)

    def waves(self):
        return gs.Waves(range(self.p))


class Points(gs.Task):
    def examples(self):
        points = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
        return gs.Examples(points, np.arange(40) % 3, classes=3)


class Sum(gs.Network):
    width: int = 8

    def initial_weights(self, task, seed, seeding="independent"):
        p, N = task.inputs.vocabulary, self.width
        shapes = {"A": (p, N), "B": (p, N), "C": (task.classes, N)}
        return {k: gs.normal(seed, i, s).astype(np.float32) for i, (k, s) in enumerate(shapes.items())}

    def forward(self, weights, inputs, layers):
        return (weights["A"][inputs[:, 0]] + weights["B"][inputs[:, 1]]) ** 2 @ weights["C"].T

    def input_neurons(self, weights):
        return gs.Neurons("hidden", {"u": weights["A"].T, "v": weights["B"].T, "w": weights["C"].T})


class Norms(gs.Measurement):
    columns = ("norm_ratio", "never")

    def measure(self, moment):
        return {"norm_ratio": float(moment.step), "never": float("nan")}


class PlusOne(gs.Corruption):
    def labels(self, truth, examples, classes, seed):
        return (truth + 1) % classes


class Orthogonal(gs.Regularizer):
    strength: float = 0.001

    def penalty(self, weights):
        return self.strength * sum(array.square().sum() for array in weights.values())
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> gs.RunSpec:
    """A small spec in a directory that has the file."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE, encoding="utf-8")
    return gs.RunSpec().updated({"model.width": 8, "training.steps": 3})


def panels(axes: list[Axes]) -> dict[str, Axes]:
    return {each.get_title() or each.get_title(loc="left") or each.get_ylabel(): each for each in axes}


def test_the_spectrum_of_three_tokens_says_why_there_is_no_phase_relation(mine: gs.RunSpec) -> None:
    result = gs.run(mine.updated({"task.kind": "mine.py:Triple"}))
    waves = gs.neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)
    reason = why_no_relation(waves)
    assert reason == "it is one of two positions and the label, and the task has 3: u1, u2, u3"
    assert "Rows of U1" in panels(draw_spectrum(result, [0]).axes)


def test_weights_are_called_what_the_network_calls_them(mine: gs.RunSpec) -> None:
    spec = mine.updated({"model.kind": "mine.py:Sum", "task.modulus": 7})
    result = gs.run(spec)
    weights = result.trained_weights()
    waves = gs.neuron_waves(spec.model, weights, spec.task)
    assert where_vectors_lie(waves.neurons, weights) == {
        "u": ("A", "Columns"),
        "v": ("B", "Columns"),
        "w": ("C", "Columns"),
    }
    assert "Columns of A" in panels(draw_spectrum(result, [0]).axes)


def test_panels_without_a_curve_say_why(mine: gs.RunSpec) -> None:
    three = gs.run(mine.updated({"task.kind": "mine.py:Triple"}))
    sizes = draw_dynamics(three, training_events(three.curve), "").axes[2]
    assert sizes.get_legend_handles_labels()[1] == ["‖W‖"]
    points = gs.run(mine.updated({"task.kind": "mine.py:Points"}))
    *_, periodicity = draw_dynamics(points, training_events(points.curve), "").axes
    assert not periodicity.axison
    assert "no waves" in periodicity.texts[0].get_text()
    histogram = points.plot().axes[1]
    assert not histogram.axison
    assert histogram.texts[0].get_text() == "the task has no waves"


def test_own_columns_have_a_panel_each_and_others_have_none(mine: gs.RunSpec) -> None:
    plain = gs.run(mine.updated({"task.modulus": 7}))
    result = gs.run(mine.updated({"task.modulus": 7, "training.measurements": ["mine.py:Norms"]}))
    assert [axes.get_ylabel() for axes in plain.plot().axes] == ["accuracy", "neurons"]
    *_, ratio, never = result.plot().axes
    assert (ratio.get_ylabel(), ratio.lines[0].get_xydata().tolist()) == ("norm_ratio", [[1, 1], [2, 2], [3, 3]])  # type: ignore[union-attr]
    assert never.texts[0].get_text() == "never was not measured"
    both = draw_runs([plain, result], ["a", "b"]).axes
    assert [axes.get_ylabel() for axes in both[4:6]] == ["", "norm_ratio"]


def test_runs_that_differ_in_code_look_different(mine: gs.RunSpec) -> None:
    own = {
        "task.modulus": 7,
        "task.corruption_kind": "mine.py:PlusOne",
        "regularizer.kind": "mine.py:Orthogonal",
        "training.measurements": ["mine.py:Norms"],
    }
    result = gs.train(mine.updated(own))
    assert "ξ = 0.35 PlusOne, " in settings_line(result)
    said = CliRunner().invoke(app, ["runs", "list"], env={"COLUMNS": "160"}).output
    for name in ("what else", "PlusOne", "Orthogonal", "Norms"):
        assert name in said
    assert "@" not in said


def test_a_listing_of_built_in_runs_has_no_further_column(mine: gs.RunSpec) -> None:
    gs.train(mine.updated({"task.modulus": 7}))
    assert "what else" not in CliRunner().invoke(app, ["runs", "list"]).output


def test_logits_of_vectors_are_titled_by_their_place(mine: gs.RunSpec) -> None:
    result = gs.run(mine.updated({"task.kind": "mine.py:Points"}))
    table = gs.measure_logits(result.module(), result.dataset())
    shown = table.corrupted.nonzero()[0][:1]
    first = draw_logits(result, table, shown, logits_of(result.module(), table.pairs[shown])).axes[0]
    assert first.get_title().startswith(f"example {shown[0]}: true ")


def test_kinds_on_the_axes_of_a_diagram_are_short(mine: gs.RunSpec) -> None:
    axes = {
        "task.corruption_kind": ["symmetric", "mine.py:PlusOne"],
        "regularizer.kind": ["none", "mine.py:Orthogonal"],
    }
    diagram = gs.sweep(axes, base=mine.updated({"task.modulus": 7}), store="runs", workers=0, progress=False)
    axis = draw_phase_diagram(diagram).axes[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["symmetric", "PlusOne"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["none", "Orthogonal"]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("corruption kind", "regularizer")
    assert f'alt="Phase diagram of the sweep {diagram.plan.name}"' in diagram._repr_html_()


def test_a_refusal_names_the_method_to_write(mine: gs.RunSpec) -> None:
    spec = mine.updated({"model.kind": "mine.py:Sum", "task.modulus": 7})
    result = gs.run(spec)
    with pytest.raises(gs.GrokscopeError, match=r"hidden_layer\(\)"):
        spec.model.prunable_neurons(result.trained_weights())
    points = gs.run(mine.updated({"task.kind": "mine.py:Points"}))
    with pytest.raises(gs.GrokscopeError, match=r"waves\(\)"):
        gs.neuron_waves(points.spec.model, points.trained_weights(), points.spec.task)

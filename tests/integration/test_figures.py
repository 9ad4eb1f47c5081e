import numpy as np
import pytest

from grokscope import RunSpec, run
from grokscope.experiments.paper import fig01
from grokscope.plots import draw_runs, settings_line


def test_figure_1_has_the_settings_of_the_paper() -> None:
    specs = fig01.specs()
    assert [spec.optimizer.weight_decay for spec in specs] == [0, 5, 15]
    for spec in specs:
        assert (spec.task.data_fraction, spec.task.corruption, spec.task.modulus) == (0.5, 0.35, 97)
        assert (spec.model.width, spec.model.activation, spec.training.steps) == (500, "quadratic", 2000)
        assert (spec.optimizer.learning_rate, spec.optimizer.beta1, spec.optimizer.beta2) == (0.01, 0.9, 0.98)


def test_figure_1_draws_what_the_runs_hold(tiny: RunSpec) -> None:
    results = [run(tiny.updated({"optimizer.weight_decay": decay})) for decay in fig01.WEIGHT_DECAYS]
    figure = fig01.picture(results)
    curves, histograms = figure.axes[:3], figure.axes[3:]
    for axes, bars, result in zip(curves, histograms, results, strict=True):
        assert axes.lines[0].get_ydata()[-1] == result.final.train_accuracy  # type: ignore[index]
        heights = sum(patch.get_height() for patch in bars.patches)  # type: ignore[attr-defined]
        assert heights == tiny.model.width - result.final.dead_neurons
        assert result.phase is not None
        assert result.phase.label in axes.get_title()


@pytest.mark.parametrize("fields", [{"task.corruption": 0.0}, {"optimizer.learning_rate": 1e20}])
def test_runs_without_corruption_or_end_can_be_drawn(tiny: RunSpec, fields: dict[str, float]) -> None:
    draw_runs(run(tiny.updated(fields))).canvas.draw()


@pytest.mark.parametrize(
    ("fields", "panels"),
    [
        ({}, 2),
        ({"model.norm": "layer"}, 3),
        ({"model.depth": 3}, 2),
        ({"model.depth": 3, "model.norm": "batch"}, 3),
        ({"model.kind": "transformer", "model.embed": 16, "model.width": 500}, 2),
    ],
)
def test_panels_of_every_network(tiny: RunSpec, fields: dict[str, object], panels: int) -> None:
    result = run(tiny.updated(fields))
    figure = draw_runs([result], [settings_line(result)])
    figure.canvas.draw()
    assert len(figure.axes) == panels
    histogram = figure.axes[1]
    assert (histogram.get_legend() is None) == (result.outputs is None)
    if panels == 3:
        assert result.neurons is not None
        points = figure.axes[2].lines[0]
        assert np.array_equal(np.asarray(points.get_xdata()), result.neurons.neuron_ipr, equal_nan=True)


def test_attention_is_drawn_for_every_head(tiny: RunSpec) -> None:
    network = {"model.kind": "transformer", "model.embed": 16, "model.layers": 2, "model.width": 500}
    result = run(tiny.updated(network))
    figure = draw_runs([result], ["title"], attention_of=(3, 4))
    bars = [patch.get_height() for patch in figure.axes[2].patches]  # type: ignore[attr-defined]
    patterns = result.attention((3, 4))  # [layers, heads, query, key]
    assert patterns.shape == (2, 4, 2, 2)
    np.testing.assert_allclose(bars, [*patterns[:, :, 0, 0].ravel(), *patterns[:, :, 1, 0].ravel()], rtol=1e-6)


def test_a_title_names_what_is_unusual(tiny: RunSpec) -> None:
    spec = tiny.updated({"model.dropout": 0.3, "model.norm": "batch", "training.batch_size": 16})
    title = settings_line(run(spec))
    for part in ("add mod 11", "α = 0.5", "ξ = 0.35", "wd = 0", "dropout = 0.3", "batch norm", "B = 16"):
        assert part in title

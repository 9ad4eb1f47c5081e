import pytest

from grokscope import RunSpec, run
from grokscope.experiments import fig01
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
    figure = fig01.draw(results)
    curves, histograms = figure.axes[:3], figure.axes[3:]
    for axes, bars, result in zip(curves, histograms, results, strict=True):
        assert axes.lines[0].get_ydata()[-1] == result.final.train_accuracy  # type: ignore[index]
        heights = sum(patch.get_height() for patch in bars.patches)  # type: ignore[attr-defined]
        assert heights == tiny.model.width - result.final.dead_neurons
        assert result.phase is not None
        assert result.phase.label in axes.get_title()


@pytest.mark.parametrize("fields", [{"task.corruption": 0.0}, {"optimizer.learning_rate": 1e20}])
def test_runs_without_corruption_or_end_can_be_drawn(tiny: RunSpec, fields: dict[str, float]) -> None:
    draw_runs([run(tiny.updated(fields))], ["title"]).canvas.draw()


def test_a_title_names_what_is_unusual(tiny: RunSpec) -> None:
    spec = tiny.updated({"model.dropout": 0.3, "model.norm": "batch", "training.batch_size": 16})
    title = settings_line(run(spec))
    for part in ("add mod 11", "α = 0.5", "ξ = 0.35", "wd = 0", "dropout = 0.3", "batch norm", "B = 16"):
        assert part in title

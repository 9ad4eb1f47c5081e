from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from grokscope import Phase, RunSpec, run
from grokscope.experiments.paper import fig01
from grokscope.measure import Row
from grokscope.phases import classify
from grokscope.plots import draw_curves, draw_runs, settings_line


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


def test_seeds_are_a_median_and_a_band_and_phases_a_strip(tiny: RunSpec) -> None:
    seeds = [run(tiny.updated({"training.seed": seed})) for seed in range(3)]
    axes = draw_curves(seeds[:1], ["three"], other_seeds=[seeds[1:]]).axes[0]
    trained = np.array([[row.train_accuracy for row in result.curve] for result in seeds])
    assert np.array_equal(np.asarray(axes.lines[0].get_ydata()), np.median(trained, axis=0))
    band: Any = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (trained.min(), trained.max())
    strip: list[Any] = [patch for patch in axes.patches if patch.get_label() in {phase.label for phase in Phase}]
    ends = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in strip]
    steps = [row.step for row in seeds[0].curve]
    assert ends[0][0] == steps[0]
    assert max(end for _, end in ends) <= steps[-1]
    best = np.median([[row.test_accuracy for row in result.curve] for result in seeds], axis=0).max()
    train, test = (float(np.asarray(line.get_ydata())[-1]) for line in axes.lines[:2])
    last = max(list[Any](axes.patches), key=lambda patch: patch.get_x())
    assert last.get_facecolor() == to_rgba(classify(train, test, seeds[0].corruption, best).color)


def test_strip_and_title_follow_the_drawn_medians(tiny: RunSpec) -> None:
    """The first seed memorises in the end and the two others do not: it is outvoted."""
    one = run(tiny)
    row = dict(one.final)
    curves = [
        [Row({**row, "step": 10, "train_accuracy": 0.2, "test_accuracy": 0.0}), Row({**row, **last, "step": 20})]
        for last in (
            {"train_accuracy": 0.95, "test_accuracy": 0.0},
            {"train_accuracy": 0.85, "test_accuracy": 0.0},
            {"train_accuracy": 0.4, "test_accuracy": 0.0},
        )
    ]
    phases = (Phase.MEMORIZATION, Phase.CONFUSION, Phase.CONFUSION)
    first, *others = (
        replace(one, curve=tuple(curve), phase=phase) for curve, phase in zip(curves, phases, strict=True)
    )
    axes = draw_curves([first], ["three"], other_seeds=[others]).axes[0]
    assert axes.get_title() == "three\nConfusion in 2 of 3 seeds"
    assert [patch.get_label() for patch in axes.patches] == ["Confusion"]
    assert draw_curves([first], ["one"]).axes[0].get_title() == "one\nMemorization"


def test_seeds_that_ended_early_are_drawn_where_all_were_measured(tiny: RunSpec) -> None:
    whole = run(tiny)
    shorter = replace(whole, curve=whole.curve[:-1])
    for first, other in ((whole, shorter), (shorter, whole)):
        line = draw_curves([first], ["two"], other_seeds=[[other]]).axes[0].lines[0]
        assert list(np.asarray(line.get_xdata())) == [row.step for row in shorter.curve]


def test_a_histogram_beside_another_keeps_the_room_of_its_legend(tiny: RunSpec) -> None:
    deep, plain = run(tiny.updated({"model.depth": 3})), run(tiny)
    tops = [draw_runs(results).axes[2].get_ylim()[1] for results in ([deep, plain], [plain, deep])]
    assert tops[0] == pytest.approx(tops[1])


def test_runs_that_a_row_has_no_room_for_stand_below(tiny: RunSpec) -> None:
    results = [run(tiny.updated({"task.corruption": share})) for share in (0.1, 0.2, 0.3, 0.4, 0.5)]
    figure = draw_runs(results)
    axes = figure.axes  # accuracies and histograms of three runs, then those of two
    assert not any("input" in text.get_text() for text in figure.legends[0].get_texts())  # histograms have no legend
    assert len(axes) == 10
    for panel, result in zip((axes[6], axes[7]), results[3:], strict=True):
        assert np.asarray(panel.lines[0].get_ydata())[-1] == result.final.train_accuracy
    assert [panel.get_ylabel() for panel in axes] == [
        "accuracy",
        "",
        "",
        "neurons",
        "",
        "",
        "accuracy",
        "",
        "neurons",
        "",
    ]
    histograms = [axes[place] for place in (3, 4, 5, 8, 9)]
    assert len({panel.get_ylim() for panel in histograms}) == 1
    assert {panel.yaxis.get_major_formatter()(10) for panel in histograms} == {"10"}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_legend_of_all_phases_is_no_wider_than_the_figure(tiny: RunSpec, count: int) -> None:
    one = run(tiny)
    row = dict(one.final)
    passed = ((0.1, 0), (0.95, 0), (0.95, 0.95), (0.8, 0.95), (0.5, 0.95), (0.1, 0.1))  # all of Table 2
    curve = tuple(
        Row({**row, "step": 10**place, "train_accuracy": train, "test_accuracy": test})
        for place, (train, test) in enumerate(passed)
    )
    figure = draw_curves([replace(one, curve=curve)] * count, ["one"] * count)
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 10
    figure.canvas.draw()
    assert legend.get_window_extent().width < figure.bbox.width


def test_a_histogram_says_what_it_counts(tiny: RunSpec) -> None:
    transformer = run(tiny.updated({"model.kind": "transformer", "model.embed": 16, "model.width": 500}))
    labels = [draw_runs(result).axes[1] for result in (run(tiny), transformer, replace(transformer, weights=None))]
    assert [(axes.get_ylabel(), axes.get_xlabel()) for axes in labels] == [
        ("neurons", "IPR of a neuron"),
        ("dimensions of the embedding", "IPR of a dimension"),
        ("neurons", "IPR of a neuron"),  # without weights that is not known
    ]


@pytest.mark.parametrize("corruption", [0.0, 0.05, 0.35])
def test_the_fraction_of_clean_labels_is_not_written_over_the_strip(tiny: RunSpec, corruption: float) -> None:
    axes = draw_curves([run(tiny.updated({"task.corruption": corruption}))], ["one"]).axes[0]
    (words,) = (text for text in axes.texts if text.get_text() == "1 − ξ")
    assert words.get_verticalalignment() == ("bottom" if corruption == 0.35 else "top")


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

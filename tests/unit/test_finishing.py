"""What every figure gets in the end: letters, what its networks share, names of regions."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from grokscope import Phase, RunSpec
from grokscope.experiments.catalogue import EXPERIMENTS
from grokscope.experiments.evidence import Needs
from grokscope.experiments.scale import PAPER, QUICK, TINY, Scale, scales_of
from grokscope.experiments.subtitle import subtitle
from grokscope.plots import draw_phase_diagram
from grokscope.plots.finishing import add_subtitle, finish
from grokscope.plots.runs import count_neurons
from grokscope.store import CellOutcome
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import Panel, Source, assemble
from grokscope.sweeps.plan import Plan

TASK = {"task.data_fraction": 0.8, "task.corruption": 0.2}
PLAN = Plan(
    "plan", axes=(Axis.over("task.data_fraction", (0.2, 0.4, 0.6, 0.8)), Axis.over("task.corruption", (0.0, 0.3, 0.6)))
)

SEED = scales_of("paper", seeds=1)[0]
DERIVED = Plan(
    "derived",
    axes=(Axis.over("task.corruption", (0.0, 0.3)),),
    derived={"training.steps": "1000 + 1000 * task.corruption"},
)
SMALL = Plan(
    "small",
    RunSpec().updated({"task.modulus": 11, "model.width": 8}),
    (Axis.over("task.corruption", tuple(k / 10 for k in range(8))),),
)


def test_panels_are_named_in_the_order_of_reading() -> None:
    figure = Figure()
    grid = figure.subplots(2, 2)
    grid[0, 0].set_title("first")
    grid[1, 0].axis("off")  # shows nothing
    figure.colorbar(grid[0, 0].pcolormesh(np.eye(2)), ax=grid[0, 0])
    finish(figure, "p = 97")
    assert grid[0, 0].get_title() == "(a) first"
    assert [axes.get_title(loc="left") for axes in (grid[0, 1], grid[1, 0], grid[1, 1])] == ["(b)", "", "(c)"]
    assert figure.get_suptitle() == "p = 97"


def test_a_single_panel_and_named_ones_are_left_alone() -> None:
    single, named = Figure(), Figure()
    axes = single.subplots()
    finish(single, "")
    assert (axes.get_title(), axes.get_title(loc="left"), single.get_suptitle()) == ("", "", "")
    first, second = named.subplots(1, 2)
    first.set_title("(a) mine")
    named.suptitle("my line")
    finish(named, "another")
    assert (first.get_title(), second.get_title(loc="left")) == ("(a) mine", "")
    assert named.get_suptitle() == "my line"


@pytest.mark.parametrize(
    ("needs", "scale", "words"),
    [
        (Needs((RunSpec(),)), PAPER, "p = 97, N = 500, α = 0.5, ξ = 0.35, weight decay = 0, steps = 2000, one seed"),
        (
            Needs((RunSpec(), RunSpec().updated(TASK)), seeds=3),
            PAPER,
            "p = 97, N = 500, weight decay = 0, steps = 2000, 3 seeds",
        ),
        (Needs(diagrams=(PLAN.with_seeds(2),)), PAPER, "p = 97, N = 500, weight decay = 0, steps = 2000, 2 seeds"),
        (Needs(), PAPER, ""),
        (
            Needs((RunSpec(),), seeds=3),
            SEED,
            "p = 97, N = 500, α = 0.5, ξ = 0.35, weight decay = 0, steps = 2000, 1 of 3 seeds",
        ),
        (Needs(diagrams=(PLAN.with_seeds(2),)), SEED, "p = 97, N = 500, weight decay = 0, steps = 2000, 1 of 2 seeds"),
        (Needs(diagrams=(DERIVED,)), PAPER, "p = 97, N = 500, α = 0.5, weight decay = 0, one seed"),
        (
            Needs(diagrams=(SMALL,)),
            QUICK,
            "p = 11, N = 8, α = 0.5, weight decay = 0, steps = 2000, one seed (5 of 8 cells)",
        ),
        (
            Needs(diagrams=(PLAN,)),
            scales_of("paper", grid="2x2")[0],
            "p = 97, N = 500, weight decay = 0, steps = 2000, one seed (2 × 2 of 4 × 3 cells)",
        ),
        (
            Needs(diagrams=(PLAN,)),
            QUICK,
            "p = 59, N = 300, weight decay = 0, steps = 2000, one seed (smaller than with --scale paper: p = 97, "
            "N = 500, weight decay = 0, steps = 2000, one seed)",
        ),
        (
            Needs((RunSpec(),), diagrams=(PLAN,)),
            QUICK,
            "diagrams: p = 59, N = 300, weight decay = 0, steps = 2000, one seed (smaller than with --scale paper: "
            "p = 97, N = 500, weight decay = 0, steps = 2000, one seed); beside them: p = 97, N = 500, α = 0.5, "
            "ξ = 0.35, weight decay = 0, steps = 2000, one seed",
        ),
    ],
)
def test_the_line_above_says_what_all_networks_share(needs: Needs, scale: Scale, words: str) -> None:
    assert subtitle(needs, scale) == words


def test_the_line_above_says_what_decides() -> None:
    decayed = RunSpec().updated({"optimizer.weight_decay": 20, "model.dropout": 0.3})
    assert "ξ = 0.35, weight decay = 20, dropout = 0.3, steps" in subtitle(Needs((decayed,)), PAPER)
    assert "weight decay" not in subtitle(Needs((decayed, RunSpec())), PAPER)  # then titles tell them apart


@pytest.mark.parametrize("width", [4.0, 12.0])
def test_the_line_above_is_no_wider_than_the_figure(width: float) -> None:
    words = subtitle(Needs(diagrams=(PLAN,)), QUICK)
    figure = Figure(figsize=(width, 4))
    add_subtitle(figure, words)
    assert " ".join(figure.get_suptitle().split("\n")) == words
    assert not any(line.endswith("=") for line in figure.get_suptitle().split("\n"))
    (line,) = figure.texts
    assert line.get_window_extent().width < figure.bbox.width


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_reduced_figure_says_so(name: str) -> None:
    needs = EXPERIMENTS[name].needs(TINY)
    words = subtitle(needs, TINY)
    assert ("smaller than with --scale paper" in words) == (bool(words) and needs.reduced(TINY))


def test_regions_are_named_where_there_is_room() -> None:
    phases = [Phase.COEXISTENCE] * 4 + [Phase.MEMORIZATION] * 7 + [Phase.FULL_INVERSION]
    cells = [CellOutcome(i, f"run{i}", phase.value, 0.5, 0.5) for i, phase in enumerate(phases)]
    axes = draw_phase_diagram(assemble(PLAN, cells, refined=False)).axes[0]
    names = {text.get_text(): text.get_position() for text in axes.texts}
    assert names.keys() == {"Coexistence", "Memorization", "Full\nInversion"}  # one cell is too narrow for a line
    assert names["Coexistence"][1] == 0.0
    assert 0.3 <= names["Memorization"][1] <= 0.6
    assert [text.get_text() for text in axes.texts if text.get_fontsize() != 9] == ["Full\nInversion"]


def test_names_of_regions_stand_on_one_tint() -> None:
    """Of ten columns the first four were run. In the middle the name would lie on both tints."""
    plan = Plan("wide", axes=(Axis.over("task.data_fraction", tuple(k / 10 for k in range(10))),))
    diagram = assemble(plan, [CellOutcome(i, f"run{i}", "memorization", 0.5, 0.5) for i in range(10)], refined=False)
    sources: list[Source] = ["run" if column < 4 else "inferred" for column in range(10)]
    cells = [replace(cell, source=source) for cell, source in zip(diagram.all_cells(), sources, strict=True)]
    (name,) = draw_phase_diagram(replace(diagram, panels=[Panel({}, [cells])])).axes[0].texts
    assert name.get_position()[0] > 0.55
    assert name.get_color() == "0.1"
    assert not name.get_path_effects()


@pytest.mark.parametrize("counts", [[], [1], [3, 280]])
def test_a_lone_neuron_is_seen_beside_hundreds(counts: list[int]) -> None:
    axes = Figure().subplots()
    axes.bar(range(len(counts)), counts)
    count_neurons(axes)
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "log"
    assert low < 1
    assert high > max(counts, default=1)


def test_panels_that_share_an_axis_show_all_neurons() -> None:
    grid = Figure().subplots(1, 2, sharey=True)
    for axes, count in zip(grid, (280, 70), strict=True):
        axes.bar(0, count)
        count_neurons(axes)
    assert grid[0].get_ylim()[1] > 280

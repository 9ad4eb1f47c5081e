"""Phase diagrams from outcomes."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from grokscope import Phase
from grokscope.plots import draw_phase_diagram
from grokscope.plots.palette import contrast
from grokscope.plots.phase_diagram import phase_handles
from grokscope.store import CellOutcome
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.diagram import Cell, Panel, Source, assemble, wilson_interval
from grokscope.sweeps.plan import Plan

PLAN = Plan(
    "small",
    axes=(
        Axis(("task.data_fraction",), ((0.3,), (0.6,))),
        Axis(("task.corruption",), ((0.0,), (0.2,), (0.4,))),
        Axis(("optimizer.weight_decay",), ((0,), (5,))),
        Axis(("training.seed",), ((0,), (1,), (2,))),
    ),
)


STRIP = Plan("strip", axes=(Axis.over("task.corruption", (0.0, 0.5, 0.8)),))


def outcome(place: int, name: str) -> CellOutcome:
    return CellOutcome(place, f"run{place}", name, 0.5, 0.25 if place % 2 else 0.75)


def outcomes() -> list[CellOutcome]:
    """Seeds 0 and 1 of every cell memorise, seed 2 coexists; then exceptions."""
    cells = [outcome(place, "coexistence" if place >= 24 else "memorization") for place in range(PLAN.size)]
    cells[0] = CellOutcome(0, "run0", None, None, None)  # one seed of the first cell is to be done
    for place in (1, 13, 25):
        cells[place] = CellOutcome(place, f"run{place}", "failed", None, None)
    for place in (2, 14, 26):
        cells[place] = outcome(place, "diverged")
    for place in (3, 15, 27):
        cells[place] = CellOutcome(place, f"run{place}", None, None, None)
    return cells


def test_cells_are_where_their_fields_say() -> None:
    diagram = assemble(PLAN, outcomes(), refined=False)
    assert [panel.fields for panel in diagram.panels] == [{"optimizer.weight_decay": 0}, {"optimizer.weight_decay": 5}]
    first = diagram.panels[0].cells
    assert (len(first), len(first[0])) == (3, 2)
    assert first[0][0].runs == 2  # of three seeds
    assert first[0][1].source == "failed"
    assert first[1][0].outcome == "diverged"
    assert first[1][1].source == "missing"
    assert first[1][1].outcome is None
    assert first[2][0].counts == {"memorization": 2, "coexistence": 1}
    assert first[2][0].outcome == "memorization"
    assert not first[2][0].seeds_agree
    assert first[2][0].interval("memorization")[0] == pytest.approx(2 / 3)
    assert (first[0][0].missing, first[0][1].failed, first[1][1].missing) == (1, 3, 3)


def test_the_table_has_every_cell() -> None:
    rows = list(csv.DictReader(io.StringIO(assemble(PLAN, outcomes(), refined=False).to_csv())))
    assert len(rows) == 12
    assert rows[0]["task.data_fraction"] == "0.3"
    assert (rows[0]["runs"], rows[0]["outcome"]) == ("2", "coexistence")  # one of each: the first in order
    assert rows[3]["source"] == "missing"
    assert rows[3]["memorization"] == ""
    assert float(rows[4]["memorization"]) == pytest.approx(2 / 3, abs=1e-5)
    assert float(rows[4]["memorization_low"]) < 2 / 3 < float(rows[4]["memorization_high"])
    assert rows[11]["optimizer.weight_decay"] == "5"


def test_inferred_cells_are_marked() -> None:
    plan = Plan(
        "big",
        axes=tuple(Axis((path,), tuple((i / 10,) for i in range(9))) for path in ("task.corruption", "model.dropout")),
    )
    cells = [
        CellOutcome(place, str(place), "confusion", 0.1, 0.1)
        if place % 9 in (0, 4, 8) and place // 9 in (0, 4, 8)
        else CellOutcome(place, str(place), None, None, None)
        for place in range(81)
    ]
    refined = assemble(plan, cells, refined=True).panels[0].cells
    assert refined[0][0].source == "run"
    assert refined[3][5].source == "inferred"
    assert refined[3][5].outcome == "confusion"
    plain = assemble(plan, cells, refined=False).panels[0].cells
    assert plain[3][5].source == "missing"


def test_a_single_axis_is_a_strip() -> None:
    plan = Plan("strip", axes=(Axis(("task.corruption",), ((0.0,), (0.5,))),))
    diagram = assemble(plan, [outcome(0, "confusion"), outcome(1, "memorization")], refined=False)
    assert [[cell.outcome for cell in row] for row in diagram.panels[0].cells] == [["confusion", "memorization"]]
    draw_phase_diagram(diagram)


def test_seeds_alone_are_columns() -> None:
    plan = Plan("seeds", axes=(Axis(("training.seed",), ((0,), (1,))),))
    diagram = assemble(plan, [outcome(0, "confusion"), outcome(1, "memorization")], refined=False)
    assert [[cell.outcome for cell in row] for row in diagram.panels[0].cells] == [["confusion", "memorization"]]


def test_the_picture_shows_what_the_cells_are() -> None:
    figure = draw_phase_diagram(assemble(PLAN, outcomes(), refined=False), accuracies=True)
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "data fraction α"]
    assert [axes.get_title() for axes in panels] == ["(e) weight decay 0\nphase", "(f) weight decay 5\nphase"]
    assert figure.axes[0].get_title() == "(a) weight decay 0\ntrain accuracy"
    mesh = panels[0].collections[0]
    assert isinstance(mesh, QuadMesh)
    colors = np.asarray(mesh.get_array())  # [rows, columns, 3]
    expected = tuple(int(Phase.MEMORIZATION.color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    assert tuple(colors[2, 0]) == pytest.approx(expected)
    assert tuple(colors[1, 1]) == (1, 1, 1)  # missing
    corners = np.asarray(mesh.get_coordinates())  # [rows + 1, columns + 1, 2]
    assert corners[0, :, 0] == pytest.approx([0.15, 0.45, 0.75])  # half way between the data fractions
    assert corners[:, 0, 1] == pytest.approx([-0.1, 0.1, 0.3, 0.5])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "Full Inversion" not in labels  # there is none
    assert {"Memorization", "Coexistence", "Diverged", "not run yet", "failed", "seeds disagree"} <= set(labels)
    assert "hatched: not run" in labels
    assert all(axes.patch.get_hatch() for axes in figure.axes[:4])  # behind the accuracies, where there are none


def test_a_map_without_holes_does_not_explain_them() -> None:
    diagram = assemble(STRIP, [outcome(place, "confusion") for place in range(3)], refined=False)
    labels = [text.get_text() for text in draw_phase_diagram(diagram, accuracies=True).legends[0].get_texts()]
    assert labels == ["Confusion"]


def test_titles_of_panels_have_three_digits_and_are_quiet_if_long() -> None:
    panels: list[dict[str, object]] = [
        {"training.batch_size": 8, "training.steps": 64000, "optimizer.learning_rate": 0.00176777},
        {"optimizer.weight_decay": 12.5},
    ]
    diagram = assemble(STRIP, [outcome(place, "confusion") for place in range(3)], refined=False)
    long, short = (
        draw_phase_diagram(replace(diagram, panels=[Panel(own, diagram.panels[0].cells)])).axes[0].title
        for own in panels
    )
    assert long.get_text() == "batch size 8\nsteps 64000\nlearning rate 0.00177"
    assert short.get_text() == "weight decay 12.5"
    assert (long.get_fontweight(), short.get_fontweight()) == ("normal", "bold")


def test_inferred_cells_are_paler_and_phases_have_a_border() -> None:
    cells = [[_known("run", "confusion"), _known("inferred", "confusion"), _known("run", "memorization")]]
    diagram = assemble(STRIP, [outcome(place, "confusion") for place in range(3)], refined=False)
    panel = Panel({}, cells)
    axes = draw_phase_diagram(replace(diagram, panels=[panel])).axes[0]
    run, inferred, _ = np.asarray(axes.collections[0].get_array())[0]
    assert inferred == pytest.approx(run + 0.3 * (1 - run))
    borders = next(each for each in axes.collections if isinstance(each, LineCollection))
    assert [segment.tolist() for segment in borders.get_segments()] == [[[0.65, -0.5], [0.65, 0.5]]]


def test_the_legend_shows_both_tints_of_a_colour() -> None:
    diagram = assemble(STRIP, [outcome(place, "confusion") for place in range(3)], refined=False)
    for kinds, phase in ((("confusion",) * 3, Phase.CONFUSION), (("confusion", "memorization"), Phase.MEMORIZATION)):
        panel = Panel({}, [[_known("inferred", kind) for kind in kinds]])
        (swatch,) = (each for each in phase_handles(replace(diagram, panels=[panel])) if isinstance(each, Line2D))
        color, pale = to_rgb(swatch.get_markerfacecolor()), to_rgb(swatch.get_markerfacecoloralt())
        assert color == to_rgb(phase.color)  # a grey one only if there is no other
        assert contrast(color, pale) > 1.15


def _known(source: Source, name: str) -> Cell:
    return Cell(source, {name: 1}, 1, 0, 0, (), None, None)


def test_wilson_intervals_have_known_values() -> None:
    # Newcombe (1998), Table I: 81 of 263 and 0 of 20.
    assert wilson_interval(81, 263)[1:] == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20)[1:] == pytest.approx((0, 0.1611), abs=5e-5)
    assert all(math.isnan(bound) for bound in wilson_interval(0, 0))


def test_bounds_at_the_ends_are_exact() -> None:
    for trials in range(1, 200):
        assert wilson_interval(0, trials)[:2] == (0.0, 0.0), "not what rounding leaves of a zero"
        assert wilson_interval(trials, trials)[::2] == (1.0, 1.0)
        for successes in range(1, trials):
            fraction, low, high = wilson_interval(successes, trials)
            assert 0 < low < fraction < high < 1

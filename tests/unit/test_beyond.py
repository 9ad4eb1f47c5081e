"""Helpers of the experiments beyond the paper, on cases whose answers are known."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.synthetic import fill

from grokscope.experiments.beyond import modulus, probability
from grokscope.experiments.beyond.fate import DRAWN_STEPS, STEPS, first_step, foretelling, rule_fit
from grokscope.experiments.beyond.noise import answers
from grokscope.experiments.beyond.probability import CORRUPTION, chance_to_generalise, transition_width
from grokscope.experiments.beyond.prunable import Prunable, prunable
from grokscope.experiments.beyond.prunable_picture import draw_prunable
from grokscope.experiments.evidence import Evidence, Needs
from grokscope.experiments.scale import QUICK, TINY, scales_of
from grokscope.phases import Phase
from grokscope.result import analytic_result
from grokscope.spec import RunSpec
from grokscope.sweeps.diagram import Cell


@pytest.mark.parametrize(
    ("chances", "width"),
    [
        ([1.0, 1.0, 0.0, 0.0], 1),
        ([1.0, 0.6, 0.4, 0.0], 3),
        ([0.0, 0.0, 0.5, 1.0], 2),  # it may rise as well
        ([1.0, 0.5, 0.9, 0.1], 3),  # from the first doubt to the last
        ([1.0, 1.0, 1.0, 0.5], math.nan),  # the other side is not on the line
        ([0.5, 0.5, 0.0, 0.0], math.nan),
        ([1.0, 1.0, 1.0, 1.0], math.nan),
        ([0.0, 0.0, 0.0, 0.0], math.nan),
        ([1.0], math.nan),
        ([math.nan, 1.0, 0.0, 0.0], math.nan),
    ],
)
def test_transition_width(chances: list[float], width: float) -> None:
    assert transition_width(list(range(len(chances))), chances) == pytest.approx(width, nan_ok=True)


def test_chance_to_generalise_counts_three_phases() -> None:
    counts = {"coexistence": 1, "full_inversion": 2, "memorization": 1}
    cell = Cell("run", counts, 4, 0, 0, (), None, None)
    assert chance_to_generalise(cell) == 0.75


def test_rule_fit_tells_phases_that_fit_from_those_that_do_not() -> None:
    p, frequency = 23, 3
    angles = 2 * np.pi * frequency * np.arange(p) / p
    u, v = np.cos(angles + 0.4), np.cos(angles + 0.9)
    w = np.stack([np.cos(angles + 1.3), np.cos(angles + 1.3 + np.pi)], axis=1)  # [p, 2]
    spec = RunSpec().updated({"task.modulus": p, "model.width": 2})
    fits, does_not = rule_fit(spec, {"U": np.stack([u, u]), "V": np.stack([v, v]), "W": w})
    assert fits == pytest.approx((p / 2) ** 3)
    assert does_not == pytest.approx(0, abs=1e-6)  # other waves, which are not there


def test_rule_fit_is_what_a_neuron_adds_to_the_true_sums() -> None:
    p = 23
    angles = 2 * np.pi * 3 * np.arange(p) / p
    u, v, w = np.cos(angles + 0.4), np.cos(angles + 0.9), np.cos(angles + 0.6)
    m, n = np.divmod(np.arange(p * p), p)
    added = (u[m] * v[n] * w[(m + n) % p]).sum()
    spec = RunSpec().updated({"task.modulus": p, "model.width": 1})
    (fit,) = rule_fit(spec, {"U": u[None], "V": v[None], "W": w[:, None]})
    assert fit * 2 / p == pytest.approx(added)


def test_foretelling_is_perfect_when_a_feature_orders_the_neurons() -> None:
    generalising = np.array([True, False, False])
    ages = {0: {"x": np.array([0.0, 1.0, 2.0])}, 5: {"x": np.array([3.0, 1.0, 2.0])}}
    assert foretelling(ages, generalising) == {"x": {0: 0.0, 5: 1.0}}
    assert math.isnan(foretelling(ages, np.zeros(3, bool))["x"][0])


@pytest.mark.parametrize(
    ("aurocs", "step"),
    [
        ({0: 0.5, 10: 0.95, 20: 0.8, 30: 0.92, 40: 0.99}, 30),
        ({0: 0.9}, 0),
        ({0: 0.95, 10: 0.5}, math.nan),
        ({0: math.nan}, math.nan),
    ],
)
def test_first_step(aurocs: dict[int, float], step: float) -> None:
    assert first_step(aurocs) == pytest.approx(step, nan_ok=True)


def test_the_analytic_network_answers_with_the_truth_and_can_be_pruned() -> None:
    result = analytic_result(modulus=23, width=400)
    assert answers(result) == {"truth": 1.0, "truth + 1": 0.0, "another": 0.0}
    assert all(math.isnan(share) for share in answers(result, affected=False).values())
    found = prunable(result)
    assert found.low_ipr == 0
    assert 0.2 < found.fraction < 1


def test_answers_see_a_second_rule() -> None:
    """A network whose embedding of m = 0 … 4 is that of m + 1 says truth + 1 there, and the truth elsewhere."""
    result = analytic_result(modulus=23, width=400)
    weights = dict(result.trained_weights())
    weights["U"] = weights["U"].copy()
    weights["U"][:, :5] = weights["U"][:, 1:6].copy()
    spec = result.spec.updated({"task.corrupted_operands": tuple(range(5))})
    shifted = replace(result, weights=weights, spec=spec)
    assert answers(shifted)["truth + 1"] == 1
    assert answers(shifted, affected=False)["truth"] == 1


def test_a_line_keeps_points_and_seeds_that_a_diagram_does_not() -> None:
    assert [len(axis) for axis in CORRUPTION.axes] == [25, 2, 20]
    assert [len(axis) for axis in QUICK.diagram(CORRUPTION).axes] == [9, 2, 4]
    assert [len(axis) for axis in scales_of("quick", seeds=9)[0].diagram(CORRUPTION).axes] == [9, 2, 9]
    assert [len(axis) for axis in scales_of("paper", grid="3x3")[0].diagram(CORRUPTION).axes] == [25, 2, 20]


def test_networks_that_a_scale_makes_the_same_are_needed_once() -> None:
    needs = Needs(networks=tuple(RunSpec().updated({"training.steps": steps}) for steps in (100, 500, 2000)))
    assert [spec.training.steps for spec in needs.specs(TINY)] == [100, 150]


def in_legend(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.legends[0].get_texts()}


def test_legends_list_the_phases_that_occur(tmp_path: Path) -> None:
    store = fill(tmp_path, modulus.needs(TINY), TINY)
    fill(tmp_path, probability.needs(TINY), TINY)
    evidence, labels = Evidence(store, TINY), {phase.value: phase.label for phase in Phase}
    moduli = modulus.draw(evidence)
    lines = map(evidence.diagram, probability.needs(TINY).diagrams)
    counted = {phase for line in lines for cell in line.all_cells() for phase, count in cell.counts.items() if count}
    for drawing, found in ((moduli, set(moduli.data["phase"])), (probability.draw(evidence), counted)):
        assert in_legend(drawing.figure) & set(labels.values()) == {labels[str(phase)] for phase in found}


def test_what_can_be_pruned_is_drawn_at_true_places_and_kinds_are_not_joined() -> None:
    corruptions, operations = (0.0, 0.1, 0.35), ("add", "x2+y2")
    found: dict[str, dict[float, dict[object, Prunable]]] = {
        "task.corruption": {0.0: dict.fromkeys(corruptions, Prunable(0.8, 0.7))},
        "task.operation": {0.0: dict.fromkeys(operations, Prunable(0.8, 0.7))},
    }
    figure = draw_prunable(found)
    numbers, kinds = (axes.lines[0] for axes in figure.axes)
    assert (list(np.asarray(numbers.get_xdata())), numbers.get_linestyle()) == ([*corruptions], "-")
    assert kinds.get_linestyle() == "None"
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["add", "x² + y²"]
    assert "does not generalise" not in in_legend(figure)
    found["task.operation"][0.0]["x2+y2"] = Prunable(math.nan, 1.0)
    assert "does not generalise" in in_legend(draw_prunable(found))


def test_steps_that_claims_look_at_are_drawn() -> None:
    assert {*STEPS} <= {*DRAWN_STEPS}

"""Sweep plans: from a file or a name to specs."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope import RunSpec, SpecError, StoreError
from grokscope.experiments.catalogue import SWEEPS
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.values import axis_values


def plan_from(text: str, tmp_path: Path) -> Plan:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return Plan.from_file(file)


FULL = """
[base.task]
modulus = 31

[base.training]
batch_size = 64

[axes]
"task.data_fraction" = { from = 0.1, to = 0.9, count = 17 }
"task.corruption" = { from = 0, to = 0.1, step = 0.05 }

[[zip]]
"optimizer.weight_decay" = [0, 5]
"training.steps" = [100, 200]

[derived]
"optimizer.learning_rate" = "0.01 * sqrt(training.batch_size / 256)"
"model.width" = "2 * task.modulus + min(training.steps, 150)"
"""


def test_a_file_becomes_specs(tmp_path: Path) -> None:
    plan = plan_from(FULL, tmp_path)
    specs = list(plan.specs())
    assert plan.name == "mine"
    assert plan.size == len(specs) == 17 * 3 * 2
    assert {spec.task.data_fraction for spec in specs} == {round(0.1 + 0.05 * i, 2) for i in range(17)}
    assert {spec.task.corruption for spec in specs} == {0.0, 0.05, 0.1}
    assert {(spec.optimizer.weight_decay, spec.training.steps) for spec in specs} == {(0.0, 100), (5.0, 200)}
    assert {spec.optimizer.learning_rate for spec in specs} == {0.005}
    assert {(spec.training.steps, spec.model.width) for spec in specs} == {(100, 162), (200, 212)}


def test_networks_as_axes(tmp_path: Path) -> None:
    plan = plan_from('[base.model]\nkind = "transformer"\n[axes]\n"model.tie_weights" = [true, false]\n', tmp_path)
    assert [spec.model.tie_weights for spec in plan.specs()] == [True, False]
    assert Plan.from_dict("mine", json.loads(json.dumps(plan.to_dict()))) == plan
    for axis, message in (
        ('"task.corruption" = [true]', "True is not allowed"),
        ('"model.heads" = [3]', "it means nothing"),
    ):
        with pytest.raises(SpecError, match=message):
            list(plan_from(f"[axes]\n{axis}\n", tmp_path).specs())
    deeper = plan_from('[axes]\n"model.depth" = [2, 3]\n', tmp_path)
    assert [spec.model.activation for spec in deeper.specs()] == ["quadratic", "relu"]


def test_places_and_specs_agree(tmp_path: Path) -> None:
    plan = plan_from(FULL, tmp_path)
    for place, spec in enumerate(plan.specs()):
        x, y, panel = plan.indices(place)
        assert spec.task.data_fraction == plan.axes[0].points[x][0]
        assert spec.task.corruption == plan.axes[1].points[y][0]
        assert spec.training.steps == plan.axes[2].points[panel][1]


def test_seeds_make_an_axis(tmp_path: Path) -> None:
    plan = plan_from('seeds = 2\n[base.training]\nseed = 7\n[axes]\n"task.corruption" = [0, 0.5]\n', tmp_path)
    assert [(spec.task.corruption, spec.training.seed) for spec in plan.specs()] == [
        (0.0, 7), (0.5, 7), (0.0, 8), (0.5, 8),
    ]  # fmt: skip
    assert plan.with_seeds(3).size == 6


def test_a_plan_survives_the_store(tmp_path: Path) -> None:
    plan = plan_from(FULL, tmp_path).with_seeds(2)
    again = Plan.from_dict("mine", plan.to_dict())
    assert [spec.run_id for spec in again.specs()] == [spec.run_id for spec in plan.specs()]


def test_set_fixes_axes_and_replaces_formulas(tmp_path: Path) -> None:
    plan = plan_from(FULL, tmp_path).with_fields(
        {"task.corruption": "0.1", "optimizer.learning_rate": "0.3", "task.modulus": "37"}
    )
    assert plan.size == 34
    specs = list(plan.specs())
    assert {(spec.task.corruption, spec.optimizer.learning_rate, spec.task.modulus) for spec in specs} == {
        (0.1, 0.3, 37)
    }
    with pytest.raises(SpecError, match=r"training\.steps changes together with optimizer\.weight_decay"):
        plan.with_fields({"training.steps": "5"})
    with pytest.raises(SpecError, match=r"task\.corruption = 2\.0 is not allowed"):
        list(plan.with_fields({"task.corruption": "2"}).specs())


@given(st.integers(1, 200), st.data())
def test_thinning_keeps_the_ends_and_the_order(size: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, size))
    thinned = [
        int(str(value)) for (value,) in Axis(("training.seed",), tuple((i,) for i in range(size))).thinned(count).points
    ]
    assert len(thinned) == count
    assert thinned == sorted(set(thinned))
    assert thinned[0] == 0
    if count > 1:
        assert thinned[-1] == size - 1
        gaps = {after - before for before, after in pairwise(thinned)}
        assert max(gaps) - min(gaps) <= 1


def test_lists_are_values_too(tmp_path: Path) -> None:
    plan = plan_from('[axes]\n"task.corrupted_operands" = [[1, 2], [3]]\n', tmp_path)
    assert [spec.task.corrupted_operands for spec in plan.specs()] == [(1, 2), (3,)]
    again = Plan.from_dict("mine", json.loads(json.dumps(plan.to_dict())))
    assert again == plan


def test_ranges_are_exact(tmp_path: Path) -> None:
    plan = plan_from(
        '[axes]\n"optimizer.epsilon" = { from = 1e-9, to = 1.5e-9, count = 3 }\n'
        '"task.corruption" = { from = 0.1, to = 0.7, step = 0.3 }\n',
        tmp_path,
    )
    assert [value for (value,) in plan.axes[0].points] == [1e-9, 1.25e-9, 1.5e-9]
    assert [value for (value,) in plan.axes[1].points] == [0.1, 0.4, 0.7]


def test_seeds_go_on_from_the_seed_that_was_set(tmp_path: Path) -> None:
    plan = plan_from('seeds = 3\n[axes]\n"task.corruption" = [0]', tmp_path).with_fields({"training.seed": "5"})
    assert [spec.training.seed for spec in plan.with_seeds(2).specs()] == [5, 6]


@pytest.mark.parametrize("formula", ["9 ** 9 ** 9", "(0 - 8) ** 0.5", "log(0)"])
def test_formulas_without_a_value(formula: str, tmp_path: Path) -> None:
    plan = plan_from(f'[axes]\n"task.modulus" = [5]\n[derived]\n"model.width" = "{formula}"', tmp_path)
    with pytest.raises(SpecError, match=r"derived model\.width"):
        list(plan.specs())


@pytest.mark.parametrize("name", ["", " ", "../up", "[red]x", "a b", "\udcff"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(SpecError, match="cannot be called"):
        Plan(name, axes=(Axis(("training.seed",), ((0,),)),))


def test_a_file_name_becomes_a_name(tmp_path: Path) -> None:
    file = tmp_path / "my first sweep.toml"
    file.write_text('[axes]\n"task.modulus" = [5]')
    assert Plan.from_file(file).name == "my-first-sweep"


def test_the_grid_of_the_paper() -> None:
    full = SWEEPS["fig3a"]
    assert full.size == 17 * 19 * 4
    thinned = full.with_grid("5x3")
    assert [value for (value,) in thinned.axes[0].points] == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert [value for (value,) in thinned.axes[1].points] == [0.0, 0.45, 0.9]
    by_default = next(iter(full.specs()))
    assert by_default == RunSpec().updated(
        {"task.data_fraction": 0.1, "task.corruption": 0.0, "optimizer.weight_decay": 0.0}
    )
    assert {spec.model.dropout for spec in SWEEPS["fig3b"].specs()} == {0, 0.3, 0.6, 0.9}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[axes]\n"task.modulo" = [3]', r"mine\.toml: unknown key task\.modulo.*did you mean 'modulus'"),
        ('[axes]\n"task.modulus" = []', r"the axis task\.modulus is empty"),
        ('[axes]\n"task.modulus" = [7, 5, 7]', r"the axis task\.modulus has 7 twice"),
        ('[axes]\n"task.corruption" = [0, 0.0]', r"the axis task\.corruption has 0 twice"),
        ('[axes]\n"task.modulus" = 5', r"the axis task\.modulus must be a list, or a range"),
        ("[axis]\n", r"unknown key axis: .*did you mean 'axes'"),
        ("axes = 3\n", r"axes must be a table"),
        ("[axes]\n", r"has no axes; a single run is `grokscope train`"),
        ("[axes\n", r"not valid TOML"),
        ('[axes]\n"task.modulus" = [5]\n[[zip]]\n"task.modulus" = [7]', r"has task\.modulus twice"),
        (
            '[[zip]]\n"task.modulus" = [5]\n"model.width" = [7, 8]',
            r"equally many values: task\.modulus 1, model\.width 2",
        ),
        ('[axes]\n"task.corruption" = { from = 0, to = 1 }', r"needs numbers from, to, and either count or step"),
        ('[axes]\n"task.corruption" = { from = 0, to = 1, count = 2, step = 1 }', r"either count or step"),
        (
            '[axes]\n"task.corruption" = { from = 0, to = 1, cout = 2 }',
            r"unknown key cout: a range has from, to, count, step, log; did you mean 'count'",
        ),
        ('[axes]\n"task.corruption" = { from = 0, to = 1, step = 0 }', r"a step above 0"),
        ('[axes]\n"training.seed" = { from = 1, to = 2000000, step = 1 }', r"more than 150,000 values"),
        (
            '[axes]\n"training.seed" = { from = 1, to = 2000, step = 1 }\n'
            '"model.width" = { from = 1, to = 2000, step = 1 }',
            r"4,000,000 runs \(2000 × 2000\); at most 150,000",
        ),
        ('[axes]\n"task.modulus" = [5]\n[derived]\n"model.width" = "2 *"', r"not a formula"),
        ('[axes]\n"task.modulus" = [5]\n[derived]\n"model.width" = "open(task.modulus)"', r"unknown function open"),
        ('[axes]\n"task.modulus" = [5]\n[derived]\n"model.width" = "task.modulo"', r"unknown key task\.modulo"),
        ('[axes]\n"task.modulus" = [5]\n[derived]\n"model.width" = "().__class__"', r"is not allowed: a formula has"),
        ('[axes]\n"task.corruption" = { from = 0, to = 1, step = 1e-320 }', r"more than 150,000 values"),
        ('[axes]\n"task.corruption" = { from = 0, to = 1, count = 2000000 }', r"2,000,000 values; at most 150,000"),
        (f'[axes]\n"training.seed" = {{ from = 0, to = 1{"0" * 400}, count = 2 }}', r"needs numbers from, to"),
        ('[axes]\n"task.modulus" = [{ a = 1 }]', r"the axis task\.modulus has the unknown key a"),
        ("[axes]\ntask.corruption = [0, 0.3]", r'quote the key: "task\.corruption" = …'),
        ("[[zip]]\ntask.corruption = [0, 0.3]", r'quote the key: "task\.corruption" = …'),
        ('[axes]\n"task.modulus" = [5]\n[derived]\nmodel.width = "7"', r'quote the key: "model\.width" = …'),
        ("[[cases]]\nmodel.kind = 'mlp'", r'quote the key: "model\.kind" = …'),
        ("cases = [3]", r"each \[\[cases\]\] is a table of fields"),
        (
            "[[cases]]\n'model.width' = { from = 1, to = 2, count = 2 }",
            r"model\.width in \[\[cases\]\] must be a value",
        ),
        ("[[cases]]\n'model.kind' = 'mlpp'", r"model\.kind = 'mlpp' is not allowed"),
        ('[axes]\n"task.corruption" = { from = 0, to = 1, count = 3, log = true }', r"needs from and to above 0"),
        ('[axes]\n"task.modulus" = { from = 1, to = 9, step = 3, log = true }', r"is logarithmic: .* and a count"),
        ('[axes]\n"task.modulus" = { from = 1, to = 9, count = 3, log = 2 }', r"must be true or false"),
        ('[axes]\n"task.corrupted_operands" = [[1, [2]]]', r"which no field takes"),
        ("seeds = true\n", r"seeds must be a whole number"),
        (
            '[axes]\n"task.modulus" = [5]\n[derived]\n"model.width" = "2 * task.modulus"\n'
            '"training.steps" = "model.width"',
            r"derived training\.steps uses model\.width, which is derived itself",
        ),
        ('seeds = 0\n[axes]\n"task.modulus" = [5]', r"seeds must be at least 1"),
        ("[base.task]\nmodulus = -1\n", r"task\.modulus = -1 is not allowed"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=message) as error:
        plan_from(text, tmp_path)
    assert "\n" not in str(error.value)


def test_a_value_that_comes_again_is_found_among_many() -> None:
    with pytest.raises(SpecError, match=r"the axis training\.seed has 99999 twice"):
        Plan("mine", axes=(Axis.over("training.seed", [*range(100_000), 99_999]),))


def test_cells_are_made_of_shared_sections(tmp_path: Path) -> None:
    plan = plan_from(FULL, tmp_path).with_seeds(2)
    specs = list(plan.specs())
    assert len({id(spec.task) for spec in specs}) == 17 * 3
    assert len({id(spec.optimizer) for spec in specs}) == 2
    formula = {"optimizer.learning_rate": 0.005}
    for place, spec in enumerate(specs):
        values = {k: v for axis, i in zip(plan.axes, plan.indices(place), strict=True) for k, v in axis.at(i).items()}
        alone = plan.base.updated(values | formula | {"model.width": spec.model.width})
        assert (spec, spec.run_id) == (alone, alone.run_id)


def test_a_damaged_definition_is_one_line() -> None:
    content: Any
    for content in (
        {},
        {"axes": 3},
        {"axes": [{"fields": ["training.seed"]}]},
        {"base": [], "axes": [], "derived": {}},
    ):
        with pytest.raises(StoreError, match="the sweep mine is damaged in the store"):
            Plan.stored("mine", content)


def test_mistakes_that_show_in_a_spec(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"model\.width = 'wide' is not allowed"):
        list(plan_from('[axes]\n"model.width" = [5, "wide"]', tmp_path).specs())
    with pytest.raises(SpecError, match=r"training\.batch_size is None, not a number"):
        list(
            plan_from(
                '[axes]\n"task.modulus" = [5]\n[derived]\n"model.width" = "training.batch_size"', tmp_path
            ).specs()
        )
    with pytest.raises(SpecError, match=r"derived model\.width = .*division"):
        list(
            plan_from(
                '[axes]\n"task.modulus" = [5]\n[derived]\n"model.width" = "1 / (5 - task.modulus)"', tmp_path
            ).specs()
        )


@pytest.mark.parametrize("grid", ["5", "5x", "0x5", "axb", "5x5x5"])
def test_grids_that_are_none(grid: str) -> None:
    with pytest.raises(SpecError, match="must be two numbers such as 5x5"):
        SWEEPS["fig3a"].with_grid(grid)


def test_grids_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"task\.corruption has 19 values"):
        SWEEPS["fig3a"].with_grid("17x20")
    with pytest.raises(SpecError, match=r"mine has no task\.data_fraction"):
        plan_from('[axes]\n"task.corruption" = [0]', tmp_path).with_grid("1x1")


def test_a_plan_that_is_made_like_a_sweep_says_how_plans_are_made() -> None:
    axes: Any = {"task.corruption": [0, 0.2]}
    with pytest.raises(SpecError, match=r"Plan\.over"):
        Plan("mine", RunSpec(), axes)
    with pytest.raises(SpecError, match=r"Plan\.over"):
        Plan(axes)


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ({"from": 0.1, "to": 100, "count": 4, "log": True}, [0.1, 1, 10, 100]),
        ({"from": 100, "to": 1, "count": 3, "log": True}, [100, 10, 1]),
        ({"from": 2, "to": 9, "count": 1, "log": True}, [2]),
        ({"from": 0.1, "to": 100, "count": 7, "log": True}, [0.1, 0.316227766, 1, 3.16227766, 10, 31.6227766, 100]),
        ([0, {"from": 1, "to": 100, "count": 3, "log": True}, 1000], [0, 1, 10, 100, 1000]),
        ([0, {"from": 1, "to": 2, "step": 0.5}], [0, 1, 1.5, 2]),
    ],
)
def test_axes_may_be_logarithmic_and_mixed(content: object, values: list[float]) -> None:
    plan = Plan.over({"optimizer.weight_decay": content})  # type: ignore[dict-item]
    assert [spec.optimizer.weight_decay for spec in plan.specs()] == values
    assert Plan.from_dict("mine", {"axes": {"optimizer.weight_decay": content}}).axes == plan.axes


def test_a_logarithmic_axis_of_whole_numbers_has_whole_numbers() -> None:
    plan = Plan.over({"model.width": {"from": 10, "to": 1000, "count": 5, "log": True}})
    assert [spec.model.width for spec in plan.specs()] == [10, 32, 100, 316, 1000]


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 20))
def test_logarithms_are_evenly_spaced(low: float, high: float, count: int) -> None:
    values = axis_values("optimizer.weight_decay", {"from": low, "to": high, "count": count, "log": True})
    logarithms = np.log(np.array(values, float))
    assert len(values) == count
    np.testing.assert_allclose(logarithms, np.linspace(np.log(low), np.log(high), count), atol=1e-8)


CASES = """
[base.task]
modulus = 11
[base.training]
batch_size = 16
[axes]
"task.corruption" = [0, 0.3]
[[cases]]
"model.kind" = "mlp"
"model.width" = 64
[[cases]]
"model.kind" = "transformer"
"model.embed" = 32
"model.heads" = 2
"training.batch_size" = 8
"""


def test_each_case_has_fields_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "kinds.toml").write_text(CASES)
    plan = Plan.from_file(tmp_path / "kinds.toml")
    base = RunSpec().updated({"task.modulus": 11, "training.batch_size": 16})
    mlp = base.updated({"model.width": 64})
    transformer = base.updated({"model.kind": "transformer", "model.embed": 32, "model.heads": 2})
    transformer = transformer.updated({"training.batch_size": 8})
    expected = [spec.updated({"task.corruption": xi}) for spec in (mlp, transformer) for xi in (0, 0.3)]
    assert [spec.run_id for spec in plan.specs()] == [spec.run_id for spec in expected]
    again = Plan.stored("kinds", json.loads(json.dumps(plan.to_dict())))
    assert [spec.run_id for spec in again.specs()] == [spec.run_id for spec in expected]


def test_a_case_with_a_field_of_another_kind_is_refused(tmp_path: Path) -> None:
    plan = plan_from(CASES.replace('"model.width" = 64', '"model.width" = 64\n"model.embed" = 8'), tmp_path)
    with pytest.raises(SpecError, match=r"model\.embed = 8 is not allowed: it means nothing for model\.kind = 'mlp'"):
        list(plan.specs())


def test_a_dict_in_the_form_of_a_file_is_a_plan() -> None:
    content = {"base": {"task": {"modulus": 11}}, "axes": {"task.corruption": [0, 0.3]}, "seeds": 3}
    plan = Plan.from_dict("mine", content)
    assert (plan.size, plan.base.task.modulus) == (6, 11)
    with pytest.raises(SpecError, match=r"unknown key axs: a sweep has .*did you mean 'axes'"):
        Plan.from_dict("mine", {"axs": {}})
    with pytest.raises(SpecError, match="a plan is made of a dict"):
        Plan.from_dict("mine", ["axes"])  # type: ignore[arg-type]

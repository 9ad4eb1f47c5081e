import math
from itertools import pairwise
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope import ModelSpec, OptimizerSpec, RunSpec, SpecError, TaskSpec, TrainingSpec
from grokscope.spec import field_paths


@st.composite
def run_specs(draw: st.DrawFn) -> RunSpec:
    modulus = draw(st.integers(5, 200))
    kind: Any = draw(st.sampled_from(["adamw", "adam", "sgd"]))
    return RunSpec(
        task=TaskSpec(
            operation=draw(st.sampled_from(["add", "subtract", "multiply", "x2+y2", "x2+xy+y2"])),
            modulus=modulus,
            data_fraction=draw(st.floats(0.1, 0.99)),
            corruption=draw(st.floats(0, 1)),
            corrupted_operands=draw(
                st.none() | st.lists(st.integers(0, modulus - 1), min_size=1, max_size=5).map(tuple)
            ),
        ),
        model=ModelSpec(
            width=draw(st.integers(1, 10_000)),
            dropout=draw(st.floats(0, 1, exclude_max=True)),
            norm=draw(st.sampled_from(["none", "layer"])),
        ),
        optimizer=OptimizerSpec(
            kind=kind,
            weight_decay=draw(st.floats(0, 100)),
            momentum=draw(st.floats(0, 0.99)) if kind == "sgd" else 0.0,
        ),
        training=TrainingSpec(
            loss=draw(st.sampled_from(["mse", "cross-entropy"])),
            steps=draw(st.integers(1, 10_000)),
            seed=draw(st.integers(0, 2**63 - 1)),
            batch_size=draw(st.none() | st.just(2)),
        ),
    )


@given(run_specs())
def test_json_and_toml_give_the_same_spec_back(spec: RunSpec) -> None:
    assert RunSpec.from_json(spec.to_json()) == spec
    assert RunSpec.from_toml(spec.to_toml()) == spec
    assert RunSpec.from_toml(spec.to_toml()).run_id == spec.run_id


def test_run_id_is_pinned() -> None:
    """These values must never change: they name runs in stores that exist."""
    assert RunSpec().run_id == "41630c7218e55b5d"
    full = RunSpec(
        task=TaskSpec(operation="multiply", modulus=31, data_fraction=0.8, corruption=0.1, corrupted_operands=(3, 1)),
        model=ModelSpec(width=64, activation="relu", dropout=0.3, norm="layer", parameterization="standard"),
        optimizer=OptimizerSpec(kind="sgd", learning_rate=0.5, weight_decay=1e-4, momentum=0.9),
        training=TrainingSpec(loss="cross-entropy", steps=17, batch_size=32, seed=2**40, measure_every=5),
    )
    assert full.run_id == "1a390fe4e86e4907"


def test_run_ids_of_other_networks_are_pinned() -> None:
    deep = RunSpec(model=ModelSpec(depth=3, parameterization="lazy", norm="batch"))
    assert deep.run_id == "e1cb21c0f8d3858c"
    transformer = RunSpec(
        model=ModelSpec(
            kind="transformer", embed=64, heads=8, layers=2, tie_weights=True, scaling="sqrt-d", norm="layer"
        ),
        optimizer=OptimizerSpec(weight_decay=2, decay_embeddings=False),
    )
    assert transformer.run_id == "9ef5b68b8b858346"


def test_an_activation_that_is_not_named_is_the_paper_s() -> None:
    assert RunSpec().updated({"model.depth": 3}).model.activation == "relu"
    assert RunSpec().updated({"model.kind": "transformer"}).model.activation == "relu"
    assert RunSpec.from_toml("[model]\ndepth = 4").model.activation == "relu"
    named = RunSpec(model=ModelSpec(activation="quadratic"))
    assert named.run_id == RunSpec().run_id
    assert named.updated({"model.depth": 3}).model.activation == "quadratic"
    assert RunSpec(model=ModelSpec(depth=3)).run_id == RunSpec(model=ModelSpec(depth=3, activation="relu")).run_id
    stored = RunSpec.from_json(RunSpec(model=ModelSpec(depth=3, activation="gelu")).to_json())
    assert stored.updated({"training.seed": 1}).model.activation == "gelu"


def test_what_is_written_must_mean_something_even_at_its_default() -> None:
    for path, text in {"model.heads": "4", "model.tie_weights": "false", "optimizer.momentum": "0"}.items():
        with pytest.raises(SpecError, match=f"{path} = .* it means nothing"):
            RunSpec().updated_from_text({path: text})
    assert RunSpec().updated_from_text({"model.kind": "transformer", "model.tie_weights": "True"}).model.tie_weights


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("task.modulus", 89),
        ("task.corruption", 0.3500001),
        ("model.activation", "relu"),
        ("model.depth", 3),
        ("model.kind", "transformer"),
        ("optimizer.weight_decay", 5),
        ("training.seed", 1),
        ("training.measure_every", 10),
        ("training.measure_per_decade", 8),
    ],
)
def test_every_difference_makes_another_run(path: str, value: object) -> None:
    assert RunSpec().updated({path: value}).run_id != RunSpec().run_id


def test_equal_specs_are_one_run() -> None:
    zero, minus_zero = (RunSpec(task=TaskSpec(corruption=value)) for value in (0.0, -0.0))
    assert zero == minus_zero
    assert zero.run_id == minus_zero.run_id


def test_ways_of_writing_the_same_spec_are_one_run() -> None:
    assert (
        RunSpec(optimizer=OptimizerSpec(weight_decay=5)).run_id
        == RunSpec.from_dict({"optimizer": {"weight_decay": 5.0}}).run_id
    )
    assert TaskSpec(corrupted_operands=(2, 1, 2)) == TaskSpec(corrupted_operands=(1, 2))
    underscore = RunSpec.from_dict({"training": {"loss": "cross_entropy"}})
    assert underscore.training == TrainingSpec(loss="cross-entropy")


def test_a_spec_is_frozen() -> None:
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        RunSpec().task.modulus = 5  # type: ignore[attr-defined]


BAD = [
    ({"task": {"data_fraction": 0}}, ["task.data_fraction", "0", "greater than 0 and less than 1"]),
    ({"task": {"data_fraction": 1.0}}, ["task.data_fraction", "1.0", "less than 1"]),
    ({"task": {"data_fraction": math.nan}}, ["task.data_fraction", "nan"]),
    ({"task": {"corruption": -0.1}}, ["task.corruption", "-0.1", "at least 0 and at most 1"]),
    ({"task": {"corruption": 1.01}}, ["task.corruption", "1.01"]),
    ({"task": {"modulus": 1}}, ["task.modulus", "1", "at least 2"]),
    ({"task": {"modulus": 9.5}}, ["task.modulus", "9.5", "whole number"]),
    ({"task": {"modulus": True}}, ["task.modulus", "True", "whole number"]),
    ({"task": {"modulus": "97"}}, ["task.modulus", "'97'", "whole number"]),
    ({"task": {"operation": "divide", "modulus": 98}}, ["task.modulus", "98", "prime", "101"]),
    ({"task": {"operation": "mulitply"}}, ["task.operation", "'mulitply'", "one of add", "did you mean 'multiply'?"]),
    ({"task": {"modulus": 2, "data_fraction": 0.2}}, ["task.data_fraction", "4 pairs", "at least 0.25"]),
    ({"task": {"corrupted_operands": []}}, ["task.corrupted_operands"]),
    ({"task": {"corrupted_operands": [97]}}, ["task.corrupted_operands", "97", "0 … 96"]),
    ({"task": {"corrupted_operands": ["a"]}}, ["task.corrupted_operands", "list of whole numbers"]),
    ({"task": {"moduls": 5}}, ["task.moduls", "did you mean 'modulus'?"]),
    ({"task": {"weight_decay": 5}}, ["task.weight_decay", "did you mean 'optimizer.weight_decay'?"]),
    ({"task": 5}, ["task", "5", "table"]),
    ({"optimiser": {}}, ["optimiser", "did you mean 'optimizer'?"]),
    ({"model": {"dropout": 1.0}}, ["model.dropout", "1.0", "less than 1"]),
    ({"model": {"width": 0}}, ["model.width", "0", "at least 1"]),
    ({"model": {"norm": "batch"}, "training": {"batch_size": 1}}, ["training.batch_size", "1", "at least 2"]),
    ({"training": {"batch_size": 4705}}, ["training.batch_size", "4705", "4704"]),
    ({"training": {"steps": 0}}, ["training.steps", "0", "at least 1"]),
    ({"training": {"seed": -1}}, ["training.seed", "-1"]),
    ({"optimizer": {"momentum": 0.9}}, ["optimizer.momentum", "0.9", "'adamw'"]),
    ({"optimizer": {"kind": "sgd", "beta1": 0.5}}, ["optimizer.beta1", "0.5", "'sgd'"]),
    ({"self": {}}, ["unknown key self"]),
    ({"task": {"self": 1}}, ["unknown key task.self"]),
    ({"task": {"operation": "ADD"}}, ["'ADD'", "did you mean 'add'?"]),
    ({"optimizer": {"learning_rate": math.inf}}, ["optimizer.learning_rate = inf", "finite number"]),
    (
        {"model": {"norm": "batch"}, "task": {"modulus": 2, "data_fraction": 0.3}},
        ["task.data_fraction = 0.3", "one training example"],
    ),
    ({"model": {"kind": "transformer", "heads": 3}}, ["model.heads", "3", "divide model.embed = 128"]),
    ({"model": {"kind": "transformer", "embed": 2}}, ["model.heads", "4", "divide model.embed = 2"]),
    ({"model": {"kind": "transformer", "width": 100}}, ["model.width", "100", "'transformer'", "leave it out"]),
    ({"model": {"kind": "transformer", "depth": 3}}, ["model.depth", "'transformer'"]),
    ({"model": {"kind": "transformer", "parameterization": "lazy"}}, ["model.parameterization", "'transformer'"]),
    ({"model": {"kind": "transformer", "norm": "batch"}}, ["model.norm", "'batch'", "none or layer"]),
    ({"model": {"embed": 64}}, ["model.embed", "64", "'mlp'"]),
    ({"model": {"tie_weights": True}}, ["model.tie_weights", "'mlp'"]),
    ({"model": {"tie_weights": 1}}, ["model.tie_weights", "'mlp'"]),
    ({"model": {"kind": "transformer", "tie_weights": 1}}, ["model.tie_weights", "must be true or false"]),
    ({"model": {"depth": 3, "scaling": "sqrt-d"}}, ["model.scaling", "'mlp'"]),
    ({"model": {"foo": 1}}, ["unknown key model.foo", "kind", "scaling"]),
    ({"model": {"depth": 1}}, ["model.depth", "1", "at least 2"]),
    ({"model": {"depth": "3"}}, ["model.depth", "'3'", "whole number"]),
    ({"model": {"kind": "transfomer"}}, ["model.kind", "did you mean 'transformer'?"]),
    ({"optimizer": {"decay_embeddings": False}}, ["optimizer.decay_embeddings", "'mlp'"]),
    ({"model": {"depth": 3}, "training": {"seeding": "reference"}}, ["training.seeding", "two-layer"]),
    ({"optimizer": {"learning_rate": 0}}, ["optimizer.learning_rate", "greater than 0"]),
    ({"task": {"corruption_kind": "asymmetric"}, "training": {"seeding": "reference"}}, ["training.seeding"]),
]


@pytest.mark.parametrize(("content", "expected"), BAD)
def test_a_bad_spec_is_refused_in_one_clear_line(content: dict[str, object], expected: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        RunSpec.from_dict(content)
    message = str(caught.value)
    assert "\n" not in message
    for part in expected:
        assert part in message


def test_a_path_that_names_no_field_is_refused() -> None:
    with pytest.raises(SpecError, match=r"unknown key optimizer.weight_decy.*did you mean 'weight_decay'"):
        RunSpec().updated({"optimizer.weight_decy": 5})
    with pytest.raises(SpecError, match=r"task is a section: .*task\.\w+") as caught:
        RunSpec().updated({"task": {"modulus": 5}})
    assert str(caught.value).split()[-1] in field_paths()
    with pytest.raises(SpecError, match=r"unknown key nowhere.*sections task"):
        RunSpec().updated({"nowhere": 5})
    with pytest.raises(SpecError, match=r"unknown key taks.modulo.*did you mean 'task'"):
        RunSpec().updated({"taks.modulo": 5})


def test_texts_that_are_no_spec_are_refused() -> None:
    for text in ("[task", "task = ", "[task]\nmodulus = 5\nmodulus = 7"):
        with pytest.raises(SpecError, match="not valid TOML"):
            RunSpec.from_toml(text)
    with pytest.raises(SpecError, match="not valid JSON"):
        RunSpec.from_json("{")
    with pytest.raises(SpecError, match="sections task, model"):
        RunSpec.from_json("[1]")


def test_mini_batches_see_as_much_data_as_the_paper_says() -> None:
    expected = {256: (2000, 0.01), 64: (8000, 0.005), 8: (64_000, 0.01 * math.sqrt(8 / 256))}
    for size, (steps, rate) in expected.items():
        spec = RunSpec().with_batches_of(size)
        assert (spec.training.batch_size, spec.training.steps) == (size, steps)
        assert spec.optimizer.learning_rate == pytest.approx(rate)


@given(steps=st.integers(1, 500), every=st.integers(1, 600))
def test_measured_steps(steps: int, every: int) -> None:
    measured = TrainingSpec(steps=steps, measure_every=every).measured_steps()
    assert measured == sorted(set(measured))
    assert measured[-1] == steps
    assert set(measured) - {steps} == {step for step in range(1, steps) if step <= 10 or step % every == 0}


@given(steps=st.integers(1, 20_000), every=st.integers(1, 600), each=st.integers(1, 40))
def test_steps_can_also_be_spaced_evenly_in_the_logarithm(steps: int, every: int, each: int) -> None:
    regular = TrainingSpec(steps=steps, measure_every=every)
    measured = regular.model_copy(update={"measure_per_decade": each}).measured_steps()
    assert measured == sorted(set(measured))
    assert measured[-1] == steps
    extra = set(measured) - set(regular.measured_steps())
    assert all(10 < step < steps for step in extra)
    # From 10 on no two neighbours are further apart than a step of the logarithm, but for the rounding.
    for before, after in pairwise(measured):
        assert after <= 11 or after - before <= before * (10 ** (1 / each) - 1) + 2
    assert len(extra) <= each * (math.log10(steps) + 1)

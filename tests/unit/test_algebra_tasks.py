"""Groups, polynomials and parities as tasks: the examples, what is refused, and that everything works on them."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grokscope as gs
from grokscope.groups import group_called
from grokscope.tasks.polynomial import terms_of


def answers(task: gs.Task) -> dict[tuple[float, ...], int]:
    examples = task.examples()
    return {
        tuple(inputs): label for inputs, label in zip(examples.inputs.tolist(), examples.labels.tolist(), strict=True)
    }


def small(task: gs.Task, **fields: Any) -> gs.RunSpec:
    return gs.RunSpec(
        task=task,
        model=gs.ModelSpec(width=24),
        training=gs.TrainingSpec(steps=30, measure_every=10),
    ).updated(fields)


@pytest.mark.parametrize("name", ["S4", "D5", "C6"])
def test_a_group_task_asks_for_every_product(name: str) -> None:
    table = group_called(name).table
    expected = {(a, b): table[a, b] for a, b in product(range(len(table)), repeat=2)}
    assert answers(gs.TaskSpec(kind="group", group=name)) == expected


@pytest.mark.parametrize(
    ("polynomial", "plain"),
    [
        ("x3+xy", lambda x, y: x**3 + x * y),
        ("x^2 + x*y + y^2", lambda x, y: x * x + x * y + y * y),
        ("-2x3y2 + 5y - 7", lambda x, y: -2 * x**3 * y**2 + 5 * y - 7),
        ("y", lambda x, y: y),
    ],
)
@pytest.mark.parametrize("modulus", [2, 10, 13])
def test_polynomials_are_those_of_plain_arithmetic(polynomial: str, plain: Any, modulus: int) -> None:
    expected = {(x, y): plain(x, y) % modulus for x, y in product(range(modulus), repeat=2)}
    assert answers(gs.TaskSpec(kind="polynomial", polynomial=polynomial, modulus=modulus)) == expected


@given(st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(-99, 99), min_size=1, max_size=5))
def test_a_polynomial_is_read_as_it_is_written(terms: dict[tuple[int, int], int]) -> None:
    written = " ".join(f"{factor:+d} x^{x} * y^{y}" for (x, y), factor in terms.items())
    kept = {powers: factor for powers, factor in terms.items() if factor}
    assert terms_of(written) == kept
    if kept:
        task = gs.TaskSpec(kind="polynomial", polynomial=written, modulus=7)
        assert terms_of(task.polynomial) == kept
        assert gs.TaskSpec(kind="polynomial", polynomial=task.polynomial, modulus=7) == task


@pytest.mark.parametrize("text", ["", "x3+", "x+z", "3x^y", "x3++y", "0", "x-x", "x65", "sin(x)"])
def test_what_is_no_polynomial_is_refused(text: str) -> None:
    with pytest.raises(gs.SpecError, match=r"task\.polynomial"):
        gs.TaskSpec(kind="polynomial", polynomial=text)


def test_parity_counts_only_the_relevant_bits() -> None:
    found = answers(gs.TaskSpec(kind="parity", bit_count=5, relevant_bits=2))
    assert len(found) == 32
    for bits, label in found.items():
        assert label == (bits[0] > 0) ^ (bits[1] > 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "group", "group": "A5"}, "task.group = 'A5' is not allowed: must be S2"),
        ({"kind": "group", "group": "D2"}, "task.group"),
        ({"kind": "group", "modulus": 31}, "means nothing for task.kind = 'group'"),
        ({"kind": "parity", "bit_count": 3, "relevant_bits": 4}, "there are 3 bits"),
        ({"kind": "parity", "bit_count": 40}, "at most 18"),
        ({"group": "S3"}, "means nothing for task.kind = 'modular'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(gs.SpecError) as refused:
        gs.TaskSpec(**fields)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_group_in_small_letters_is_the_same_run() -> None:
    first, second = (gs.RunSpec(task=gs.TaskSpec(kind="group", group=name)) for name in ("s4", "S4"))
    assert first.run_id == second.run_id
    assert gs.RunSpec.from_json(first.to_json()) == second


def test_residues_as_a_group_train_as_addition_does() -> None:
    """The same pairs under the same names: the same run, bit by bit, and the same IPR up to rounding."""
    added = gs.run(small(gs.TaskSpec(modulus=12)))
    grouped = gs.run(small(gs.TaskSpec(kind="group", group="C12")))
    assert grouped.engine == added.engine
    for name, array in added.trained_weights().items():
        np.testing.assert_array_equal(array, grouped.trained_weights()[name])
    assert added.neurons is not None
    assert grouped.neurons is not None
    np.testing.assert_allclose(grouped.neurons.ipr, added.neurons.ipr, rtol=1e-6)
    np.testing.assert_array_equal(grouped.neurons.frequency, added.neurons.frequency)
    np.testing.assert_allclose(
        [row.mean_ipr for row in grouped.curve], [row.mean_ipr for row in added.curve], rtol=1e-6
    )


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_a_group_trains_on_every_engine(engine: str) -> None:
    result = gs.run(small(gs.TaskSpec(kind="group", group="S3")), engine=engine)
    assert 0 < result.final.mean_ipr <= 1
    assert result.final.corrupted_accuracy >= 0


@pytest.mark.parametrize(
    "task",
    [gs.TaskSpec(kind="group", group="S4"), gs.TaskSpec(kind="polynomial", modulus=11)],
    ids=["group", "polynomial"],
)
def test_pruning_and_audits_work(task: gs.Task) -> None:
    result = gs.run(small(task))
    spec, weights = result.spec, result.trained_weights()
    orders = gs.pruning_orders(spec.model, weights, task)
    curve = gs.pruning_curves(weights, spec.model, result.dataset(), [orders["lowest_ipr"]], "mse")[0]
    assert curve.test_accuracy[0] == pytest.approx(result.final.test_accuracy)
    audit = gs.audit_labels(spec, weights, result.dataset())
    assert audit.scores["pruned_margin"].auroc is not None


def test_a_parity_trains_and_has_no_spectrum() -> None:
    result = gs.run(
        small(gs.TaskSpec(kind="parity", bit_count=8, relevant_bits=2, corruption=0.1), **{"training.steps": 300})
    )
    assert result.neurons is None
    assert result.final.test_accuracy > 0.9  # twice as good as guessing
    audit = gs.audit_labels(result.spec, result.trained_weights(), result.dataset())
    assert audit.ranked_by == "margin"


def test_a_group_has_no_phases_and_says_so() -> None:
    result = gs.run(small(gs.TaskSpec(kind="group", group="S3")))
    with pytest.raises(gs.GrokscopeError, match="no phases to show for products in S3"):
        gs.neuron_waves(result.spec.model, result.trained_weights(), result.spec.task)

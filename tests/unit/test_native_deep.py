"""The kernel's deep networks against their slow, obvious twins; any shape of them is in test_native_shapes.py."""

from typing import Any

import numpy as np
import pytest
from tests.unit.plain_networks import plain_gradient
from tests.unit.test_native_engine import OPTIMIZERS, trained_a_little, trainer, updated_by_hand

from grokscope import RunSpec, make_dataset, run
from grokscope.engines import initial_state, resolve_engine
from grokscope.engines.native_engine import NativeEngine
from grokscope.engines.state import TrainingState
from grokscope.engines.torch_engine import TorchEngine

# Weights that keep the size of what goes through a deep network with relu.
DEEP = RunSpec().updated(
    {"task.modulus": 11, "model.width": 24, "model.depth": 3, "model.parameterization": "standard"}
)


def check_gradient_and_step(spec: RunSpec, state: TrainingState | None = None, form: Any = "automatic") -> None:
    """The gradient is autograd's in double precision to 1e-5, and the step is the formula's for that gradient."""
    state = state or trained_a_little(spec)
    engine = NativeEngine(spec, make_dataset(spec.task), state, form)
    loss, gradient = engine.gradient()
    expected_loss, expected = plain_gradient(spec, state)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert gradient.keys() == expected.keys()
    for name, array in expected.items():
        assert np.abs(gradient[name] - array).max() <= 1e-5 * np.abs(array).max(), name
    assert engine.advance(1)[0] == loss
    for name, weights in updated_by_hand(spec, state, gradient).items():
        np.testing.assert_allclose(engine.weights()[name], weights, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("activation", ["quadratic", "relu"])
@pytest.mark.parametrize("depth", [3, 4])
def test_gradient_and_step(
    level: str, depth: int, activation: str, loss: str, dropout: float, batch_size: int | None, optimizer: str
) -> None:
    check_gradient_and_step(
        DEEP.updated(
            {
                "task.modulus": 17,
                "model.width": 37,
                "model.depth": depth,
                # Squares of squares of the larger weights that suit relu would diverge under sgd.
                "model.parameterization": "standard" if activation == "relu" else "paper",
                "model.activation": activation,
                "model.dropout": dropout,
                "training.loss": loss,
                "training.batch_size": batch_size,
                **OPTIMIZERS[optimizer],
            }
        )
    )


@pytest.mark.parametrize("activation", ["quadratic", "relu"])
@pytest.mark.parametrize("modulus", [3, 23])
@pytest.mark.parametrize("width", [1, 5, 24, 50])
def test_gradient_where_panels_do_not_fit(level: str, width: int, modulus: int, activation: str) -> None:
    """At modulus 23, more rows than a block has."""
    fields = {"task.modulus": modulus, "model.width": width, "model.activation": activation, "model.dropout": 0.2}
    check_gradient_and_step(DEEP.updated(fields | {"model.depth": 4}))


@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize(
    ("depth", "activation", "norm"),
    [
        (2, "gelu", "none"), (2, "gelu", "batch"), (2, "gelu", "layer"), (3, "gelu", "none"), (3, "gelu", "batch"),
        (3, "relu", "batch"), (3, "relu", "layer"), (3, "quadratic", "batch"), (3, "quadratic", "layer"),
        (5, "gelu", "layer"), (4, "relu", "batch"),
    ],
)  # fmt: skip
def test_gradient_and_step_with_norms_and_gelu(
    level: str, depth: int, activation: str, norm: str, loss: str, dropout: float, batch_size: int | None
) -> None:
    fields = {"model.depth": depth, "model.activation": activation, "model.norm": norm, "model.dropout": dropout}
    more = {"task.modulus": 19, "model.width": 37, "training.loss": loss, "training.batch_size": batch_size}
    check_gradient_and_step(DEEP.updated(fields | more | {"optimizer.learning_rate": 0.001}))


@pytest.mark.parametrize("width", [13, 24, 50])
@pytest.mark.parametrize(("norm", "activation"), [("batch", "relu"), ("layer", "gelu"), ("none", "gelu")])
def test_norms_where_panels_do_not_fit(level: str, norm: str, activation: str, width: int) -> None:
    """At modulus 23, more rows than a block has: a batch in BatchNorm is one block all the same."""
    fields = {"model.width": width, "model.norm": norm, "model.activation": activation, "task.modulus": 23}
    check_gradient_and_step(DEEP.updated(fields | {"optimizer.learning_rate": 0.001}))


VARIANTS: dict[str, dict[str, object]] = {
    "relu": {},
    "gelu": {"model.activation": "gelu", "optimizer.learning_rate": 0.001},
    "batch norm": {"model.norm": "batch", "training.batch_size": 16, "optimizer.learning_rate": 0.001},
    "layer norm, gelu": {"model.norm": "layer", "model.activation": "gelu", "optimizer.learning_rate": 0.001},
    "four layers, batch norm": {
        "model.depth": 4,
        "model.norm": "batch",
        "model.dropout": 0.1,
        "optimizer.learning_rate": 0.001,
    },
    "quadratic": {"model.activation": "quadratic", "optimizer.learning_rate": 0.001},
    "four layers": {"model.depth": 4, "optimizer.weight_decay": 5.0},
    "six layers": {"model.depth": 6, "optimizer.learning_rate": 0.001},
    "large training set": {"task.data_fraction": 0.9, "optimizer.kind": "sgd", "optimizer.momentum": 0.9},
    "mini-batch": {"training.batch_size": 8},
    "everything": {
        "model.depth": 5,
        "model.dropout": 0.2,
        "training.batch_size": 10,
        "training.loss": "cross-entropy",
        "training.seed": 2**40 + 3,
        "optimizer.learning_rate": 0.001,
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_follows_the_torch_engine(level: str, variant: str) -> None:
    spec = DEEP.updated(VARIANTS[variant])
    dataset = make_dataset(spec.task, spec.training.seed)
    fast, slow = (engine(spec, dataset, initial_state(spec)) for engine in (NativeEngine, TorchEngine))
    np.testing.assert_allclose(fast.advance(15), slow.advance(15), rtol=1e-3)
    ours, theirs = fast.state(), slow.state()
    for name, array in {**theirs.weights, **theirs.moments}.items():
        scale = np.abs(array).max() + 1e-12
        found = {**ours.weights, **ours.moments}[name]
        np.testing.assert_allclose(found / scale, array / scale, atol=0.01, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS)
def test_evaluation_is_that_of_the_torch_engine(level: str, variant: str) -> None:
    """Of the same weights, and without dropout."""
    spec = DEEP.updated(VARIANTS[variant])
    dataset, state = make_dataset(spec.task, spec.training.seed), trained_a_little(spec)
    fast, slow = (engine(spec, dataset, state) for engine in (NativeEngine, TorchEngine))
    said, expected = (engine.evaluate(dataset.test_inputs, dataset.test_labels) for engine in (fast, slow))
    np.testing.assert_allclose(said.losses, expected.losses, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(said.predictions, expected.predictions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_interrupted_and_resumed_equals_uninterrupted(variant: str) -> None:
    spec = DEEP.updated(VARIANTS[variant])
    dataset = make_dataset(spec.task, spec.training.seed)
    through, first = (NativeEngine(spec, dataset, initial_state(spec)) for _ in range(2))
    losses = through.advance(20)
    before = first.advance(7)
    second = NativeEngine(spec, dataset, first.state())
    assert losses.tolist() == [*before, *second.advance(13)]
    ours, theirs = through.state(), second.state()
    for name, array in {**ours.weights, **ours.moments}.items():
        np.testing.assert_array_equal(array, {**theirs.weights, **theirs.moments}[name], err_msg=name)


def test_a_diverging_run_is_noticed(level: str) -> None:
    """Products that overflow are NaN, and relu must not turn NaN into a harmless zero."""
    spec = DEEP.updated({"optimizer.learning_rate": 1e20, "training.steps": 30})
    for activation in ("relu", "quadratic"):
        result = run(spec.updated({"model.activation": activation}), engine="native")
        assert (result.status, result.diverged_step) == ("diverged", 2)


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("activation", ["relu", "quadratic", "gelu"])
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_auto_is_native(depth: int, activation: str, norm: str) -> None:
    fields = {"model.depth": depth, "model.activation": activation, "model.norm": norm}
    assert resolve_engine("auto", "cpu", DEEP.updated(fields)) == "native"


@pytest.mark.parametrize("kind", ["weights", "gradient", "first_moment", "second_moment", "momentum"])
def test_hidden_matrices_go_in_and_out(kind: str) -> None:
    made = trainer(depth=4, optimizer="sgd" if kind == "momentum" else "adamw")
    for name in ("H2", "H3"):
        array = np.random.default_rng(len(name)).normal(size=(8, 8)).astype(np.float32)
        made.set(kind, name, array)
        np.testing.assert_array_equal(made.get(kind, name), array)
        for shape in ((8, 7), (5, 8), (64,)):
            with pytest.raises(ValueError, match="wrong shape"):
                made.set(kind, name, np.zeros(shape, np.float32))
    assert not made.get(kind, "U").any()
    assert not made.get(kind, "W").any()


@pytest.mark.parametrize(
    ("depth", "name"), [(2, "H2"), (3, "H3"), (4, "H1"), (4, "H9"), (4, "H"), (4, "H02"), (4, "h2"), (4, "H2 ")]
)
def test_hidden_matrices_that_do_not_exist_are_refused(depth: int, name: str) -> None:
    made = trainer(depth=depth)
    with pytest.raises(ValueError, match=f"there is no array 'weights.{name}'"):
        made.get("weights", name)
    with pytest.raises(ValueError, match=f"there is no array 'weights.{name}'"):
        made.set("weights", name, np.zeros((8, 8), np.float32))

"""The kernel at any shape: against plain numpy in double precision, at every instruction level."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope.engines.native_engine import native_module

kernel = native_module()
assert kernel is not None
LEVELS = kernel.available_levels()


Matrices = dict[str, npt.NDArray[np.float64]]


def preactivations(weights: Matrices, pairs: npt.NDArray[np.int64]) -> list[npt.NDArray[np.float64]]:
    """Of each hidden layer, [rows, N]; quadratic activation, and p rows of N neurons in U and V."""
    z = [weights["U"][pairs[:, 0]] + weights["V"][pairs[:, 1]]]
    for layer in range(2, len(weights) - 1):
        z.append(z[-1] ** 2 @ weights[f"H{layer}"].T)
    return z


def gradient(weights: Matrices, pairs: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> Matrices:
    """Quadratic activation and MSE."""
    z = preactivations(weights, pairs)
    residual = z[-1] ** 2 @ weights["W"].T - np.eye(len(weights["W"]))[labels]
    upstream = 2 * residual / residual.size
    result = {"U": np.zeros_like(weights["U"]), "V": np.zeros_like(weights["V"])}
    for layer in range(len(z), 0, -1):
        name = "W" if layer == len(z) else f"H{layer + 1}"
        result[name] = upstream.T @ z[layer - 1] ** 2
        upstream = 2 * z[layer - 1] * (upstream @ weights[name])
    np.add.at(result["U"], pairs[:, 0], upstream)
    np.add.at(result["V"], pairs[:, 1], upstream)
    return result


def random_weights(generator: np.random.Generator, p: int, width: int, depth: int, scale: float) -> dict[str, Any]:
    """float32, as the kernel takes them; hidden matrices keep the size of what goes through them."""
    shapes = dict.fromkeys("UVW", (p, width)) | {f"H{layer}": (width, width) for layer in range(2, depth)}
    return {
        name: generator.normal(size=shape).astype(np.float32) * (width**-0.5 if name[0] == "H" else scale)
        for name, shape in shapes.items()
    }


@given(
    p=st.integers(2, 131),
    width=st.integers(1, 600),
    count=st.integers(1, 500),
    seed=st.integers(0, 2**32 - 1),
    level=st.sampled_from(LEVELS),
    form=st.sampled_from(["automatic", "direct", "complement", "tokens"]),
    depth=st.sampled_from([2, 2, 3, 4]),
)
@settings(max_examples=180)
def test_gradient_at_any_shape(p: int, width: int, count: int, seed: int, level: str, form: Any, depth: int) -> None:
    """Any number of pairs, also one; rows of the grid may be empty; pairs may come twice."""
    generator = np.random.default_rng(seed)
    pairs, labels = generator.integers(0, p, (count, 2)), generator.integers(0, p, count)
    trainer = make(p, width, pairs, labels, level=level, form=form, depth=depth)
    given = random_weights(generator, p, width, depth, scale=0.3)
    for name, array in given.items():
        trainer.set("weights", name, array)
        np.testing.assert_array_equal(trainer.get("weights", name), array)
    trainer.gradient()
    weights = {name: array.astype(np.float64) for name, array in given.items()}
    grid = np.stack(np.divmod(np.arange(p * p), p), axis=1)
    assert not (trainer.uses_complement and depth > 2)
    whole = gradient(weights, grid, grid[:, 0]) if trainer.uses_complement else {}
    for name, expected in gradient(weights, pairs, labels).items():
        scale = np.linalg.norm(expected)
        if trainer.uses_complement:  # a difference of sums over the full grid rounds like those sums
            scale += np.linalg.norm(whole[name]) * p * p / count
        assert np.linalg.norm(trainer.get("gradient", name) - expected) <= 1e-5 * scale + 1e-12, name
    predictions, _ = trainer.evaluate(pairs, labels)
    logits = preactivations(weights, pairs)[-1] ** 2 @ weights["W"].T
    near_best = logits[np.arange(count), predictions] >= logits.max(axis=1) - 1e-3 * np.abs(logits).max()
    assert near_best.all()


@given(
    p=st.integers(2, 40),
    width=st.integers(1, 70),
    count=st.integers(2, 120),
    seed=st.integers(0, 2**32 - 1),
    level=st.sampled_from(LEVELS),
    fields=st.fixed_dictionaries(
        {
            "activation": st.sampled_from(["quadratic", "relu"]),
            "loss": st.sampled_from(["mse", "cross-entropy"]),
            "norm": st.sampled_from(["none", "batch", "layer"]),
            "optimizer": st.sampled_from(["adamw", "adam", "sgd"]),
            "dropout_threshold": st.sampled_from([0, 20000, 65535]),
        }
    ),
    batch=st.integers(0, 120),
    depth=st.sampled_from([2, 2, 3, 5]),
)
@settings(max_examples=200)
def test_training_at_any_shape_stays_in_bounds(
    p: int, width: int, count: int, seed: int, level: str, fields: dict[str, Any], batch: int, depth: int
) -> None:
    """Steps at any shape; under `make sanitize` every access is watched. Padding stays zero, so results stay finite."""
    generator = np.random.default_rng(seed)
    pairs, labels = generator.integers(0, p, (count, 2)), generator.integers(0, p, count)
    batch = 0 if batch > count or batch == 1 else batch
    depth = depth if fields["norm"] == "none" else 2
    trainer = make(p, width, pairs, labels, level=level, batch_size=batch, depth=depth, **fields)
    for name, array in random_weights(generator, p, width, depth, scale=0.1).items():
        trainer.set("weights", name, array)
    if fields["norm"] != "none":
        trainer.set("weights", "norm_scale", np.ones(width, np.float32))
    if fields["norm"] == "batch":
        trainer.set("weights", "norm_variance", np.ones(width, np.float32))
    assert np.isfinite(trainer.advance(4)).all()
    _, losses = trainer.evaluate(pairs, labels)
    assert np.isfinite(losses).all()


@given(
    p=st.integers(2, 40),
    width=st.integers(1_900, 3_000),
    count=st.integers(1, 1_300),
    seed=st.integers(0, 2**32 - 1),
    level=st.sampled_from(LEVELS),
    loss=st.sampled_from(["mse", "cross-entropy"]),
    activation=st.sampled_from(["quadratic", "relu"]),
)
@settings(max_examples=40)
def test_slices_of_a_wide_network_add_up(
    p: int, width: int, count: int, seed: int, level: str, loss: str, activation: str
) -> None:
    """Full batches go through slices of neurons, mini-batches do not; one of all rows has the same gradient."""
    generator = np.random.default_rng(seed)
    pairs, labels = generator.integers(0, p, (count, 2)), generator.integers(0, p, count)
    given = random_weights(generator, p, width, depth=2, scale=0.1)
    found = []
    for batch in (0, count):
        trainer = make(
            p, width, pairs, labels, level=level, form="direct", loss=loss, activation=activation, batch_size=batch
        )
        for name, array in given.items():
            trainer.set("weights", name, array)
        found.append((trainer.gradient(), {name: trainer.get("gradient", name) for name in given}))
        predictions, losses = trainer.evaluate(pairs, labels)
        np.testing.assert_allclose(losses.mean(), found[-1][0], rtol=1e-5)
        assert len(predictions) == count
    (loss_of_slices, slices), (expected_loss, expected) = found
    np.testing.assert_allclose(loss_of_slices, expected_loss, rtol=1e-6)
    for name, array in expected.items():
        np.testing.assert_allclose(slices[name], array, atol=1e-5 * abs(array).max())


def make(p: int, width: int, pairs: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], **changed: Any) -> Any:
    assert kernel is not None
    fields: dict[str, Any] = {
        "level": "plain", "depth": 2, "activation": "quadratic", "loss": "mse", "norm": "none", "optimizer": "adamw",
        "form": "automatic", "batch_size": 0, "dropout_threshold": 0, "dropout_scale": 1.0, "learning_rate": 0.01,
        "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8, "momentum": 0.0, "seed": 1,
    }  # fmt: skip
    return kernel.Trainer(modulus=p, width=width, pairs=pairs, labels=labels, **fields | changed)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("level", LEVELS)
def test_levels_agree(level: str, depth: int) -> None:
    generator = np.random.default_rng(0)
    pairs, labels = generator.integers(0, 97, (700, 2)), generator.integers(0, 97, 700)
    weights = random_weights(generator, 97, 500, depth, scale=0.05)
    losses = []
    for chosen in ("plain", level):
        trainer = make(97, 500, pairs, labels, level=chosen, depth=depth)
        for name, array in weights.items():
            trainer.set("weights", name, array)
        losses.append(trainer.advance(10))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)

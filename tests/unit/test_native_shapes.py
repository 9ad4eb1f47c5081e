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


def gradient(
    u: npt.NDArray[np.float64],
    v: npt.NDArray[np.float64],
    w: npt.NDArray[np.float64],
    pairs: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
) -> dict[str, npt.NDArray[np.float64]]:
    """Quadratic activation and MSE, with p rows of N neurons in each matrix."""
    m, n = pairs.T
    z = u[m] + v[n]
    residual = z**2 @ w.T - np.eye(len(w))[labels]
    upstream = 2 * residual / residual.size
    dz = 2 * z * (upstream @ w)
    du, dv = np.zeros_like(u), np.zeros_like(v)
    np.add.at(du, m, dz)
    np.add.at(dv, n, dz)
    return {"U": du, "V": dv, "W": upstream.T @ z**2}


@given(
    p=st.integers(2, 131),
    width=st.integers(1, 600),
    count=st.integers(1, 500),
    seed=st.integers(0, 2**32 - 1),
    level=st.sampled_from(LEVELS),
    form=st.sampled_from(["automatic", "direct", "complement"]),
)
@settings(max_examples=120)
def test_gradient_at_any_shape(p: int, width: int, count: int, seed: int, level: str, form: Any) -> None:
    """Any number of pairs, also one; rows of the grid may be empty; pairs may come twice."""
    generator = np.random.default_rng(seed)
    pairs, labels = generator.integers(0, p, (count, 2)), generator.integers(0, p, count)
    trainer = make(p, width, pairs, labels, level=level, form=form)
    weights = {name: generator.normal(size=(p, width)).astype(np.float32) * 0.3 for name in "UVW"}
    for name, array in weights.items():
        trainer.set("weights", name, array)
    trainer.gradient()
    u, v, w = (array.astype(np.float64) for array in weights.values())
    grid = np.stack(np.divmod(np.arange(p * p), p), axis=1)
    whole = gradient(u, v, w, grid, grid[:, 0])
    for name, expected in gradient(u, v, w, pairs, labels).items():
        scale = np.linalg.norm(expected)
        if trainer.uses_complement:  # a difference of sums over the full grid rounds like those sums
            scale += np.linalg.norm(whole[name]) * p * p / count
        assert np.linalg.norm(trainer.get("gradient", name) - expected) <= 1e-5 * scale + 1e-12, name
    predictions, _ = trainer.evaluate(pairs, labels)
    logits = (u[pairs[:, 0]] + v[pairs[:, 1]]) ** 2 @ w.T
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
)
@settings(max_examples=200)
def test_training_at_any_shape_stays_in_bounds(
    p: int, width: int, count: int, seed: int, level: str, fields: dict[str, Any], batch: int
) -> None:
    """Steps at any shape; under `make sanitize` every access is watched. Padding stays zero, so results stay finite."""
    generator = np.random.default_rng(seed)
    pairs, labels = generator.integers(0, p, (count, 2)), generator.integers(0, p, count)
    batch = 0 if batch > count or batch == 1 else batch
    trainer = make(p, width, pairs, labels, level=level, batch_size=batch, **fields)
    for name in "UVW":
        trainer.set("weights", name, generator.normal(size=(p, width)).astype(np.float32) * 0.1)
    if fields["norm"] != "none":
        trainer.set("weights", "norm_scale", np.ones(width, np.float32))
    if fields["norm"] == "batch":
        trainer.set("weights", "norm_variance", np.ones(width, np.float32))
    assert np.isfinite(trainer.advance(4)).all()
    _, losses = trainer.evaluate(pairs, labels)
    assert np.isfinite(losses).all()


def make(p: int, width: int, pairs: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], **changed: Any) -> Any:
    assert kernel is not None
    fields: dict[str, Any] = {
        "level": "plain", "activation": "quadratic", "loss": "mse", "norm": "none", "optimizer": "adamw",
        "form": "automatic", "batch_size": 0, "dropout_threshold": 0, "dropout_scale": 1.0, "learning_rate": 0.01,
        "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8, "momentum": 0.0, "seed": 1,
    }  # fmt: skip
    return kernel.Trainer(modulus=p, width=width, pairs=pairs, labels=labels, **fields | changed)


@pytest.mark.parametrize("level", LEVELS)
def test_levels_agree(level: str) -> None:
    generator = np.random.default_rng(0)
    pairs, labels = generator.integers(0, 97, (700, 2)), generator.integers(0, 97, 700)
    weights = {name: generator.normal(size=(97, 500)).astype(np.float32) * 0.05 for name in "UVW"}
    losses = []
    for chosen in ("plain", level):
        trainer = make(97, 500, pairs, labels, level=chosen)
        for name, array in weights.items():
            trainer.set("weights", name, array)
        losses.append(trainer.advance(10))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)

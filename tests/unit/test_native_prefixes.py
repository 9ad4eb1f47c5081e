"""Every prefix of a pruning order in the kernel: against its twin in numpy and against sums in double precision."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope.compiled import native_module
from grokscope.measure.pruning.prefixes import in_numpy
from grokscope.models import Loss

kernel = native_module()
assert kernel is not None
LEVELS, evaluate_prefixes = kernel.available_levels(), kernel.evaluate_prefixes


def drawn(seed: int, n: int, width: int, p: int, norm: bool = False) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    scales = {name: generator.normal(size=width).astype(np.float32) for name in ("scale", "shift")} if norm else {}
    return scales | {
        "hidden": generator.normal(size=(n, width)).astype(np.float32),
        "output": generator.normal(size=(p, width)).astype(np.float32),
        "order": generator.permutation(width),
        "labels": generator.integers(0, p, n),
    }


def losses_of(logits: npt.NDArray[np.float64], labels: npt.NDArray[np.int64], loss: Loss) -> npt.NDArray[np.float64]:
    """As a textbook writes them."""
    wanted = np.eye(logits.shape[1])[labels]
    if loss == "mse":
        return np.asarray(((logits - wanted) ** 2).mean(axis=1))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return np.asarray(-np.log((probabilities * wanted).sum(axis=1)))


@given(
    n=st.integers(0, 70),
    width=st.integers(1, 40),
    p=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    level=st.sampled_from(LEVELS),
    loss=st.sampled_from(["mse", "cross-entropy"]),
    norm=st.booleans(),
)
@settings(max_examples=60)
def test_every_prefix_at_any_shape(n: int, width: int, p: int, seed: int, level: str, loss: Loss, norm: bool) -> None:
    case = drawn(seed, n, width, p, norm)
    predictions, losses = evaluate_prefixes(level=level, loss=loss, **case)
    twin = in_numpy(**case, loss=loss)
    assert predictions.shape == losses.shape == twin.predictions.shape == (width + 1, n)
    assert (predictions.dtype, losses.dtype) == (np.uint16, np.float32)
    np.testing.assert_allclose(losses, twin.losses, rtol=2e-5, atol=2e-5)
    for pruned in range(width + 1):
        left = case["order"][pruned:]
        hidden = np.where(np.isin(np.arange(width), left), case["hidden"], 0).astype(np.float64)  # [n, N]
        if norm:
            hidden = (hidden - hidden.mean(axis=1, keepdims=True)) / np.sqrt(hidden.var(axis=1, keepdims=True) + 1e-5)
            hidden = hidden * case["scale"] + case["shift"]
        logits = hidden[:, left] @ case["output"][:, left].T  # [n, p]
        for said in (predictions[pruned], twin.predictions[pruned]):
            # What is said has the highest logit, or one that rounding cannot tell from it.
            assert (logits[np.arange(n), said] >= logits.max(axis=1, initial=-np.inf) - 1e-4).all()
        np.testing.assert_allclose(losses[pruned], losses_of(logits, case["labels"], loss), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
def test_the_first_of_equal_maxima_wins(level: str, loss: Loss) -> None:
    """Small whole numbers, so that sums are exact; few of them, so that ties are frequent; more rows than a block."""
    generator = np.random.default_rng(0)
    hidden = generator.integers(0, 2, (75, 9)).astype(np.float32)
    output = generator.integers(-1, 2, (6, 9)).astype(np.float32)
    order, labels = generator.permutation(9), generator.integers(0, 6, 75)
    predictions, _ = evaluate_prefixes(level, hidden, output, order, labels, loss)
    ties = 0
    for pruned in range(10):
        logits = hidden[:, order[pruned:]] @ output[:, order[pruned:]].T
        ties += int(((logits == logits.max(axis=1, keepdims=True)).sum(axis=1) > 1).sum())
        assert predictions[pruned].tolist() == logits.argmax(axis=1).tolist()
    assert ties > 100
    assert not predictions[9].any()  # no neuron is left: all logits are 0


def test_large_logits_have_a_finite_cross_entropy(level: str) -> None:
    hidden, output = np.full((1, 1), 1000, np.float32), np.array([[1], [0]], np.float32)
    for label, loss in ((0, 0.0), (1, 1000.0)):
        _, losses = evaluate_prefixes(level, hidden, output, np.array([0]), np.array([label]), "cross-entropy")
        assert losses[:, 0].tolist() == pytest.approx([loss, np.log(2)])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden": np.zeros((5, 3), np.float32)}, "shapes"),
        ({"hidden": np.zeros(5, np.float32)}, "shapes"),
        ({"output": np.zeros((0, 4), np.float32)}, "outputs"),
        ({"output": np.zeros((65536, 4), np.float32)}, "outputs"),
        ({"order": np.array([0, 1, 2])}, "order"),
        ({"order": np.array([0, 1, 2, 2])}, "once"),
        ({"order": np.array([0, 1, 2, 4])}, "once"),
        ({"order": np.array([0, 1, 2, -1])}, "once"),
        ({"labels": np.array([0, 1, 2, 0])}, "labels"),
        ({"labels": np.array([0, 1, 2, 0, 3])}, "labels"),
        ({"labels": np.array([0, 1, 2, 0, -1])}, "labels"),
        ({"scale": np.zeros(4, np.float32)}, "both a scale and a shift"),
        ({"scale": np.zeros(4, np.float32), "shift": np.zeros(3, np.float32)}, "scale and shift"),
        ({"loss": "hinge"}, "loss"),
        ({"level": "avx3"}, "level"),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    case = drawn(0, 5, 4, 3) | {"level": LEVELS[0], "loss": "mse"}
    evaluate_prefixes(**case)
    with pytest.raises(ValueError, match=message):
        evaluate_prefixes(**case | changed)


@pytest.mark.parametrize("name", ["hidden", "output", "order", "labels", "scale", "shift"])
def test_other_types_and_strides_are_refused(name: str) -> None:
    case = drawn(0, 4, 4, 4, norm=True) | {"level": LEVELS[0], "loss": "mse"}
    with pytest.raises(TypeError):
        evaluate_prefixes(**case | {name: case[name].astype(np.int32)})
    with pytest.raises(TypeError):
        evaluate_prefixes(**case | {name: np.repeat(case[name], 2, axis=-1)[..., ::2]})

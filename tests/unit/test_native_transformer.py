"""The kernel's Transformers against their slow, obvious twins: textbook code in double precision, and torch."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plain_networks import plain_gradient
from tests.unit.test_native_deep import check_gradient_and_step
from tests.unit.test_native_engine import OPTIMIZERS, trained_a_little

from grokscope import EngineError, RunSpec, make_dataset, run
from grokscope.engines import TrainingState, initial_state, resolve_engine
from grokscope.engines.native_engine import NativeEngine, native_module
from grokscope.engines.torch_engine import TorchEngine
from grokscope.models import Weights

kernel = native_module()
assert kernel is not None
LEVELS = kernel.available_levels()

SMALL = RunSpec().updated(
    {"task.modulus": 11, "model.kind": "transformer", "model.embed": 24, "optimizer.learning_rate": 0.003}
)


@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("activation", ["quadratic", "relu", "gelu"])
@pytest.mark.parametrize("layers", [1, 2])
def test_gradient_and_step(
    level: str, layers: int, activation: str, loss: str, norm: str, dropout: float, batch_size: int | None
) -> None:
    spec = SMALL.updated(
        {
            "task.modulus": 17,  # more pairs than a block has
            "model.embed": 20,
            "model.layers": layers,
            "model.activation": activation,
            "model.norm": norm,
            "model.dropout": dropout,
            "training.loss": loss,
            "training.batch_size": batch_size,
            "optimizer.weight_decay": 1.0,
        }
    )
    state = trained_a_little(spec)
    if activation == "quadratic":  # squares of squares of larger weights grow, and rounding errors with them
        state = TrainingState(
            state.step, {name: array * np.float32(0.5) for name, array in state.weights.items()}, state.moments
        )
    check_gradient_and_step(spec, state)
    if norm == "none" and dropout == 0:  # the two ways through the first layer
        for form in ("direct", "tokens"):
            check_gradient_and_step(spec, state, form)


@pytest.mark.parametrize(
    ("heads", "tied", "scaling", "optimizer"),
    [
        (1, False, "d", "adam"), (1, True, "sqrt-d", "adamw"), (3, False, "sqrt-d", "sgd"), (3, True, "d", "adam"),
        (8, False, "d", "sgd"), (8, True, "sqrt-d", "adam"), (24, False, "sqrt-d", "adamw"), (24, True, "d", "sgd"),
    ],
)  # fmt: skip
def test_heads_ties_and_scalings(level: str, heads: int, tied: bool, scaling: str, optimizer: str) -> None:
    fields = {"model.heads": heads, "model.tie_weights": tied, "model.scaling": scaling}
    for form in ("direct", "tokens"):
        check_gradient_and_step(SMALL.updated(fields | OPTIMIZERS[optimizer]), form=form)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize(("embed", "heads"), [(1, 1), (2, 2), (7, 7), (33, 3), (50, 5), (96, 4)])
def test_gradient_where_panels_do_not_fit(level: str, embed: int, heads: int, norm: str, layers: int) -> None:
    if embed <= 2 and norm == "layer":
        return  # of one or two numbers it keeps no more than a sign: there is no gradient but rounding
    fields = {"model.embed": embed, "model.heads": heads, "model.norm": norm, "model.layers": layers}
    for form in ("direct", "tokens"):
        check_gradient_and_step(SMALL.updated(fields | {"task.modulus": 23, "optimizer.weight_decay": 0.5}), form=form)


@pytest.mark.parametrize("kind", ["adamw", "adam", "sgd"])
def test_embeddings_are_spared_by_weight_decay_if_asked(level: str, kind: str) -> None:
    decayed = SMALL.updated({"optimizer.kind": kind, "optimizer.weight_decay": 10.0})
    spared = decayed.updated({"optimizer.decay_embeddings": False})
    free = spared.updated({"optimizer.weight_decay": 0.0})
    after = []
    for spec in (decayed, spared, free):
        engine = NativeEngine(spec, make_dataset(spec.task), initial_state(spec))
        engine.advance(1)
        after.append(engine.weights())
    for name in ("embedding", "positions"):
        np.testing.assert_array_equal(after[1][name], after[2][name])
        assert not np.array_equal(after[1][name], after[0][name])
    for name in ("query1", "unembedding"):
        np.testing.assert_array_equal(after[1][name], after[0][name])
        assert not np.array_equal(after[1][name], after[2][name])


VARIANTS: dict[str, dict[str, object]] = {
    "one layer": {},
    "two layers": {"model.layers": 2, "optimizer.weight_decay": 1.0},
    "four layers, tied": {"model.layers": 4, "model.tie_weights": True},
    "dropout": {"model.dropout": 0.2},
    "layer norm, gelu": {"model.norm": "layer", "model.activation": "gelu", "model.scaling": "sqrt-d"},
    "mini-batch": {"training.batch_size": 8},
    "division": {"task.operation": "divide", "task.data_fraction": 0.9},
    "momentum": {"optimizer.kind": "sgd", "optimizer.momentum": 0.9, "optimizer.learning_rate": 0.01},
    "tables of tokens": {"model.heads": 1, "task.modulus": 23, "task.data_fraction": 0.9},  # the cheaper way there
    "everything": {
        "model.layers": 2,
        "model.heads": 8,
        "model.norm": "layer",
        "model.dropout": 0.1,
        "model.tie_weights": True,
        "training.batch_size": 10,
        "training.loss": "cross-entropy",
        "training.seed": 2**40 + 3,
        "optimizer.decay_embeddings": False,
        "optimizer.weight_decay": 2.0,
    },
}


def arrays_of(state: TrainingState) -> dict[str, Any]:
    return {**state.weights, **state.moments}


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_follows_the_torch_engine(level: str, variant: str) -> None:
    """Same batches, same dropout, same steps: the two differ by rounding only."""
    spec = SMALL.updated(VARIANTS[variant])
    dataset = make_dataset(spec.task, spec.training.seed)
    fast, slow = (engine(spec, dataset, initial_state(spec)) for engine in (NativeEngine, TorchEngine))
    np.testing.assert_allclose(fast.advance(15), slow.advance(15), rtol=1e-3)
    ours, theirs = arrays_of(fast.state()), arrays_of(slow.state())
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        scale = np.abs(array).max() + 1e-12
        np.testing.assert_allclose(ours[name] / scale, array / scale, atol=0.01, err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS)
def test_evaluation_is_that_of_the_torch_engine(level: str, variant: str) -> None:
    """Of the same weights, and without dropout."""
    spec = SMALL.updated(VARIANTS[variant])
    dataset, state = make_dataset(spec.task, spec.training.seed), trained_a_little(spec)
    fast, slow = (engine(spec, dataset, state) for engine in (NativeEngine, TorchEngine))
    said, expected = (engine.evaluate(dataset.test_inputs, dataset.test_labels) for engine in (fast, slow))
    np.testing.assert_allclose(said.losses, expected.losses, rtol=1e-4, atol=1e-6)
    assert (said.predictions == expected.predictions).mean() > 0.98  # but for two labels that are as likely


@pytest.mark.parametrize("variant", VARIANTS)
def test_interrupted_and_resumed_equals_uninterrupted(variant: str) -> None:
    """And evaluating in between changes nothing."""
    spec = SMALL.updated(VARIANTS[variant])
    dataset = make_dataset(spec.task, spec.training.seed)
    through, first = (NativeEngine(spec, dataset, initial_state(spec)) for _ in range(2))
    losses = through.advance(20)
    before = first.advance(7)
    first.evaluate(dataset.test_inputs, dataset.test_labels)
    more = first.advance(2)
    second = NativeEngine(spec, dataset, first.state())
    assert losses.tolist() == [*before, *more, *second.advance(11)]
    ours, theirs = arrays_of(through.state()), arrays_of(second.state())
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_auto_is_native() -> None:
    assert resolve_engine("auto", "cpu", SMALL) == "native"
    for fields in VARIANTS.values():
        assert resolve_engine("native", "cpu", SMALL.updated(fields)) == "native"


def test_a_diverging_run_is_noticed(level: str) -> None:
    for activation in ("relu", "quadratic", "gelu"):
        fields = {"model.activation": activation, "optimizer.learning_rate": 1e20, "training.steps": 30}
        result = run(SMALL.updated(fields), engine="native")
        assert result.status == "diverged", activation
        assert result.diverged_step is not None
        assert result.diverged_step <= 3, activation


# ---- any shape ---------------------------------------------------------------------------------------------------


def transformer_fields(**changed: Any) -> dict[str, Any]:
    return {
        "level": "plain", "network": "transformer", "modulus": 5, "width": 8, "layers": 1, "heads": 2, "mlp_width": 32,
        "tied": False, "decay_embeddings": True, "score_divisor": 4.0, "logit_divisor": 8.0,
        "attention_rate": 1.0, "mlp_in_rate": 1.0, "mlp_out_rate": 1.0, "other_rate": 1.0, "activation": "relu",
        "loss": "mse", "norm": "none", "optimizer": "adamw", "form": "automatic", "batch_size": 0,
        "dropout_threshold": 0, "dropout_scale": 1.0, "learning_rate": 0.003, "weight_decay": 0.1, "beta1": 0.9,
        "beta2": 0.98, "epsilon": 1e-8, "momentum": 0.0, "seed": 1,
        "pairs": np.array([[0, 1], [4, 4], [2, 0], [3, 3]]), "labels": np.array([1, 3, 2, 1]),
    } | changed  # fmt: skip


@given(
    p=st.integers(2, 40),
    heads=st.integers(1, 5),
    size=st.integers(12, 23),
    layers=st.sampled_from([1, 1, 2]),
    alpha=st.floats(0.05, 0.95),
    seed=st.integers(0, 2**32 - 1),
    level=st.sampled_from(LEVELS),
    norm=st.sampled_from(["none", "none", "layer"]),
    form=st.sampled_from(["automatic", "tokens"]),
)
@settings(max_examples=30)
def test_gradient_at_any_shape(
    p: int, heads: int, size: int, layers: int, alpha: float, seed: int, level: str, norm: str, form: Any
) -> None:
    """Of networks that do not amplify rounding; fewer dimensions are in test_gradient_where_panels_do_not_fit."""
    spec = SMALL.updated(
        {
            "task.modulus": p,
            "task.data_fraction": max(alpha, 1.5 / p**2),
            "model.embed": heads * size,
            "model.heads": heads,
            "model.layers": layers,
            "model.norm": norm,
            "model.activation": "gelu",  # smooth: at a kink of relu, rounding decides the gradient
            "training.seed": seed,
        }
    )
    dataset, state = make_dataset(spec.task, seed), initial_state(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROKSCOPE_ISA", level)
        _, gradient = NativeEngine(spec, dataset, state, form).gradient()
    _, expected = plain_gradient(spec, state, dataset)
    # The keys' gradient may be a small rest of large terms, and the rounding error is that of the terms.
    rounding = 2e-7 * max(np.abs(array).max() for array in expected.values())
    for name, array in expected.items():
        assert np.abs(gradient[name] - array).max() <= 1e-5 * np.abs(array).max() + rounding, name


@given(
    p=st.integers(2, 30),
    heads=st.integers(1, 4),
    size=st.integers(1, 11),
    layers=st.sampled_from([1, 2, 3]),
    seed=st.integers(0, 2**32 - 1),
    level=st.sampled_from(LEVELS),
    norm=st.sampled_from(["none", "layer"]),
    form=st.sampled_from(["automatic", "tokens"]),
)
@settings(max_examples=40)
def test_small_networks_amplify_rounding_no_more_than_the_textbook_does(
    p: int, heads: int, size: int, layers: int, seed: int, level: str, norm: str, form: Any
) -> None:
    """The standard deviation of a few numbers can be tiny, and what is divided by it is then mostly rounding."""
    fields = {"model.embed": heads * size, "model.heads": heads, "model.layers": layers, "model.norm": norm}
    spec = SMALL.updated(fields | {"task.modulus": p, "model.activation": "gelu", "training.seed": seed})
    dataset, state = make_dataset(spec.task, seed), initial_state(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROKSCOPE_ISA", level)
        _, gradient = NativeEngine(spec, dataset, state, form).gradient()
    _, exact = plain_gradient(spec, state, dataset)
    _, textbook = plain_gradient(spec, state, dataset, torch.float32)

    def error(found: Weights) -> float:
        # Of one number LayerNorm leaves nothing, and there is no gradient.
        sizes = {name: float(np.abs(array).max()) for name, array in exact.items() if array.any()}
        return max((float(np.abs(found[name] - exact[name]).max()) / size for name, size in sizes.items()), default=0)

    assert error(gradient) <= 1e-5 + 30 * error(textbook)


@given(
    p=st.integers(1, 30),
    heads=st.integers(1, 4),
    size=st.integers(1, 12),
    count=st.integers(1, 200),
    seed=st.integers(0, 2**32 - 1),
    level=st.sampled_from(LEVELS),
    batch=st.integers(0, 160),
    fields=st.fixed_dictionaries(
        {
            "layers": st.sampled_from([1, 1, 2, 3]),
            "mlp_width": st.integers(1, 70),
            "tied": st.booleans(),
            "decay_embeddings": st.booleans(),
            "activation": st.sampled_from(["quadratic", "relu", "gelu"]),
            "loss": st.sampled_from(["mse", "cross-entropy"]),
            "norm": st.sampled_from(["none", "layer"]),
            "optimizer": st.sampled_from(["adamw", "adam", "sgd"]),
            "dropout_threshold": st.sampled_from([0, 0, 20000, 65535]),
            "form": st.sampled_from(["automatic", "tokens"]),
        }
    ),
)
@settings(max_examples=100)
def test_training_at_any_shape_stays_in_bounds(
    p: int, heads: int, size: int, count: int, seed: int, level: str, batch: int, fields: dict[str, Any]
) -> None:
    """Pairs may come twice. Under `make sanitize` every access is watched."""
    assert kernel is not None
    generator = np.random.default_rng(seed)
    pairs, labels = generator.integers(0, p, (count, 2)), generator.integers(0, p, count)
    given = transformer_fields(modulus=p, width=heads * size, heads=heads, level=level, pairs=pairs, labels=labels)
    trainer = kernel.Trainer(**given | fields | {"batch_size": batch if batch <= count else 0})
    for name in names_of(fields["layers"], tied=fields["tied"], norm=fields["norm"] == "layer"):
        array = trainer.get("weights", name)
        filled = np.ones_like(array) if name.endswith("_scale") else 0.3 * generator.normal(size=array.shape)
        trainer.set("weights", name, filled.astype(np.float32))
        np.testing.assert_array_equal(trainer.get("weights", name), filled.astype(np.float32))
    assert np.isfinite(trainer.advance(4)).all()
    predictions, losses = trainer.evaluate(pairs, labels)
    assert np.isfinite(losses).all()
    assert ((predictions >= 0) & (predictions < p)).all()


def names_of(layers: int, *, tied: bool, norm: bool) -> list[str]:
    names = ["embedding", "positions"] + ([] if tied else ["unembedding"])
    for layer in range(1, layers + 1):
        names += [f"{name}{layer}" for name in ("query", "key", "value", "output", "mlp_in", "mlp_out")]
        if norm:
            names += [f"{kind}_norm{layer}_{what}" for kind in ("attention", "mlp") for what in ("scale", "shift")]
    return names + (["final_norm_scale", "final_norm_shift"] if norm else [])


# ---- what it refuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"network": "rnn"}, "network = 'rnn' is not allowed: must be one of mlp, transformer"),
        ({"heads": 3}, "heads must divide width"),
        ({"heads": 0}, "heads must be a whole number 1 … 8, not 0"),
        ({"width": 65536}, "width must be a whole number 1 … 65535"),
        ({"layers": 0}, "layers must be a whole number 1 … 64, not 0"),
        ({"layers": 65}, "layers must be a whole number 1 … 64, not 65"),
        ({"mlp_width": 0}, "mlp_width must be a whole number 1 … 262140, not 0"),
        ({"norm": "batch"}, "a Transformer has no BatchNorm"),
        ({"tied": 1}, "tied must be True or False, not int"),
        ({"decay_embeddings": None}, "decay_embeddings must be True or False, not NoneType"),
        ({"score_divisor": 0.0}, "score_divisor must be a number above 0, and finite"),
        ({"logit_divisor": float("inf")}, "logit_divisor must be a number above 0, and finite"),
        ({"mlp_out_rate": 0.0}, "mlp_out_rate must be a number above 0, and finite"),
        ({"depth": 2}, "Trainer has no argument 'depth'"),
        ({"pairs": np.array([[0, 5]]), "labels": np.array([0])}, "pairs and labels must lie in 0 … modulus - 1"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(changed: dict[str, Any], message: str) -> None:
    assert kernel is not None
    kernel.Trainer(**transformer_fields())
    with pytest.raises((ValueError, TypeError)) as caught:
        kernel.Trainer(**transformer_fields(**changed))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sizes_beyond_memory_are_refused() -> None:
    assert kernel is not None
    with pytest.raises(MemoryError, match="this needs"):
        kernel.Trainer(**transformer_fields(width=65535, heads=1, mlp_width=262140, layers=64))


def test_arrays_go_in_and_out_by_name() -> None:
    assert kernel is not None
    made = kernel.Trainer(**transformer_fields(norm="layer", layers=2))
    shapes = {"embedding": (5, 8), "positions": (2, 8), "mlp_in2": (32, 8), "mlp_out1": (8, 32), "query2": (8, 8)}
    for kind in ("weights", "gradient", "first_moment", "second_moment"):
        for name, shape in {**shapes, "final_norm_shift": (8,), "mlp_norm2_scale": (8,)}.items():
            array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
            made.set(kind, name, array)
            np.testing.assert_array_equal(made.get(kind, name), array)
            with pytest.raises(ValueError, match="wrong shape"):
                made.set(kind, name, np.zeros((3, 3), np.float32))
    for kind, name in [("weights", "query3"), ("weights", "U"), ("momentum", "query1"), ("weights", "query"), ("", "")]:
        with pytest.raises(ValueError, match="there is no array"):
            made.get(kind, name)
    with pytest.raises(ValueError, match="there is no array"):
        kernel.Trainer(**transformer_fields(tied=True)).get("weights", "unembedding")
    with pytest.raises(ValueError, match="there is no array"):
        kernel.Trainer(**transformer_fields()).get("weights", "final_norm_scale")


@pytest.mark.parametrize("changed", [{"model.heads": 2}, {"model.embed": 28}, {"model.layers": 2}])
def test_the_state_of_another_network_is_refused(changed: dict[str, object]) -> None:
    other = SMALL.updated(changed)
    if other.model.parameter_count(other.task) == SMALL.model.parameter_count(SMALL.task):
        return  # another number of heads has the same arrays
    with pytest.raises(EngineError, match="the state is not one of this network and optimiser"):
        NativeEngine(SMALL, make_dataset(SMALL.task), initial_state(other))

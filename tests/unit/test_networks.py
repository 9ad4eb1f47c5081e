"""Deep MLPs and Transformers against their plain twins, through training, resuming, stacking and measuring."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.together import train_together
from tests.unit.plain_networks import plain_gradient, plain_logits

from grokscope import EngineError, ModelSpec, RunSpec, TaskSpec, initial_weights, make_dataset, neuron_spectra, run
from grokscope.engines import TrainingState, initial_state, make_engine, make_stacked_engine
from grokscope.engines.torch_engine import TorchEngine
from grokscope.measure import output_spectra
from grokscope.measure.spectra.spectrum import rank_correlation
from grokscope.models import make_network
from grokscope.models.attention import attention
from grokscope.result import Checkpoint
from grokscope.training import Job, RunGroup, execute

NETWORKS: dict[str, dict[str, object]] = {
    "two layers": {"model.width": 24},
    "two layers, batch norm": {"model.width": 24, "model.norm": "batch"},
    "three layers": {"model.width": 24, "model.depth": 3},
    "three layers, lazy": {"model.width": 24, "model.depth": 3, "model.parameterization": "lazy"},
    "three layers, batch norm": {"model.width": 24, "model.depth": 3, "model.norm": "batch"},
    "five layers, layer norm, gelu": {
        "model.width": 17, "model.depth": 5, "model.norm": "layer", "model.activation": "gelu",
    },
    "transformer": {"model.kind": "transformer", "model.embed": 16},
    "transformer, tied": {"model.kind": "transformer", "model.embed": 16, "model.tie_weights": True},
    "transformer, three layers, one head": {
        "model.kind": "transformer", "model.embed": 12, "model.layers": 3, "model.heads": 1, "model.scaling": "sqrt-d",
    },
    "transformer, layer norm, gelu": {
        "model.kind": "transformer", "model.embed": 16, "model.layers": 2, "model.heads": 8, "model.norm": "layer",
        "model.activation": "gelu", "optimizer.decay_embeddings": False,
    },
}  # fmt: skip
TRAININGS: dict[str, dict[str, object]] = {
    "full batch": {},
    "dropout": {"model.dropout": 0.3},
    "batches": {"training.batch_size": 8, "model.dropout": 0.1, "training.loss": "cross-entropy"},
    "momentum": {"optimizer.kind": "sgd", "optimizer.momentum": 0.9, "optimizer.learning_rate": 0.01},
}


@pytest.fixture(params=NETWORKS, ids=lambda name: name.replace(", ", "-").replace(" ", "_"))
def spec(request: pytest.FixtureRequest) -> RunSpec:
    return RunSpec().updated(
        {"task.modulus": 7, "task.corruption": 0.2, "optimizer.learning_rate": 0.003, "optimizer.weight_decay": 2.0}
        | NETWORKS[request.param]
    )


@pytest.fixture(params=TRAININGS)
def training(request: pytest.FixtureRequest) -> dict[str, object]:
    return TRAININGS[request.param]


def trained_a_little(spec: RunSpec, steps: int = 4) -> TrainingState:
    engine = TorchEngine(spec, make_dataset(spec.task), initial_state(spec))
    engine.advance(steps)
    return engine.state()


def gradient_of_a_step(spec: RunSpec, state: TrainingState) -> tuple[float, dict[str, Any]]:
    """Loss and gradient that the torch engine uses: with momentum 0 and rate 1, sgd's step is the gradient."""
    plain = {"optimizer.kind": "sgd", "optimizer.learning_rate": 1.0, "optimizer.weight_decay": 0.0}
    bare = spec.updated(plain | {"optimizer.momentum": 0.0})
    engine = TorchEngine(
        bare, make_dataset(bare.task), TrainingState(state.step, state.weights, initial_state(bare).moments)
    )
    loss = engine.advance(1)[0]
    after = engine.weights()
    return loss, {name: array.astype(np.float64) - after[name] for name, array in state.weights.items()}


def test_logits_are_those_of_the_plain_network(spec: RunSpec) -> None:
    state = trained_a_little(spec)
    network = make_network(spec.model, state.weights).double().train()
    pairs = torch.cartesian_prod(torch.arange(7), torch.arange(7))
    weights = {name: torch.tensor(array, dtype=torch.float64) for name, array in state.weights.items()}
    generator = torch.Generator().manual_seed(0)
    masks = [torch.rand(49, width, generator=generator).double() for width in network.dropout_widths()]
    for used in ([], masks):
        expected = plain_logits(spec.model, weights, pairs, used)
        torch.testing.assert_close(network(pairs, used), expected, rtol=1e-9, atol=1e-9)


def test_gradients_are_those_of_the_plain_network(spec: RunSpec, training: dict[str, object]) -> None:
    spec = spec.updated(training)
    state = trained_a_little(spec)
    loss, gradient = gradient_of_a_step(spec, state)
    expected_loss, expected = plain_gradient(spec, state)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert expected.keys() == {name for name in state.weights if not name.endswith(("_mean", "_variance"))}
    for name, array in expected.items():
        # The step is read off the weights, so its rounding is that of weights of order 1.
        tolerance = 2e-6 + 1e-5 * np.abs(array).max()
        np.testing.assert_allclose(gradient[name], array, rtol=1e-5, atol=tolerance, err_msg=name)


def test_embeddings_are_spared_by_weight_decay_if_asked() -> None:
    base = RunSpec().updated({"task.modulus": 7, "optimizer.weight_decay": 10.0} | NETWORKS["transformer"])
    for kind in ("adamw", "adam", "sgd"):
        spared = base.updated({"optimizer.kind": kind, "optimizer.decay_embeddings": False})
        free = spared.updated({"optimizer.weight_decay": 0.0})
        first, second, decayed = (
            TorchEngine(s, make_dataset(s.task), initial_state(s))
            for s in (spared, free, base.updated({"optimizer.kind": kind}))
        )
        for engine in (first, second, decayed):
            engine.advance(1)
        for name in ("embedding", "positions"):
            np.testing.assert_array_equal(first.weights()[name], second.weights()[name])
            assert not np.array_equal(first.weights()[name], decayed.weights()[name])
        assert not np.array_equal(first.weights()["query1"], second.weights()["query1"])


def test_resumed_is_uninterrupted(spec: RunSpec, training: dict[str, object]) -> None:
    spec = spec.updated(training)
    dataset = make_dataset(spec.task)
    whole, half = (make_engine(spec, dataset, initial_state(spec)) for _ in range(2))
    losses = whole.advance(12)
    first = half.advance(5)
    resumed = make_engine(spec, dataset, half.state())
    np.testing.assert_array_equal(losses, np.concatenate([first, resumed.advance(7)]))
    for name, array in whole.weights().items():
        np.testing.assert_array_equal(array, resumed.weights()[name])


LEARNERS: dict[str, dict[str, object]] = {
    "three layers": {"model.depth": 3},
    "three layers, batch norm": {"model.depth": 3, "model.norm": "batch", "training.batch_size": 32},
    "transformer": {"model.kind": "transformer"},
    "transformer, tied": {"model.kind": "transformer", "model.tie_weights": True},
}


@pytest.mark.parametrize("name", LEARNERS)
def test_it_learns_the_rule(name: str) -> None:
    """Small scale: of the pairs that were held back, nearly all are answered."""
    mlp = {"model.width": 128, "model.parameterization": "standard"}
    transformer = {"model.embed": 64, "model.scaling": "sqrt-d"}
    result = run(
        RunSpec().updated(
            {
                "task.modulus": 23,
                "task.data_fraction": 0.8,
                "task.corruption": 0.0,
                "training.steps": 700,
                "training.loss": "cross-entropy",
                "optimizer.learning_rate": 0.003,
                "optimizer.weight_decay": 3.0,
            }
            | LEARNERS[name]
            | (transformer if "transformer" in name else mlp)
        )
    )
    assert result.curve[0].test_accuracy < 0.1
    assert result.final.test_accuracy > 0.9
    assert result.final.mean_ipr > 1.3 * result.curve[0].mean_ipr


# ---- initial weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameterization", "variances"),
    [
        ("paper", {"U": (16 * 500) ** (-2 / 3), "H2": (16 * 500) ** (-2 / 3), "W": (16 * 500) ** (-2 / 3)}),
        ("standard", {"U": 1 / 97, "V": 1 / 97, "H2": 2 / 500, "H3": 2 / 500, "W": 2 / 500}),
        ("lazy", {"U": 2 / 500 ** (2 / 3), "H3": 2 / 500 ** (2 / 3), "W": 2 / 500 ** (2 / 3)}),
    ],
)
def test_variances_of_deep_networks(parameterization: Any, variances: dict[str, float]) -> None:
    weights = initial_weights(ModelSpec(depth=4, parameterization=parameterization), modulus=97)
    assert weights.keys() == {"U", "V", "W", "H2", "H3"}
    for name, variance in variances.items():
        assert weights[name].var() == pytest.approx(variance, rel=0.03)
    shallow = initial_weights(ModelSpec(depth=2, parameterization=parameterization), modulus=97)
    for name, array in shallow.items():
        np.testing.assert_array_equal(array, weights[name])  # a seed means the same at every depth


def test_variances_of_transformers() -> None:
    weights = initial_weights(ModelSpec(kind="transformer", layers=2), modulus=97)
    for name, array in weights.items():
        fan_in = 1 if name in ("embedding", "positions") else array.shape[1]
        assert array.var() == pytest.approx(1 / fan_in, rel=0.2 if name == "positions" else 0.05), name
    tied = initial_weights(ModelSpec(kind="transformer", layers=2, tie_weights=True), modulus=97)
    assert weights.keys() - tied.keys() == {"unembedding"}
    assert abs(np.corrcoef(weights["query1"].ravel(), weights["query2"].ravel())[0, 1]) < 0.05


def test_parameters_are_counted(spec: RunSpec) -> None:
    weights = initial_weights(spec.model, modulus=7)
    assert spec.model.parameter_count(spec.task) == sum(array.size for array in weights.values())


# ---- measurements ---------------------------------------------------------------------------------------------------


def test_spectra_of_every_kind_of_network() -> None:
    wave = np.cos(2 * np.pi * 3 * np.arange(97) / 97)
    task = TaskSpec(modulus=97)
    model = ModelSpec(depth=3, width=20, norm="batch")
    deep = initial_weights(model, modulus=97)
    deep["U"][4], deep["V"][4], deep["W"][:, 7] = wave, 0.1 * wave, 2 * wave
    deep["norm_scale"][:], deep["norm2_scale"][:] = np.arange(20), -np.arange(20)
    inputs, outputs = neuron_spectra(model, deep, task), output_spectra(model, deep, task)
    assert inputs is not None
    assert inputs.ipr.shape == (2, 20)
    assert outputs is not None
    assert outputs.ipr.shape == (1, 20)
    assert int(np.argmax(inputs.neuron_ipr)) == 4
    assert inputs.neuron_ipr[4] == pytest.approx(1)
    assert int(np.argmax(outputs.neuron_ipr)) == 7
    assert outputs.frequency[0, 7] == 3
    np.testing.assert_array_equal(inputs.norm_scale, np.arange(20))
    np.testing.assert_array_equal(outputs.norm_scale, -np.arange(20))

    for tied in (False, True):
        model = ModelSpec(kind="transformer", embed=16, tie_weights=tied)
        weights = initial_weights(model, modulus=97)
        weights["embedding"][:, 5] = wave
        embedding, unembedding = neuron_spectra(model, weights, task), output_spectra(model, weights, task)
        assert embedding is not None
        assert unembedding is not None
        assert embedding.ipr.shape == unembedding.ipr.shape == (1, 16)
        assert embedding.neuron_ipr[5] == pytest.approx(1)
        assert (unembedding.neuron_ipr[5] == pytest.approx(1)) == tied
        assert embedding.norm_scale is None
    model = ModelSpec(width=20, norm="layer")
    two_layer = initial_weights(model, modulus=97)
    assert output_spectra(model, two_layer, task) is None
    both = neuron_spectra(model, two_layer, task)
    assert both is not None
    np.testing.assert_array_equal(both.norm_scale, np.ones(20))


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=30))
def test_rank_correlation_is_that_of_ranks(points: list[tuple[int, int]]) -> None:
    """Ties share the mean of their ranks, as the definition by counting says."""
    first, second = np.array(points, float).T
    ranks = [np.array([(c < value).sum() + (c == value).sum() / 2 for value in c]) for c in (first, second)]
    if all(rank.std() for rank in ranks):
        expected = np.corrcoef(ranks[0], ranks[1])[0, 1]
        assert rank_correlation(first, second) == pytest.approx(expected, abs=1e-9)
        assert rank_correlation(np.exp(first), -second) == pytest.approx(-expected, abs=1e-9)
    else:
        assert math.isnan(rank_correlation(first, second))


def test_attention_patterns_of_a_pair() -> None:
    model = ModelSpec(kind="transformer", embed=8, heads=2, layers=2)
    weights = initial_weights(model, modulus=7)
    pairs = torch.tensor([[3, 4], [0, 6], [5, 5]])
    patterns = attention(make_network(model, weights), pairs)
    assert patterns.shape == (3, 2, 2, 2, 2)
    torch.testing.assert_close(patterns.sum(dim=-1), torch.ones(3, 2, 2, 2))
    x = weights["embedding"][pairs] + weights["positions"]  # [3, 2, d]
    q, k = ((x @ weights[f"{name}1"].T).reshape(3, 2, 2, 4) for name in ("query", "key"))
    scores = np.exp(np.einsum("bqhe,bkhe->bhqk", q, k) / 4)
    np.testing.assert_allclose(patterns[:, 0], scores / scores.sum(-1, keepdims=True), rtol=1e-4)
    for pair, pattern in zip(pairs.tolist(), patterns.numpy(), strict=True):
        np.testing.assert_allclose(model.attention(weights, tuple(pair)), pattern, rtol=1e-6)


def test_curves_and_results_of_every_network(spec: RunSpec) -> None:
    result = run(spec.updated({"training.steps": 12}))
    assert [row.step for row in result.curve] == [*range(1, 11), 12]
    assert result.neurons is not None
    assert result.neurons.neuron_ipr.shape == (spec.model.neuron_count,)
    assert (result.outputs is None) == (not spec.model.deep)
    assert math.isnan(result.final.norm_v) == (spec.model.kind == "transformer")
    assert result.module()(torch.tensor([[1, 2]])).shape == (1, 7)


# ---- many runs at once ----------------------------------------------------------------------------------------------


def variants(spec: RunSpec) -> list[RunSpec]:
    """Runs that differ in all that a stack allows."""
    free: list[dict[str, object]] = [
        {"task.data_fraction": 0.4, "task.corruption": 0.0},
        {"task.data_fraction": 0.9, "task.corruption": 0.5, "optimizer.weight_decay": 0.0, "training.seed": 7},
        {"task.corruption_kind": "asymmetric", "optimizer.learning_rate": 0.001, "model.dropout": 0.5},
    ]
    return [spec, *(spec.updated(fields) for fields in free)]


def test_a_stack_gives_the_runs_of_the_single_engine(spec: RunSpec, training: dict[str, object]) -> None:
    specs = variants(spec.updated(training | {"training.steps": 12}))
    stacked = train_together([Job(own) for own in specs])
    for own, together in zip(specs, stacked, strict=True):
        alone = run(own, engine="torch")
        assert together.spec == own
        assert (together.engine, alone.engine) == ("stacked", "torch")
        for row, expected in zip(together.curve, alone.curve, strict=True):
            assert row.train_loss == pytest.approx(expected.train_loss, rel=1e-4)
            assert row.test_loss == pytest.approx(expected.test_loss, rel=1e-4, nan_ok=True)
            assert row.mean_ipr == pytest.approx(expected.mean_ipr, rel=1e-3)
            assert row.train_accuracy == pytest.approx(expected.train_accuracy, abs=0.08)
        assert together.weights is not None
        assert alone.weights is not None
        for name, array in alone.weights.items():
            np.testing.assert_allclose(together.weights[name], array, rtol=2e-3, atol=2e-4, err_msg=name)


def test_a_stack_resumes_where_it_was(spec: RunSpec, training: dict[str, object]) -> None:
    specs = variants(spec.updated(training | {"training.steps": 12}))
    whole = train_together([Job(own) for own in specs])
    kept: list[Checkpoint] = []

    def keep(checkpoints: dict[int, Checkpoint]) -> None:
        if not kept:
            kept.extend(checkpoints[i] for i in range(len(specs)))

    train_together([Job(own) for own in specs], on_pause=keep)
    assert 0 < kept[0].state.step < 12
    resumed = train_together([Job(own, start) for own, start in zip(specs, kept, strict=True)])
    for first, second in zip(whole, resumed, strict=True):
        assert repr(first.curve) == repr(second.curve)
        assert first.weights is not None
        assert second.weights is not None
        for name, array in first.weights.items():
            np.testing.assert_array_equal(array, second.weights[name])


def test_a_stack_of_one_is_an_engine_of_its_own() -> None:
    spec = RunSpec().updated({"task.modulus": 7, "training.steps": 12, "model.width": 8})
    seen = []
    result = execute(spec, engine="stacked", on_measurement=lambda row, _: seen.append(row.step))
    assert result.engine == "stacked"
    assert len(seen) == len(result.curve)


def test_a_run_that_diverges_leaves_the_others_alone() -> None:
    good = RunSpec().updated({"task.modulus": 7, "training.steps": 20, "model.width": 8})
    bad = good.updated({"optimizer.kind": "sgd", "optimizer.learning_rate": 1e8})
    good = good.updated({"optimizer.kind": "sgd", "training.seed": 1})
    first, second = train_together([Job(bad), Job(good)])
    assert first.status == "diverged"
    assert first.diverged_step == run(bad, engine="torch").diverged_step
    assert second.status == "finished"
    assert second.final.train_loss == pytest.approx(run(good, engine="torch").final.train_loss, rel=1e-4)


def test_a_run_that_has_diverged_is_not_checkpointed_with_the_others() -> None:
    """Going on from there would date the divergence to the first step after the interruption."""
    good = RunSpec().updated({"task.modulus": 7, "training.steps": 20, "model.width": 8, "optimizer.kind": "sgd"})
    bad = good.updated({"optimizer.learning_rate": 1e8})
    kept: list[dict[int, Checkpoint]] = []
    first, _ = train_together([Job(bad), Job(good)], on_pause=kept.append)
    assert first.diverged_step is not None
    for checkpoints in kept:
        step = checkpoints[1].state.step
        assert checkpoints.keys() == ({0, 1} if step < first.diverged_step else {1})


def test_only_the_stacked_engine_trains_several_runs() -> None:
    spec = RunSpec().updated({"task.modulus": 7, "training.steps": 2, "model.width": 8})
    with pytest.raises(EngineError, match="engine = 'torch' trains one run at a time; engine 'stacked' trains several"):
        RunGroup([Job(spec), Job(spec)], engine="torch")


def test_division_has_pairs_without_an_answer() -> None:
    spec = RunSpec().updated({"task.modulus": 7, "task.operation": "divide", "training.steps": 12, "model.width": 8})
    (stacked,) = train_together([Job(spec)])
    assert stacked.final.test_loss == pytest.approx(run(spec, engine="torch").final.test_loss, rel=1e-4)


def test_what_cannot_be_stacked_is_refused() -> None:
    specs = [RunSpec(), RunSpec().updated({"model.width": 100})]
    states = [initial_state(spec) for spec in specs]
    with pytest.raises(Exception, match="same shapes"):
        make_stacked_engine(specs, [make_dataset(spec.task) for spec in specs], states)

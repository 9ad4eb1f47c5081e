import numpy as np
import pytest
import torch

from grokscope import EngineError, RunSpec, make_dataset
from grokscope.engines import Engine, TrainingState, initial_state, make_engine
from grokscope.engines.batches import BatchOrder
from grokscope.randomness import Stream, dropout_threshold, permutation, philox

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "weight decay": {"optimizer.weight_decay": 5.0},
    "adam": {"optimizer.kind": "adam", "optimizer.weight_decay": 1e-5},
    "sgd": {
        "optimizer.kind": "sgd",
        "optimizer.learning_rate": 1.0,
        "optimizer.momentum": 0.9,
        "optimizer.weight_decay": 1e-5,
    },
    "cross-entropy": {"training.loss": "cross-entropy"},
    "relu": {"model.activation": "relu"},
    "gelu": {"model.activation": "gelu"},
    "mini-batch": {"training.batch_size": 8},
    "dropout": {"model.dropout": 0.3},
    "batch norm": {"model.norm": "batch", "training.batch_size": 16},
    "layer norm": {"model.norm": "layer"},
    "everything": {
        "model.dropout": 0.2,
        "model.norm": "batch",
        "training.batch_size": 10,
        "training.loss": "cross-entropy",
        "training.seed": 2**40 + 3,
    },
}


def engine_for(spec: RunSpec, state: TrainingState | None = None) -> Engine:
    dataset = make_dataset(spec.task, spec.training.seed, spec.training.seeding)
    return make_engine(spec, dataset, state or initial_state(spec), "torch")


def assert_same_state(first: TrainingState, second: TrainingState) -> None:
    assert first.step == second.step
    for ours, theirs in ((first.weights, second.weights), (first.moments, second.moments)):
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS)
def test_interrupted_and_resumed_equals_uninterrupted(tiny: RunSpec, variant: str) -> None:
    spec = tiny.updated(VARIANTS[variant])
    through = engine_for(spec)
    losses = through.advance(20)
    first = engine_for(spec)
    losses_before = first.advance(7)
    second = engine_for(spec, first.state())
    losses_after = second.advance(13)
    assert losses.tolist() == [*losses_before, *losses_after]
    assert_same_state(through.state(), second.state())


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_learns(tiny: RunSpec, variant: str) -> None:
    losses = engine_for(tiny.updated(VARIANTS[variant])).advance(100)
    assert losses[-10:].mean() < 0.9 * losses[:5].mean()


def test_an_engine_that_took_no_step_gives_its_state_back(tiny: RunSpec) -> None:
    for kind in ("adamw", "sgd"):
        spec = tiny.updated({"optimizer.kind": kind})
        assert_same_state(engine_for(spec).state(), initial_state(spec))


def plain_training(spec: RunSpec, steps: int) -> tuple[list[float], dict[str, np.ndarray]]:
    """Quadratic network, MSE, full batch, AdamW: gradients and update written out by hand, in double precision."""
    dataset = make_dataset(spec.task, spec.training.seed)
    (m, n), y, p = dataset.train_inputs.T, dataset.train_labels, dataset.classes
    parameters = {name: array.astype(np.float64) for name, array in initial_state(spec).weights.items()}
    first = {name: np.zeros_like(array) for name, array in parameters.items()}
    second = {name: np.zeros_like(array) for name, array in parameters.items()}
    rate, decay = spec.optimizer.learning_rate, spec.optimizer.weight_decay
    losses = []
    for step in range(1, steps + 1):
        U, V, W = parameters["U"], parameters["V"], parameters["W"]
        z = U[:, m] + V[:, n]  # [N, n]
        residual = W @ z**2 - np.eye(p)[y].T  # [p, n]
        losses.append(float((residual**2).mean()))
        upstream = 2 * residual / residual.size
        dz = 2 * z * (W.T @ upstream)
        gradients = {"U": np.zeros_like(U), "V": np.zeros_like(V), "W": upstream @ (z**2).T}
        for example in range(len(y)):
            gradients["U"][:, m[example]] += dz[:, example]
            gradients["V"][:, n[example]] += dz[:, example]
        for name, g in gradients.items():
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.98 * second[name] + 0.02 * g**2
            mean, scale = first[name] / (1 - 0.9**step), np.sqrt(second[name] / (1 - 0.98**step))
            parameters[name] = (1 - rate * decay) * parameters[name] - rate * mean / (scale + 1e-8)
    return losses, parameters


def test_steps_are_those_of_the_formulas(tiny: RunSpec) -> None:
    """Equation 9 with its factors mended, and decoupled weight decay that acts before the step."""
    spec = tiny.updated({"optimizer.weight_decay": 5.0})
    losses, parameters = plain_training(spec, 15)
    engine = engine_for(spec)
    assert engine.advance(15).tolist() == pytest.approx(losses, rel=1e-5)
    for name, array in engine.weights().items():
        np.testing.assert_allclose(array, parameters[name], rtol=1e-3, atol=1e-5)


def test_mini_batches_are_a_fresh_permutation_each_epoch_without_the_rest() -> None:
    examples = np.array([5, 17, 3, 99, 42, 8, 61])
    order = BatchOrder(examples, batch_size=3, seed=4)
    for epoch in range(3):
        batches = [order.batch(2 * epoch + place + 1) for place in range(2)]
        expected = permutation(4, Stream.BATCHES, epoch, examples)[:6]
        assert np.concatenate(batches).tolist() == expected.tolist()
    assert order.batch(1).tolist() != order.batch(3).tolist()


def test_dropout_masks_follow_the_published_definition(tiny: RunSpec) -> None:
    """The first step's loss, with the mask of every example and neuron drawn one by one."""
    spec = tiny.updated({"model.dropout": 0.3, "training.seed": 6})
    dataset = make_dataset(spec.task, 6)
    weights = initial_state(spec).weights
    total = 0.0
    for example, (m, n), y in zip(dataset.train_examples, dataset.train_inputs, dataset.train_labels, strict=True):
        z = weights["U"][:, m].astype(np.float64) + weights["V"][:, n]
        for neuron in range(spec.model.width):
            block, place, step, stream = (np.array([c]) for c in (neuron // 8, int(example), 1, int(Stream.DROPOUT)))
            bits = int(philox(block, place, step, stream, 6)[neuron % 8 // 2][0]) >> (16 * (neuron % 2)) & 0xFFFF
            z[neuron] *= 0 if bits < dropout_threshold(0.3) else 1 / (1 - dropout_threshold(0.3) / 65536)
        logits = weights["W"].astype(np.float64) @ z**2
        total += float(((logits - np.eye(11)[y]) ** 2).mean())
    assert engine_for(spec).advance(1)[0] == pytest.approx(total / len(dataset.train_labels), rel=1e-5)


def test_dropout_keeps_the_stated_fraction(tiny: RunSpec) -> None:
    engine = engine_for(tiny.updated({"model.dropout": 0.9, "model.width": 501}))
    (mask,) = engine._dropout_masks(torch.arange(200))  # type: ignore[attr-defined]
    assert mask.shape == (200, 501)
    assert mask.mean().item() == pytest.approx(1, abs=0.05)
    assert mask.unique().tolist() == pytest.approx([0, 10], rel=1e-4)


def test_evaluation_does_not_drop_or_update_anything(tiny: RunSpec) -> None:
    spec = tiny.updated({"model.dropout": 0.5, "model.norm": "batch"})
    dataset = make_dataset(spec.task)
    engine = engine_for(spec)
    engine.advance(3)
    before = engine.state()
    first, second = (engine.evaluate(dataset.test_inputs, dataset.test_labels) for _ in range(2))
    assert first.losses.tolist() == second.losses.tolist()
    assert_same_state(before, engine.state())


def test_process_settings_and_generators_are_left_alone(tiny: RunSpec) -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    engine_for(tiny.updated({"model.dropout": 0.5})).advance(2)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert (torch.tensor(1e-39) * 1).item() > 0


def test_weights_that_decay_away_become_zero_not_denormal(tiny: RunSpec) -> None:
    engine = engine_for(tiny.updated({"optimizer.weight_decay": 99.0, "optimizer.kind": "sgd"}))
    engine.advance(200)  # SGD's decay is part of the gradient: a factor 0.01 each step
    for array in engine.weights().values():
        assert not np.logical_and(array != 0, np.abs(array) < np.finfo(np.float32).tiny).any()


@pytest.mark.parametrize("device", ["cuda", "mps", "cuda:7", "tpu", "cpu:x"])
def test_devices_that_are_not_here(tiny: RunSpec, device: str) -> None:
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("this machine has an accelerator")
    with pytest.raises(EngineError, match=r"device = '.*must be one of cpu"):
        make_engine(tiny, make_dataset(tiny.task), initial_state(tiny), "torch", device)


def test_unknown_engine(tiny: RunSpec) -> None:
    with pytest.raises(EngineError, match=r"engine = 'troch'.*did you mean 'torch'"):
        make_engine(tiny, make_dataset(tiny.task), initial_state(tiny), "troch")

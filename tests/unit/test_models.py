import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from grokscope import ModelSpec, TaskSpec, analytic_weights, initial_weights, make_dataset, measure_network, pruned
from grokscope.models import Weights, make_network
from grokscope.models.module import NetworkModule, evaluate, losses_per_example


def module(weights: Weights) -> NetworkModule:
    """The quadratic network of two layers."""
    return ModelSpec(width=len(weights["U"])).module(weights)


def one_hot_network(
    weights: Weights, activation: str, norm: str, pairs: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    """Equation 5 the way a textbook writes it: one-hot vectors and nn.Linear, in double precision."""
    p = weights["W"].shape[0]
    first = nn.Linear(2 * p, weights["U"].shape[0], bias=False).double()
    first.weight.data = torch.tensor(np.concatenate([weights["U"], weights["V"]], axis=1)).double()
    second = nn.Linear(weights["U"].shape[0], p, bias=False).double()
    second.weight.data = torch.tensor(weights["W"]).double()
    inputs = torch.cat([nn.functional.one_hot(pairs[:, 0], p), nn.functional.one_hot(pairs[:, 1], p)], dim=1).double()
    hidden = first(inputs)
    if mask is not None:
        hidden = hidden * mask
    match activation:
        case "quadratic":
            hidden = hidden**2
        case "relu":
            hidden = hidden.clamp(min=0)
        case "gelu":
            hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    if norm == "batch":
        mean, variance = hidden.mean(dim=0), hidden.var(dim=0, unbiased=False)
        hidden = (hidden - mean) / torch.sqrt(variance + 1e-5)
    if norm == "layer":
        mean, variance = hidden.mean(dim=1, keepdim=True), hidden.var(dim=1, keepdim=True, unbiased=False)
        hidden = (hidden - mean) / torch.sqrt(variance + 1e-5)
    if norm != "none":
        hidden = hidden * torch.tensor(weights["norm_scale"]) + torch.tensor(weights["norm_shift"])
    output: torch.Tensor = second(hidden)
    return output


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("activation", ["quadratic", "relu", "gelu"])
@pytest.mark.parametrize("dropout", [False, True])
def test_the_module_computes_equation_5(activation: Any, norm: Any, dropout: bool) -> None:
    model = ModelSpec(width=20, activation=activation, norm=norm)
    weights = initial_weights(model, modulus=7, seed=3)
    generator = np.random.default_rng(0)
    for name in ("norm_scale", "norm_shift"):
        if name in weights:
            weights[name] = generator.normal(size=20).astype(np.float32)
    pairs = torch.tensor(generator.integers(0, 7, size=(30, 2)))
    mask = torch.tensor(generator.integers(0, 2, size=(30, 20)) / 0.5) if dropout else None
    network = make_network(model, weights).double().train()
    expected = one_hot_network(weights, activation, norm, pairs, mask)
    torch.testing.assert_close(network(pairs, [] if mask is None else [mask]), expected, rtol=1e-9, atol=1e-9)


def test_batch_norm_evaluates_on_running_statistics() -> None:
    model = ModelSpec(width=20, norm="batch")
    weights = initial_weights(model, modulus=7)
    weights["norm_mean"] += 2
    weights["norm_variance"] *= 9
    network = make_network(model, weights).eval()
    pairs = torch.tensor([[1, 2], [3, 4]])
    arrays = network.named_arrays()
    hidden = (arrays["U"].T[pairs[:, 0]] + arrays["V"].T[pairs[:, 1]]) ** 2
    torch.testing.assert_close(network(pairs), (hidden - 2) / math.sqrt(9 + 1e-5) @ arrays["W"].T)


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
def test_weights_come_back_as_they_went_in(norm: Any) -> None:
    model = ModelSpec(width=20, norm=norm)
    weights = initial_weights(model, modulus=7)
    returned = make_network(model, weights).weights()
    assert returned.keys() == weights.keys()
    for name, array in weights.items():
        np.testing.assert_array_equal(returned[name], array)
        assert returned[name].flags.c_contiguous


def test_initial_scales() -> None:
    """(16N)^(-2/3) is 0.05² at N = 500; the standard variance is 2/fan_in, and the one-hot input has 2p entries."""
    for weights, first, second in [
        (initial_weights(ModelSpec(width=500), 97), 0.05, 0.05),
        (initial_weights(ModelSpec(width=500, parameterization="standard"), 97), 97**-0.5, 250**-0.5),
    ]:
        assert weights["U"].std() == pytest.approx(first, rel=0.02)
        assert weights["V"].std() == pytest.approx(first, rel=0.02)
        assert weights["W"].std() == pytest.approx(second, rel=0.02)
        assert abs(np.corrcoef(weights["U"].ravel(), weights["V"].ravel())[0, 1]) < 0.02


def test_reference_weights_are_the_authors() -> None:
    """Written out again from the recipe, with the global generator that the authors seed."""
    state = torch.get_rng_state()
    torch.manual_seed(1)
    first, second = nn.Linear(2 * 97, 500, bias=False), nn.Linear(500, 97, bias=False)
    first.weight.data.normal_(std=0.5 / (2 * 500) ** (1 / 3))
    second.weight.data.normal_(std=0.5 / (2 * 500) ** (1 / 3))
    torch.set_rng_state(state)
    weights = initial_weights(ModelSpec(), 97, seed=9, seeding="reference")
    np.testing.assert_allclose(weights["U"], first.weight.detach().numpy()[:, :97], rtol=1e-6)
    np.testing.assert_allclose(weights["V"], first.weight.detach().numpy()[:, 97:], rtol=1e-6)
    np.testing.assert_allclose(weights["W"], second.weight.detach().numpy(), rtol=1e-6)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_all_zero_network_has_loss_1_over_p() -> None:
    losses = losses_per_example(torch.zeros(5, 97), torch.arange(5), "mse")
    assert losses.tolist() == pytest.approx([1 / 97] * 5)
    assert losses_per_example(torch.zeros(5, 97), torch.arange(5), "cross-entropy").tolist() == pytest.approx(
        [math.log(97)] * 5
    )


def test_evaluation_goes_through_all_rows() -> None:
    """More rows than are computed at once, in an order that is kept."""
    network = module(analytic_weights(modulus=97, width=500))
    pairs = np.stack(np.divmod(np.arange(97 * 97), 97), axis=1)
    predictions, losses = evaluate(network, pairs, pairs.sum(axis=1) % 97, "mse")
    assert predictions.tolist() == (pairs.sum(axis=1) % 97).tolist()
    assert losses.shape == (9409,)


@pytest.mark.parametrize("seed", range(5))
def test_the_analytic_network_solves_addition(seed: int) -> None:
    dataset = make_dataset(TaskSpec(corruption=0.0))
    row = measure_network(module(analytic_weights(97, 500, seed)), dataset)
    assert row.train_accuracy == row.test_accuracy == 1
    assert math.isnan(row.corrupted_accuracy)
    assert row.mean_ipr == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("modulus", "width"), [(2, 200), (10, 400), (64, 2000), (113, 1000), (12, 7)])
def test_the_analytic_network_at_any_size(modulus: int, width: int) -> None:
    weights = analytic_weights(modulus, width)
    assert weights["U"].shape == (width, modulus)
    row = measure_network(module(weights), make_dataset(TaskSpec(modulus=modulus, corruption=0.0)))
    assert row.mean_ipr == pytest.approx(1, abs=1e-4)
    if width >= 200:
        assert row.test_accuracy == 1


def test_the_analytic_output_is_equation_7() -> None:
    """At large N the logits approach ½·δ(m + n − q) (twice the mean of ½ cos over all frequencies) up to 1/√N."""
    errors = []
    for width in (970, 97 * 1000):
        weights = analytic_weights(97, width)
        network = module(weights)
        with torch.no_grad():
            logits = network(torch.tensor([[40, 70], [0, 0]]))
        expected = torch.zeros(2, 97)
        expected[0, 13] = expected[1, 0] = 1
        errors.append((logits - expected).abs().max().item())
    assert errors[1] < 0.02
    assert errors[1] < errors[0] / 3


def test_pruning_works_on_a_copy_and_lowers_accuracy_in_the_end() -> None:
    weights = analytic_weights(97, 500)
    dataset = make_dataset(TaskSpec(corruption=0.0))
    before = weights["U"].copy()
    mask = np.arange(500) < 50
    model = ModelSpec(width=500)
    few = measure_network(module(pruned(model, weights, mask)), dataset)
    np.testing.assert_array_equal(pruned(model, weights, mask)["W"], pruned(model, weights, np.arange(50))["W"])
    everything = measure_network(module(pruned(model, weights, np.arange(500))), dataset)
    np.testing.assert_array_equal(weights["U"], before)
    assert few.test_accuracy == 1
    assert few.dead_neurons == 50
    assert everything.test_accuracy < 0.02


def test_the_vectors_of_a_neuron_do_not_depend_on_the_order_of_the_arrays() -> None:
    model = ModelSpec(width=8)
    weights = initial_weights(model, modulus=11)
    neurons = model.input_neurons(dict(reversed(weights.items())))
    assert neurons is not None
    assert list(neurons.vectors) == ["u", "v", "w"]

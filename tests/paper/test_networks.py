"""What the paper finds on other networks and regularisers, at full scale: the numbers of docs/networks.md."""

import pytest

from grokscope import RunSpec, run

pytestmark = pytest.mark.verify

FIGURE_7 = {"task.data_fraction": 0.8, "task.corruption": 0.2, "optimizer.learning_rate": 0.001}
TRANSFORMER = FIGURE_7 | {"model.kind": "transformer", "model.scaling": "sqrt-d", "training.steps": 3000}
THREE_LAYERS = FIGURE_7 | {"model.depth": 3, "model.parameterization": "standard"}


def test_batch_norm_scales_up_the_periodic_neurons() -> None:
    """Figure 5."""
    result = run(
        RunSpec()
        .updated({"task.data_fraction": 0.65, "task.corruption": 0.2, "model.norm": "batch"})
        .with_batches_of(64)
    )
    assert result.phase == "full_inversion"
    assert result.neurons is not None
    assert result.neurons.norm_correlation > 0.5
    low, high = result.neurons.neuron_ipr < 0.1, result.neurons.neuron_ipr > 0.9
    assert min(low.sum(), high.sum()) > 100  # both kinds are there, and only their scales differ
    assert result.neurons.norm_scale is not None
    assert abs(result.neurons.norm_scale[high]).mean() > 1.4 * abs(result.neurons.norm_scale[low]).mean()


def test_dropout_raises_ipr() -> None:
    with_dropout, without = (run(RunSpec().updated({"model.dropout": dropout})) for dropout in (0.3, 0.0))
    assert with_dropout.final.mean_ipr > 1.3 * without.final.mean_ipr
    assert with_dropout.final.test_accuracy > 0.99
    assert with_dropout.final.corrupted_accuracy < without.final.corrupted_accuracy - 0.2


def test_a_transformer_with_weight_decay_inverts_and_becomes_periodic() -> None:
    """Figure 7(a), with the scaling and decay at which it is seen."""
    result = run(RunSpec().updated(TRANSFORMER | {"optimizer.weight_decay": 2.0}))
    at = {row.step: row for row in result.curve}
    assert at[750].train_accuracy > 0.9  # it memorises first
    assert at[750].test_accuracy < 0.5
    assert result.phase == "full_inversion"
    assert result.final.train_accuracy == pytest.approx(0.811, abs=0.03)
    assert result.final.test_accuracy > 0.99
    assert result.final.mean_ipr > 1.2 * result.curve[0].mean_ipr


def test_three_layers_with_weight_decay_invert_and_become_periodic() -> None:
    """Figure 7(b)."""
    result = run(RunSpec().updated(THREE_LAYERS | {"optimizer.weight_decay": 5.0}))
    at = {row.step: row for row in result.curve}
    assert at[1000].train_accuracy > 0.99
    assert at[1000].test_accuracy < 0.7
    assert result.phase == "full_inversion"
    assert result.final.train_accuracy == pytest.approx(0.804, abs=0.03)
    assert result.final.test_accuracy > 0.99
    assert result.final.mean_ipr > 3 * result.curve[0].mean_ipr

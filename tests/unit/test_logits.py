"""Logits of single examples, against one forward pass at a time."""

from typing import Any

import numpy as np
import pytest
import torch

from grokscope import ModelSpec, RunSpec, TaskSpec, initial_weights, make_dataset, measure_logits, run
from grokscope.measure import logits as module
from grokscope.models import Network, make_network
from grokscope.models.module import evaluate
from grokscope.result import analytic_result


@pytest.mark.parametrize(
    "model",
    [
        ModelSpec(width=12, norm="batch", dropout=0.5),
        ModelSpec(width=12, depth=3),
        ModelSpec(kind="transformer", embed=8),
    ],
)
@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
def test_every_row_is_that_of_one_example(model: Network, loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOGITS_AT_ONCE", 100)  # several chunks, the last one not full
    dataset = make_dataset(TaskSpec(modulus=7, data_fraction=0.6, corruption=0.5))
    network = make_network(model, initial_weights(model, 7)).train()
    table = measure_logits(network, dataset, loss)
    assert network.training
    assert len(table.pairs) == 49
    network.eval()
    for k, pair in enumerate(table.pairs):
        with torch.no_grad():
            logits = network(torch.tensor(pair[None]))[0].numpy()
        truth, label = table.truth[k], table.label[k]
        assert truth == pair.sum() % 7
        assert table.predicted[k] == logits.argmax()
        assert table.logit_truth[k] == pytest.approx(logits[truth], abs=1e-6)
        assert table.logit_label[k] == pytest.approx(logits[label], abs=1e-6)
        if not table.corrupted[k]:
            rival = np.delete(logits, truth).max()
            assert table.margin[k] == pytest.approx(logits[truth] - rival, abs=1e-6)
            assert (table.margin[k] > 0) == (table.predicted[k] == truth)
        elif label == truth:
            assert np.isnan(table.margin[k])
        else:
            assert table.margin[k] == pytest.approx(logits[truth] - logits[label], abs=1e-6)
    train = evaluate(network, dataset.train_inputs, dataset.train_labels, loss)
    np.testing.assert_allclose(table.loss[~table.in_test], train.losses, rtol=1e-5)


def test_parts_hold_every_example_once(tiny: RunSpec) -> None:
    result = run(tiny)
    table = measure_logits(result.module(), result.dataset())
    parts = [table.part(name) for name in module.PARTS]
    assert np.array_equal(sum(part.astype(int) for part in parts), np.ones(121))
    assert parts[0].sum() == result.dataset().corrupted.sum()
    memorised = (table.predicted == table.label)[table.corrupted].mean()
    assert memorised == pytest.approx(result.final.corrupted_accuracy)


def test_the_rule_wins_everywhere_in_the_analytic_network() -> None:
    result = analytic_result(23, 400)
    table = measure_logits(result.module(), result.dataset())
    assert all(table.margins(name).min() > 0 for name in module.PARTS)
    assert np.isnan(table.margin).sum() == (table.corrupted & (table.label == table.truth)).sum()


def test_a_part_without_examples_has_no_margins(tiny: RunSpec) -> None:
    result = run(tiny.updated({"task.corruption": 0.0}))
    table = measure_logits(result.module(), result.dataset())
    assert table.margins("corrupted").shape == (0,)
    assert len(table.margins("clean")) == 60

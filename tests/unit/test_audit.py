"""Scores of labels, and what they find."""

import sys
from typing import Any

import numpy as np
import pytest
import torch

from grokscope import GrokscopeError, ModelSpec, RunSpec, TaskSpec, analytic_weights, audit_labels, make_dataset, run
from grokscope.measure.audit.audit import Audit
from grokscope.measure.audit.suspicion import softmax, softmax_temperature, suspicion
from grokscope.models import initial_weights, make_network
from grokscope.models.module import logits_in_parts, losses_per_example
from grokscope.plots.audits import draw_audit
from grokscope.result import analytic_result


def random_logits(scale: float = 1.0) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    return scale * generator.normal(size=(200, 7)), generator.integers(0, 7, size=200)


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
def test_scores_are_what_their_definitions_say(loss: Any) -> None:
    logits, labels = random_logits()
    scores = suspicion(logits, labels, loss)
    temperature = softmax_temperature(loss, 7)
    for row, label in enumerate(labels):
        others = [logit for place, logit in enumerate(logits[row]) if place != label]
        assert scores["margin"][row] == max(others) - logits[row, label]
        powers = [np.exp(logit / temperature) for logit in logits[row]]
        assert scores["confidence"][row] == pytest.approx(1 - powers[label] / sum(powers))
    losses = losses_per_example(torch.tensor(logits), torch.tensor(labels), loss)
    np.testing.assert_allclose(scores["loss"], losses.numpy(), rtol=1e-12)
    np.testing.assert_allclose(scores["confidence"], 1 - softmax(logits, loss)[np.arange(200), labels], atol=1e-12)
    assert ((scores["margin"] > 0) == (logits.argmax(axis=1) != labels)).all()


@pytest.mark.parametrize("modulus", [2, 31, 97])
def test_a_fitted_example_has_probability_99_percent(modulus: int) -> None:
    fitted = np.eye(modulus)[:1]
    assert softmax(fitted, "mse")[0, 0] == pytest.approx(0.99)
    assert suspicion(fitted, np.array([0]), "mse")["confidence"][0] == pytest.approx(0.01)


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
def test_large_logits_do_not_overflow_and_certain_ones_stay_apart(loss: Any) -> None:
    logits, labels = random_logits(1e4)
    for column in suspicion(logits, labels, loss).values():
        assert np.isfinite(column).all()
    sure = suspicion(np.array([[50.0, 0.0], [60.0, 0.0]]), np.array([0, 0]), "cross-entropy")["confidence"]
    assert 0 < sure[1] < sure[0] < 1e-20  # 1 − probability would be 0 for both


def test_logits_come_in_parts_and_in_order() -> None:
    pairs = np.stack(np.divmod(np.arange(97 * 97), 97), axis=1)
    parts = list(logits_in_parts(make_network(ModelSpec(), analytic_weights(97, 500)), pairs))
    assert len(parts) > 1
    assert torch.cat([logits.argmax(dim=1) for _, logits in parts]).tolist() == (pairs.sum(axis=1) % 97).tolist()


def test_weights_that_are_no_numbers_are_refused(tiny: RunSpec) -> None:
    weights = initial_weights(tiny.model, 11)
    weights["W"][0, 0] = np.nan
    with pytest.raises(GrokscopeError, match="not finite"):
        audit_labels(tiny, weights, make_dataset(tiny.task))


@pytest.mark.parametrize("corruption", [0.05, 0.5, 0.95])
def test_the_analytic_network_finds_every_wrong_label(corruption: float) -> None:
    spec = RunSpec(task=TaskSpec(corruption=corruption))
    audit = audit_labels(spec, analytic_weights(97, 500), make_dataset(spec.task))
    for score in audit.scores.values():
        assert score.auroc == score.r_precision == 1
        assert score.average_precision == pytest.approx(1)
        assert score.answers == (int(audit.wrong.sum()), 1, 1)
    assert audit.wrong[audit.most_suspicious()[: audit.wrong.sum()]].all()


def test_a_picture_is_a_close_up_if_no_curve_is_below_it() -> None:
    spec = RunSpec().updated({"task.modulus": 23, "model.width": 200})
    dataset = make_dataset(spec.task)
    for weights, close in (
        (analytic_weights(23, 200), True),
        (initial_weights(spec.model, spec.task.modulus), False),
    ):
        audit = audit_labels(spec, weights, dataset)
        curves = draw_audit(audit, "title").axes[0]
        shown = [np.asarray(line.get_ydata()) >= curves.get_ylim()[0] for line in curves.lines[:-1]]
        assert (curves.get_xlim()[0] > 0.5) == close
        assert close or all(map(np.all, shown))


def test_labels_drawn_right_by_chance_are_not_wrong() -> None:
    result = analytic_result(modulus=11, width=200)
    audit = audit_labels(result.spec, result.trained_weights(), result.dataset())
    data = audit.dataset
    assert audit.wrong.tolist() == ((data.train_inputs.sum(axis=1) % 11) != data.train_labels).tolist()
    assert audit.drawn_right == data.corrupted.sum() - audit.wrong.sum() > 0


def small_run(**fields: object) -> Audit:
    base = {"task.modulus": 31, "model.width": 128, "task.data_fraction": 0.8, "task.corruption": 0.2}
    spec = RunSpec().updated(base | {"training.steps": 600} | fields)
    result = run(spec)
    return audit_labels(spec, result.trained_weights(), result.dataset())


def test_a_network_that_coexists_hides_wrong_labels_in_its_answers_but_not_without_the_memorising_neurons() -> None:
    audit = small_run(**{"task.modulus": 43, "model.width": 200, "task.data_fraction": 0.9, "training.steps": 1000})
    whole, pruned = audit.scores["margin"], audit.scores["pruned_margin"]
    assert audit.pruning is not None
    assert audit.pruning.count > 50
    assert whole.answers.recall is not None
    assert whole.answers.recall < 0.2  # it says what it was told
    assert whole.auroc is not None
    assert whole.auroc > 0.95  # but less surely where it was told wrong
    assert pruned.auroc is not None
    assert pruned.auroc > whole.auroc
    assert pruned.answers.recall is not None
    assert pruned.answers.recall > 0.95
    assert pruned.answers.precision is not None
    assert pruned.answers.precision > 0.95


def test_a_network_that_only_memorises_tells_nothing() -> None:
    audit = small_run(**{"task.data_fraction": 0.3, "task.corruption": 0.4})
    for score in audit.scores.values():
        assert score.auroc == pytest.approx(0.5, abs=0.12)  # 4 standard errors of guessing among 288 examples
        assert score.answers.recall == 0
        assert score.answers.precision is None
    assert audit.pruning is not None
    assert audit.pruning.count == 0  # its neurons are of one kind


@pytest.mark.parametrize(
    "fields",
    [
        {"model.depth": 3},
        {"model.kind": "transformer", "model.embed": 16, "model.width": 500},
        {"model.norm": "batch"},
        {"model.norm": "layer", "training.loss": "cross-entropy"},
        {"task.operation": "divide"},
        {"task.data_fraction": 0.99},
    ],
)
def test_every_network_can_be_audited(tiny: RunSpec, fields: dict[str, object]) -> None:
    result = run(tiny.updated(fields))
    spec, data = result.spec, result.dataset()
    audit = audit_labels(spec, result.trained_weights(), data, prune="0.5")
    assert ("pruned_margin" in audit.scores) == (not spec.model.deep) == (audit.pruning is not None)
    assert audit.ranked_by == ("margin" if spec.model.deep else "pruned_margin")
    logits = make_network(spec.model, result.trained_weights()).eval()(torch.tensor(data.train_inputs)).detach().numpy()
    assert audit.predicted.tolist() == logits.argmax(axis=1).tolist()
    for score in audit.scores.values():
        assert score.auroc is not None
        assert 0 <= score.auroc <= 1


def test_dead_neurons_are_left_alone(tiny: RunSpec) -> None:
    weights = initial_weights(tiny.model, 11)
    weights["U"][:20] = 0
    audit = audit_labels(tiny, weights, make_dataset(tiny.task), prune="0.5")
    assert audit.pruning is not None
    assert (audit.pruning.live, audit.pruning.count) == (4, 2)
    assert not audit.pruning.neurons[:20].any()
    weights["U"][:] = 0
    nothing_lives = audit_labels(tiny, weights, make_dataset(tiny.task))
    assert nothing_lives.pruning is not None
    assert nothing_lives.pruning.count == 0


def test_without_wrong_labels_nothing_is_found(tiny: RunSpec) -> None:
    spec = tiny.updated({"task.corruption": 0.0})
    audit = audit_labels(spec, initial_weights(spec.model, 11), make_dataset(spec.task))
    for score in audit.scores.values():
        assert (score.auroc, score.average_precision, score.r_precision, score.curve) == (None, None, None, None)
        assert score.answers.recall is None
    assert audit.best == audit.ranked_by


def test_the_best_score_has_the_highest_auroc() -> None:
    audit = small_run()
    best = audit.scores[audit.best].auroc
    assert best == max(score.auroc or 0 for score in audit.scores.values())


def test_cleanlab_is_asked_with_the_networks_own_probabilities() -> None:
    pytest.importorskip("cleanlab")
    result = analytic_result(modulus=11, width=60)
    audit = audit_labels(result.spec, result.trained_weights(), result.dataset(), baseline="cleanlab")
    own = audit.scores["cleanlab_self_confidence"].values  # by its definition 1 − p[label]
    np.testing.assert_allclose(own, audit.scores["confidence"].values, atol=1e-7)
    ((_, logits),) = logits_in_parts(result.module(), audit.dataset.train_inputs)
    probabilities, labels = softmax(logits.double().numpy(), "mse"), audit.dataset.train_labels
    for row, label in enumerate(labels):
        margin = probabilities[row, label] - np.delete(probabilities[row], label).max()
        assert audit.scores["cleanlab_normalized_margin"].values[row] == pytest.approx(1 - (margin + 1) / 2, abs=1e-7)


def test_without_cleanlab_the_error_says_how_to_get_it(tiny: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    monkeypatch.setitem(sys.modules, "cleanlab.rank", None)
    weights = initial_weights(tiny.model, 11)
    with pytest.raises(GrokscopeError, match=r"pip install 'grokscope\[audit\]'"):
        audit_labels(tiny, weights, make_dataset(tiny.task), baseline="cleanlab")
    with pytest.raises(GrokscopeError, match="must be cleanlab"):
        audit_labels(tiny, weights, make_dataset(tiny.task), baseline="guess")

"""Candidates for generalising features, on neurons whose answer is known."""

import numpy as np
import pytest

import grokscope as gs
from grokscope.measure.features.candidates import (
    CANDIDATES,
    class_means,
    clean_share,
    feature_measures,
    recurrence,
)

rng = np.random.default_rng(0)


def test_class_means_are_those_of_a_loop() -> None:
    responses, labels = rng.normal(size=(50, 3)), rng.integers(4, size=50)
    found = class_means(responses, labels, 5)
    for label in range(4):
        np.testing.assert_allclose(found[label], responses[labels == label].mean(axis=0))
    assert (found[4] == 0).all()  # nobody has this label


def test_clean_share_tells_neurons_of_the_rule_from_those_of_wrong_labels() -> None:
    """Three neurons answer with the label: on clean examples only, on corrupted ones only, and on both."""
    n, labels = 40, np.zeros(40, np.int64)
    corrupted = np.arange(n) < 10
    responses = np.stack([~corrupted, corrupted, np.ones(n)], axis=1).astype(float)
    output = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
    np.testing.assert_allclose(clean_share(responses, output, labels, corrupted), [1, -1, 0])
    assert np.isnan(clean_share(responses, output, labels, np.zeros(n, bool))).all()


def test_recurrence_finds_a_neuron_again_whatever_its_place_sign_and_scale() -> None:
    first = rng.normal(size=(2000, 4))
    others = np.stack([-3 * first[:, 2], rng.normal(size=2000), 0.1 * first[:, 0] + 5], axis=1)
    found = recurrence(first, others)
    np.testing.assert_allclose(found[[0, 2]], 1)
    assert (found[[1, 3]] < 0.2).all()


@pytest.mark.parametrize("depth", [2, 3])
def test_every_candidate_has_a_number_for_each_neuron(depth: int) -> None:
    spec = gs.RunSpec(
        task=gs.TaskSpec(modulus=11),
        model=gs.ModelSpec(width=16, depth=depth, activation="relu"),
        training=gs.TrainingSpec(steps=20),
    )
    first, second = (gs.run(spec.updated({"training.seed": seed})) for seed in (0, 1))
    weights = {name: array.copy() for name, array in first.trained_weights().items()}
    last = "U" if depth == 2 else "H2"
    weights[last][3] = 0
    if depth == 2:
        weights["V"][3] = 0
    measures = feature_measures(spec.model, weights, first.dataset(), second.trained_weights())
    assert tuple(measures) == CANDIDATES
    for values in measures.values():
        assert values.shape == (16,)
        assert np.isnan(values[3])  # it never responds
    assert "recurrence" not in feature_measures(spec.model, weights, first.dataset())


def test_deep_networks_are_pruned_in_their_last_hidden_layer() -> None:
    spec = gs.RunSpec(
        task=gs.TaskSpec(modulus=11), model=gs.ModelSpec(width=12, depth=4), training=gs.TrainingSpec(steps=30)
    )
    result = gs.run(spec)
    weights = result.trained_weights()
    order = rng.permutation(12)
    (curve,) = gs.pruning_curves(weights, spec.model, result.dataset(), [order])
    assert curve.train_accuracy[0] == pytest.approx(result.final.train_accuracy)
    without = {name: array.copy() for name, array in weights.items()}
    without["W"][:, order[:5]] = 0
    logits = gs.logits_of(spec.model.module(without), result.dataset().test_inputs)
    expected = (np.asarray(logits).argmax(axis=1) == result.dataset().test_labels).mean()
    assert curve.test_accuracy[5] == pytest.approx(expected)


def test_there_are_no_plain_neurons_behind_a_norm() -> None:
    spec = gs.RunSpec(
        task=gs.TaskSpec(modulus=11),
        model=gs.ModelSpec(width=12, depth=3, norm="layer"),
        training=gs.TrainingSpec(steps=2),
    )
    result = gs.run(spec)
    with pytest.raises(gs.GrokscopeError, match="no plain neurons behind a norm"):
        gs.pruning_curves(result.trained_weights(), spec.model, result.dataset(), [range(12)])

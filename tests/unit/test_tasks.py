import random
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope import Dataset, TaskSpec, make_dataset

moduli = st.integers(3, 40)
fractions = st.floats(0.2, 0.95)
seeds = st.integers(0, 2**63 - 1)
kinds = st.sampled_from(["symmetric", "symmetric-wrong", "asymmetric"])

PLAIN = {
    "add": lambda m, n: m + n,
    "subtract": lambda m, n: m - n,
    "multiply": lambda m, n: m * n,
    "x2+y2": lambda m, n: m**2 + n**2,
    "x2+xy+y2": lambda m, n: m**2 + m * n + n**2,
}


def answers(dataset: Dataset) -> dict[tuple[int, int], int]:
    pairs = np.concatenate([dataset.train_inputs, dataset.test_inputs])
    truth = np.concatenate([dataset.train_truth, dataset.test_labels])
    return {(int(m), int(n)): int(label) for (m, n), label in zip(pairs, truth, strict=True)}


@pytest.mark.parametrize("operation", PLAIN)
@pytest.mark.parametrize("modulus", [2, 3, 10, 13, 97])
def test_answers_are_those_of_plain_arithmetic(operation: Any, modulus: int) -> None:
    dataset = make_dataset(TaskSpec(operation=operation, modulus=modulus))
    expected = {(m, n): PLAIN[operation](m, n) % modulus for m, n in product(range(modulus), repeat=2)}
    assert answers(dataset) == expected


@pytest.mark.parametrize("modulus", [2, 3, 13])
def test_division_undoes_multiplication(modulus: int) -> None:
    quotients = answers(make_dataset(TaskSpec(operation="divide", modulus=modulus)))
    assert set(quotients) == {(m, n) for m in range(modulus) for n in range(1, modulus)}
    assert all(quotient * n % modulus == m for (m, n), quotient in quotients.items())


@given(moduli, fractions, st.floats(0, 1), seeds)
def test_split_and_corruption_have_the_stated_sizes(p: int, alpha: float, xi: float, seed: int) -> None:
    dataset = make_dataset(TaskSpec(modulus=p, data_fraction=alpha, corruption=xi), seed)
    n = int(alpha * p * p)
    assert dataset.train_inputs.shape == (n, 2)
    assert dataset.test_inputs.shape == (p * p - n, 2)
    assert len(answers(dataset)) == p * p  # every pair once
    assert dataset.corrupted.sum() == int(xi * n)
    assert (dataset.train_labels == dataset.train_truth)[~dataset.corrupted].all()
    assert dataset.train_labels.min() >= 0
    assert dataset.train_labels.max() < p


@given(moduli, st.tuples(fractions, fractions), st.tuples(st.floats(0, 1), st.floats(0, 1)), seeds)
def test_training_sets_are_nested(p: int, alphas: tuple[float, float], xis: tuple[float, float], seed: int) -> None:
    """A larger α keeps every training example and its label; a larger ξ keeps every corrupted one and its label."""
    small, large = (
        make_dataset(TaskSpec(modulus=p, data_fraction=alpha, corruption=xi), seed)
        for alpha, xi in zip(sorted(alphas), sorted(xis), strict=True)
    )
    n = len(small.train_inputs)
    np.testing.assert_array_equal(small.train_inputs, large.train_inputs[:n])
    assert large.corrupted[:n][small.corrupted].all()
    np.testing.assert_array_equal(small.train_labels[small.corrupted], large.train_labels[:n][small.corrupted])


@given(moduli, kinds, seeds)
def test_kinds_of_corruption(p: int, kind: Any, seed: int) -> None:
    dataset = make_dataset(TaskSpec(modulus=p, data_fraction=0.9, corruption=0.8, corruption_kind=kind), seed)
    offset = (dataset.train_labels - dataset.train_truth)[dataset.corrupted] % p
    if kind == "asymmetric":
        assert (offset == 1).all()
    if kind == "symmetric-wrong":
        assert (offset != 0).all()


@pytest.mark.parametrize(("kind", "offsets"), [("symmetric", range(7)), ("symmetric-wrong", range(1, 7))])
def test_corrupted_labels_are_uniform(kind: Any, offsets: range) -> None:
    counts = np.zeros(7)
    for seed in range(200):
        dataset = make_dataset(TaskSpec(modulus=7, data_fraction=0.9, corruption=1.0, corruption_kind=kind), seed)
        counts += np.bincount((dataset.train_labels - dataset.train_truth) % 7, minlength=7)
    expected = counts.sum() / len(offsets)
    chi_squared = ((counts[list(offsets)] - expected) ** 2 / expected).sum()
    assert counts[[offset for offset in range(7) if offset not in offsets]].sum() == 0
    assert chi_squared < 6 + 5 * np.sqrt(12)


@given(moduli, st.sets(st.integers(0, 2), min_size=1), st.floats(0, 1), seeds)
@settings(max_examples=50)
def test_per_operand_corruption_touches_no_other_operand(p: int, operands: set[int], xi: float, seed: int) -> None:
    task = TaskSpec(modulus=p, corruption=xi, corrupted_operands=tuple(operands))
    dataset = make_dataset(task, seed)
    eligible = np.isin(dataset.train_inputs[:, 0], list(operands))
    assert not dataset.corrupted[~eligible].any()
    assert dataset.corrupted.sum() == int(xi * eligible.sum())
    assert dataset.corruption == pytest.approx(xi * eligible.mean())


def test_seeds_give_different_data() -> None:
    first, second = (make_dataset(TaskSpec(), seed) for seed in (0, 1))
    assert not np.array_equal(first.train_inputs, second.train_inputs)


def test_reference_seeding_is_the_authors_data() -> None:
    """Written out again from the recipe, with the global generators that the authors seed."""
    order = list(range(97 * 97))
    python_state, torch_state = random.getstate(), torch.get_rng_state()
    random.seed(420)
    random.shuffle(order)
    torch.manual_seed(0)
    labels = torch.randint(0, 97, (int(0.35 * 4704),))
    random.setstate(python_state)
    torch.set_rng_state(torch_state)

    dataset = make_dataset(TaskSpec(), seed=5, seeding="reference")
    assert dataset.train_examples.tolist() == order[:4704]
    assert dataset.train_labels[: len(labels)].tolist() == labels.tolist()
    assert dataset.corrupted.tolist() == [True] * len(labels) + [False] * (4704 - len(labels))


def test_making_data_leaves_global_generators_alone() -> None:
    python_state, torch_state = random.getstate(), torch.get_rng_state()
    make_dataset(TaskSpec(), seeding="reference")
    assert random.getstate() == python_state
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_a_dataset_cannot_be_changed() -> None:
    dataset = make_dataset(TaskSpec(modulus=5))
    with pytest.raises(ValueError, match="read-only"):
        dataset.train_labels[0] = 1

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.randomness import (
    Stream,
    dropout_threshold,
    dropout_words,
    integers,
    normal,
    permutation,
    philox,
    unit_interval,
)


def philox_at(counter: tuple[int, ...], seed: int) -> tuple[int, ...]:
    c0, c1, c2, c3 = (np.array([value], np.int64) for value in counter)
    return tuple(int(word[0]) for word in philox(c0, c1, c2, c3, seed))


@pytest.mark.parametrize(
    ("counter", "seed", "expected"),
    [
        # the known answers published with Random123 for philox4x32 with 10 rounds
        ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            0x299F31D0A4093822,
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(counter: tuple[int, ...], seed: int, expected: tuple[int, ...]) -> None:
    assert philox_at(counter, seed) == expected
    c0, c1, c2, c3 = (torch.tensor([value]) for value in counter)
    assert tuple(int(word[0]) for word in philox(c0, c1, c2, c3, seed)) == expected


@given(seed=st.integers(0, 2**63 - 1), count=st.integers(1, 200))
def test_permutation_is_one(seed: int, count: int) -> None:
    order = permutation(seed, Stream.BATCHES, 3, np.arange(count))
    assert sorted(order.tolist()) == list(range(count))


def test_streams_epochs_and_seeds_differ() -> None:
    examples = np.arange(50)
    orders = [
        tuple(permutation(seed, stream, epoch, examples))
        for seed in (0, 1, 2**32)
        for stream in (Stream.SPLIT, Stream.BATCHES)
        for epoch in (0, 1)
    ]
    assert len(set(orders)) == len(orders)


def test_an_example_keeps_its_number_whatever_is_asked_beside_it() -> None:
    everything = integers(7, Stream.LABELS, np.arange(100), below=97)
    some = integers(7, Stream.LABELS, np.array([93, 5]), below=97)
    assert some.tolist() == [everything[93], everything[5]]


def test_integers_are_uniform() -> None:
    counts = np.bincount(integers(0, Stream.LABELS, np.arange(97_000), below=97), minlength=97)
    chi_squared = ((counts - 1000) ** 2 / 1000).sum()
    assert chi_squared < 96 + 5 * np.sqrt(2 * 96)


def test_normal_numbers_are_normal() -> None:
    values = normal(0, tensor=1, shape=(500, 401))
    assert values.shape == (500, 401)
    moments = [float((values**power).mean()) for power in (1, 2, 3, 4)]
    assert moments == pytest.approx([0, 1, 0, 3], abs=0.05)
    assert not np.array_equal(values, normal(0, tensor=2, shape=(500, 401)))


def test_unit_interval_has_no_ends() -> None:
    first, second = unit_interval(0, Stream.INIT, 0, 100_000)
    for values in (first, second):
        assert 0 < values.min() < values.max() < 1
        assert values.mean() == pytest.approx(0.5, abs=0.005)


def slow_dropout_bits(seed: int, step: int, example: int, neuron: int) -> int:
    """The definition in the module's table, for one neuron."""
    block, place = divmod(neuron, 8)
    word = philox_at((block, example, step, 4), seed)[place // 2]
    return word >> (16 * (place % 2)) & 0xFFFF


def test_dropout_words_follow_their_definition() -> None:
    examples, blocks = np.array([[3], [9408]]), np.arange(2)[None, :]
    drawn = dropout_words(5, 17, examples, blocks)
    for row, example in enumerate((3, 9408)):
        for neuron in range(16):
            word = int(drawn[neuron % 8 // 2][row, neuron // 8])
            assert word >> (16 * (neuron % 2)) & 0xFFFF == slow_dropout_bits(5, 17, example, neuron)


@given(st.floats(0, 1, exclude_max=True))
def test_dropout_threshold_is_the_probability_in_16_bits(probability: float) -> None:
    threshold = dropout_threshold(probability)
    assert 0 <= threshold < 65536
    assert threshold / 65536 == pytest.approx(probability, abs=2**-16)

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope import Phase, classify
from grokscope.phases import describe_network


@pytest.mark.parametrize(
    ("train", "test", "corruption", "best", "phase"),
    [
        # rows of the known answers and of Table 2, thresholds included
        (0.978, 0.983, 0.35, 0.983, "coexistence"),
        (0.786, 1.0, 0.35, 1.0, "partial_inversion"),
        (0.654, 1.0, 0.35, 1.0, "full_inversion"),
        (0.804, 1.0, 0.2, 1.0, "full_inversion"),
        (0.01, 0.01, 0.35, 1.0, "forgetting"),
        (0.01, 0.01, 0.35, 0.02, "confusion"),
        (1.0, 0.05, 0.35, 0.05, "memorization"),
        (0.9, 0.9, 0.5, 0.9, "coexistence"),
        (0.89999, 0.9, 0.5, 0.9, "partial_inversion"),
        (0.55, 0.95, 0.5, 0.95, "partial_inversion"),
        (0.54999, 0.95, 0.5, 0.95, "full_inversion"),
        (0.9, 0.89999, 0.5, 0.95, "memorization"),
        (0.89999, 0.89999, 0.5, 0.9, "forgetting"),
    ],
)
def test_table_2(train: float, test: float, corruption: float, best: float, phase: str) -> None:
    assert classify(train, test, corruption, best) == phase


accuracy = st.floats(0, 1)


@given(accuracy, accuracy, accuracy, accuracy)
def test_table_1(train: float, test: float, corruption: float, best: float) -> None:
    """Whether a network generalises, and whether it memorises, can be read off its phase."""
    phase = classify(train, test, corruption, max(test, best))
    generalises = phase in (Phase.COEXISTENCE, Phase.PARTIAL_INVERSION, Phase.FULL_INVERSION)
    memorises = phase in (Phase.COEXISTENCE, Phase.MEMORIZATION)
    assert generalises == (test >= 0.9)
    assert memorises == (train >= 0.9)


@pytest.mark.parametrize(
    ("train", "test", "memorised", "recovered", "words"),
    [
        (0.99, 0.99, 0.98, 0.02, "memorises the corrupted labels"),
        (0.92, 0.99, 0.171, 0.842, "so few that it agrees with most training labels"),
        (0.80, 0.99, 0.281, 0.752, "the true answer for most of the corrupted examples"),
        (0.75, 0.99, 0.60, 0.40, "the true answer for some of the corrupted examples"),
        (0.65, 0.99, 0.02, 0.98, "ignores the corrupted labels"),
        (0.99, 0.891, 0.97, 0.02, "has found the rule only in part"),
        (0.99, 0.02, 0.97, 0.02, "has not found the rule"),
        (0.40, 0.50, 0.1, 0.3, "only in part, and does not fit the training labels either"),
        (0.40, 0.01, 0.1, 0.1, "has not found the rule, and does not fit the training labels either"),
        (0.99, 0.99, math.nan, math.nan, "The network has found the rule."),
        (0.85, 0.99, math.nan, math.nan, "though it does worse on the training set"),
    ],
)
def test_a_network_is_described_by_its_own_numbers(
    train: float, test: float, memorised: float, recovered: float, words: str
) -> None:
    phase = classify(train, test, 0.0 if math.isnan(memorised) else 0.3, test)
    assert words in describe_network(phase, test, memorised, recovered)


@given(accuracy, accuracy, st.floats(0.05, 0.95), accuracy, accuracy)
def test_a_sentence_never_contradicts_the_numbers(
    train: float, test: float, corruption: float, memorised: float, recovered: float
) -> None:
    sentence = describe_network(classify(train, test, corruption, test), test, memorised, recovered)
    assert ("has found the rule and" in sentence) == (test >= 0.9)
    assert "memorises the corrupted labels" not in sentence or memorised >= 0.9
    assert "ignores the corrupted labels" not in sentence or recovered >= 0.9


def test_every_phase_is_described_in_a_sentence_of_its_own() -> None:
    sentences = {phase.describe() for phase in Phase}
    assert len(sentences) == len(Phase) == 6
    assert Phase.FULL_INVERSION.label == "Full Inversion"

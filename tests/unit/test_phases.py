import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope import Phase, classify


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


def test_every_phase_is_described_in_a_sentence_of_its_own() -> None:
    sentences = {phase.describe() for phase in Phase}
    assert len(sentences) == len(Phase) == 6
    assert Phase.FULL_INVERSION.label == "Full Inversion"

"""Events on curves made by hand, whose steps are known, and the ledger against a plain loop."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.together import train_together

from grokscope import GrokscopeError, Ledger, LedgerRecorder, Row, RunSpec, make_dataset, run, training_events
from grokscope.measure import COLUMNS
from grokscope.measure.ledger import NEVER
from grokscope.phases import Phase, classify
from grokscope.training import Job

NAN = float("nan")


def curve(
    steps: list[int],
    train: list[float],
    test: list[float],
    corrupted: list[float] | None = None,
    norms: list[float] | None = None,
) -> list[Row]:
    """Rows with these accuracies; all three norms are the same."""
    rows = []
    for i, step in enumerate(steps):
        norm = norms[i] if norms else 1.0
        memorised = corrupted[i] if corrupted else NAN
        values = (step, 0.1, 0.1, train[i], test[i], memorised, 1.0, 1 - memorised, 0.5, 0.5, 0, norm, norm, norm)
        rows.append(Row(dict(zip(COLUMNS, values, strict=True))))
    return rows


def test_the_two_stages() -> None:
    """Memorised by 10, grokked by 50, unlearned by 150: each after the measured step before."""
    events = training_events(
        curve([1, 10, 50, 100, 150], [0.1, 0.95, 1, 0.9, 0.66], [0, 0, 0.9, 1, 1], [0, 0.9, 1, 0.5, 0.49])
    )
    assert (events.memorised.after, events.memorised.step) == (1, 10)
    assert (events.grokked.after, events.grokked.step) == (10, 50)
    assert (events.unlearned.after, events.unlearned.step) == (100, 150)  # half of the maximum is not below half
    assert events.forgot.step is None
    assert events.delay is not None
    # Memorised at one of 2 … 10, grokked at one of 11 … 50.
    assert (events.delay.measured, events.delay.at_least, events.delay.at_most) == (40, 1, 48)


def test_what_is_so_from_the_first_measurement_happened_after_step_0() -> None:
    events = training_events(curve([1, 2], [1, 1], [1, 1], [1, 1]))
    assert (events.memorised.after, events.memorised.step) == (0, 1)
    assert events.memorised.describe().startswith("at step 1:")
    assert events.delay is not None
    assert (events.delay.at_least, events.delay.at_most) == (0, 0)


def test_a_network_that_groks_before_it_memorises_has_a_negative_delay() -> None:
    events = training_events(curve([10, 20, 30], [0.7, 0.7, 0.95], [0.1, 0.95, 1], [0.1, 0.1, 0.9]))
    assert events.delay is not None
    assert (events.delay.measured, events.delay.at_least, events.delay.at_most) == (-10, -19, -1)


def test_high_train_accuracy_without_corrupted_labels_is_not_memorising() -> None:
    """With few corrupted labels the rule alone gives 90 %."""
    events = training_events(curve([1, 2], [0.5, 0.95], [0.5, 1], [0.1, 0.2]))
    assert events.memorised.step is None
    assert "95.0%, at step 2" in events.memorised.words
    assert "nothing to unlearn" in events.unlearned.words
    assert events.delay is None


def test_without_corruption_memorising_is_train_accuracy_alone() -> None:
    events = training_events(curve([1, 2], [0.5, 0.95], [0, 0]))
    assert events.memorised.step == 2
    assert events.unlearned.words == "nothing to unlearn: no label is corrupted"
    assert "never grokked" in events.grokked.words


def test_forgetting_is_for_good() -> None:
    """A dip that heals does not count, and the last fall is what counts."""
    test = [0.1, 0.95, 0.5, 1, 0.8, 0.01]
    events = training_events(curve([1, 2, 3, 4, 5, 6], [1] * 6, test, norms=[10, 20, 20, 5, 2.1, 1.9]))
    assert (events.forgot.after, events.forgot.step) == (4, 5)
    assert (events.collapsed.after, events.collapsed.step) == (5, 6)
    healed = training_events(curve([1, 2, 3, 4], [1] * 4, test[:4], norms=[10, 20, 2.1, 20]))
    assert healed.forgot.step is None
    assert healed.collapsed.step is None


def test_norms_that_a_network_does_not_have_do_not_count() -> None:
    rows = curve([1, 2], [0, 0], [0, 0], norms=[10, 0.5])
    without_v = [Row({**row, "norm_v": NAN}) for row in rows]
    assert training_events(without_v).collapsed.step == 2


def test_an_empty_curve_is_refused() -> None:
    with pytest.raises(GrokscopeError, match="no curve"):
        training_events([])


accuracies = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(accuracies, st.data())
def test_events_agree_with_the_phase(test: list[float], data: Any) -> None:
    """Grokked and forgot are what tells Forgetting from Confusion, whatever the curve."""
    train = [data.draw(st.floats(0, 0.89)) for _ in test]
    events = training_events(curve(list(range(1, len(test) + 1)), train, test, [0.5] * len(test)))
    phase = classify(train[-1], test[-1], 0.3, max(test))
    assert (phase is Phase.FORGETTING) == (events.forgot.step is not None)
    assert (max(test) >= 0.9) == (events.grokked.step is not None)
    for event in events.events().values():
        assert (event.step is None) == (event.after is None)
        assert event.step is None or event.after == event.step - 1
        assert event.words


# ---- the ledger -----------------------------------------------------------------------------------------------------


def ledger_of(predictions: list[list[int]], label: list[int], truth: list[int]) -> Ledger:
    count = len(label)
    return Ledger(
        steps=np.array([10 * (i + 1) for i in range(len(predictions))], dtype=np.int64),
        examples=np.zeros((count, 2), dtype=np.int64),
        label=np.array(label, dtype=np.int64),
        truth=np.array(truth, dtype=np.int64),
        predictions=np.array(predictions, dtype=np.int64).reshape(len(predictions), count),
    )


def test_fates_of_single_examples() -> None:
    """Label 1, truth 2, measured at 10, 20, 30, 40; the last example drew the truth."""
    histories = [[0, 1, 1, 2], [2, 2, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0], [2, 0, 2, 2], [0, 2, 2, 2]]
    ledger = ledger_of(np.array(histories).T.tolist(), [1, 1, 1, 1, 1, 2], [2] * 6)
    assert ledger.memorised_step.tolist() == [20, 40, 10, NEVER, NEVER, 20]
    assert ledger.recovered_step.tolist() == [40, 10, NEVER, NEVER, 10, 20]
    assert ledger.lost_step.tolist() == [NEVER, 30, NEVER, NEVER, NEVER, NEVER]
    assert ledger.final == ["recovered", "memorised", "memorised", "other", "recovered", "correct"]
    assert ledger.counts() == {
        "corrupted": 6, "drawn_true": 1, "ever_memorised": 3, "ever_recovered": 3, "memorised_then_recovered": 1,
        "recovered_then_lost": 1, "finally_memorised": 2, "finally_recovered": 2, "finally_other": 1,
    }  # fmt: skip


@given(st.data())
def test_the_ledger_against_a_plain_loop(data: Any) -> None:
    count, times = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 6))
    answers = st.integers(0, 2)
    predictions = [[data.draw(answers) for _ in range(count)] for _ in range(times)]
    label, truth = ([data.draw(answers) for _ in range(count)] for _ in range(2))
    ledger = ledger_of(predictions, label, truth)
    for i in range(count):
        memorised = recovered = lost = NEVER
        for t in range(times):
            said = predictions[t][i]
            if said == label[i] and memorised == NEVER:
                memorised = 10 * (t + 1)
            if said == truth[i]:
                recovered = 10 * (t + 1) if recovered == NEVER else recovered
                lost = NEVER
            elif recovered != NEVER and lost == NEVER:
                lost = 10 * (t + 1)
        assert (ledger.memorised_step[i], ledger.recovered_step[i], ledger.lost_step[i]) == (memorised, recovered, lost)
        ends_true = ledger.final[i] in ("recovered", "correct")
        assert ends_true == (recovered != NEVER and lost == NEVER)
    counts = ledger.counts()
    ended = sum(counts[f"finally_{fate}"] for fate in ("memorised", "recovered", "other"))
    assert ended == counts["corrupted"] - counts["drawn_true"] == sum(a != b for a, b in zip(label, truth, strict=True))


@pytest.mark.parametrize("engine", ["native", "torch", "stacked"])
def test_the_ledger_agrees_with_the_curve(tiny: RunSpec, engine: str) -> None:
    dataset = make_dataset(tiny.task)
    recorder = LedgerRecorder(dataset)
    result = run(tiny, engine=engine, on_evaluation=recorder)
    ledger = recorder.ledger()
    assert ledger.steps.tolist() == [row.step for row in result.curve]
    assert ledger.memorised.mean(axis=1).tolist() == pytest.approx([row.corrupted_accuracy for row in result.curve])
    assert ledger.recovered.mean(axis=1).tolist() == pytest.approx([row.recovered_accuracy for row in result.curve])
    np.testing.assert_array_equal(ledger.examples, dataset.train_inputs[dataset.corrupted])


def test_every_evaluation_can_be_had_of_a_stack(tiny: RunSpec) -> None:
    """Of both runs, at every measured step, and with the losses whose mean the curve has."""
    seen: list[tuple[int, int, float]] = []

    def job(run: int) -> Job:
        return Job(
            tiny.updated({"training.seed": run}),
            on_evaluation=lambda step, _, test: seen.append((run, step, float(test.losses.mean()))),
        )

    results = train_together([job(0), job(1)])
    both = zip(*(result.curve for result in results), strict=True)
    assert seen == [(i, row.step, row.test_loss) for rows in both for i, row in enumerate(rows)]

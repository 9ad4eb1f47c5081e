"""Runs that end once their phase is decided."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.cluster.validation import checked_result
from grokscope.errors import SpecError
from grokscope.measure import Row
from grokscope.phases import Phase, classify
from grokscope.result import RunResult
from grokscope.settling import has_settled
from grokscope.snapshots import snapshot_steps
from grokscope.spec import RunSpec, TrainingSpec
from grokscope.store import Store
from grokscope.store.contents import Damaged
from grokscope.training import Job, RunGroup, execute

TRAINING = TrainingSpec(steps=1000, measure_every=100, settle=200)


def curve(*accuracies: tuple[float, float]) -> list[Row]:
    """Rows at steps 100, 200, … with these train and test accuracies."""
    return [
        Row({"step": 100 * (place + 1), "train_accuracy": train, "test_accuracy": test})
        for place, (train, test) in enumerate(accuracies)
    ]


@pytest.mark.parametrize(
    ("rows", "settled"),
    [
        ([(1.0, 0.1)] * 3, True),
        ([(1.0, 0.1)] * 2, False),  # not for so long
        ([(0.5, 0.1), (1.0, 0.1), (1.0, 0.1)], False),  # the phase was another one
        ([(0.5, 0.1), *[(1.0, 0.1)] * 3], True),
        ([(1.0, 0.885)] * 3, False),  # too near to Coexistence
        ([(1.0, 0.87)] * 3, True),
        ([(1.0, 0.1), (1.0, 0.15), (1.0, 0.2)], True),  # 0.05 in 100 steps: 0.55 at the end
        ([(1.0, 0.1), (1.0, 0.2), (1.0, 0.4)], False),  # 0.15 in 100 steps: above 0.9 before the end
        ([(0.95, 1.0), (0.94, 1.0), (0.93, 1.0)], False),  # on the way to Partial Inversion
        ([(0.78, 1.0)] * 3, True),  # ξ = 0.2: Full Inversion is below 0.85
        ([(0.84, 1.0)] * 3, False),
        ([(0.84, 0.5)] * 3, True),  # that bound means nothing where the rule is not known
        ([(0.3, 0.95), (0.3, 0.5), (0.3, 0.1)], False),  # Forgetting, but not for so long
        ([(0.3, 0.95), (0.3, 0.5), (0.3, 0.1), (0.3, 0.05)], True),  # going away from the bound
        ([(0.3, 0.95), *[(0.3, 0.05)] * 3], True),  # Forgetting
        ([(1.0, float("nan"))] * 3, False),
    ],
)
def test_when_a_phase_is_decided(rows: list[tuple[float, float]], settled: bool) -> None:
    assert has_settled(curve(*rows), TRAINING, corruption=0.2) is settled
    assert not has_settled(curve(*rows), TrainingSpec(steps=1000, measure_every=100), corruption=0.2)


@pytest.mark.parametrize(
    ("norms", "settled"),
    [
        ((10, 10, 10), True),
        ((10, 9.5, 9), True),  # 1 in 200 steps: 5.5 at the end
        ((10, 9, 8), False),  # 2 in 200 steps: 1 at the end
        ((1, 5, 10), True),
        ((float("nan"),) * 3, True),  # networks without such a matrix
    ],
)
def test_a_network_whose_weights_fade_goes_on(norms: tuple[float, ...], settled: bool) -> None:
    rows = [
        Row({**row, "norm_u": 10.0, "norm_v": float("nan"), "norm_w": norm})
        for row, norm in zip(curve(*[(1.0, 1.0)] * 3), norms, strict=True)
    ]
    assert has_settled(rows, TRAINING, corruption=0.0) is settled


accuracies = st.floats(0, 1)


@given(st.lists(st.tuples(accuracies, accuracies), min_size=3, max_size=9), accuracies)
def test_a_course_that_goes_on_as_before_ends_in_the_phase_in_which_it_settled(
    rows: list[tuple[float, float]], corruption: float
) -> None:
    so_far = curve(*rows)
    if not has_settled(so_far, TRAINING, corruption):
        return
    last, first = so_far[-1], so_far[-3]
    left = (TRAINING.steps - last.step) / (last.step - first.step)
    train, test = (last[name] + left * (last[name] - first[name]) for name in ("train_accuracy", "test_accuracy"))
    best = max(row.test_accuracy for row in so_far)
    now = classify(last.train_accuracy, last.test_accuracy, corruption, best)
    assert classify(train, test, corruption, max(best, test)) is now


SPEC = RunSpec().updated(
    {"task.modulus": 11, "model.width": 32, "training.steps": 400, "training.measure_every": 20, "task.corruption": 0.4}
)
SETTLING = SPEC.updated({"training.settle": 100})


@pytest.fixture(scope="module")
def settled() -> RunResult:
    return execute(SETTLING)


def test_a_run_ends_at_the_first_step_at_which_it_has_settled(settled: RunResult) -> None:
    whole = execute(SPEC)
    rows = len(settled.curve)
    assert (settled.status, settled.settled, settled.checkpoint) == ("finished", True, None)
    assert settled.run_id != whole.run_id
    assert settled.curve == whole.curve[:rows]
    ends = [has_settled(whole.curve[:count], SETTLING.training, whole.corruption) for count in range(1, rows + 1)]
    assert ends == [False] * (rows - 1) + [True]
    assert settled.phase is whole.phase is Phase.MEMORIZATION
    assert f"Settled at step {settled.final.step} of 400: Memorization." in settled.describe()
    assert not whole.settled
    assert "Settled" not in whole.describe()


def test_its_weights_are_those_of_that_step_also_in_a_stack(settled: RunResult) -> None:
    short = execute(SPEC.updated({"training.steps": settled.final.step}))
    assert all(
        np.array_equal(settled.trained_weights()[name], array) for name, array in short.trained_weights().items()
    )
    # Without wrong labels and weight decay it takes longer, so the stack goes on without the first.
    longer = SETTLING.updated({"task.data_fraction": 0.9, "task.corruption": 0.05})
    group = RunGroup([Job(SETTLING), Job(longer)])
    seen = [set(group.checkpoints()) for _ in group.train()]
    first, second = group.results()
    assert first.final.step < second.final.step
    assert seen[-1] == {1}  # who has settled does not go on from a checkpoint
    alone = execute(SETTLING, engine="stacked")
    assert np.array_equal(first.trained_weights()["U"], alone.trained_weights()["U"])


def test_it_goes_on_after_an_interruption_to_the_same_end(settled: RunResult) -> None:
    checkpoints = []
    execute(SETTLING, on_pause=lambda make: checkpoints.append(make()))
    again = execute(SETTLING, start=checkpoints[-1])
    assert again.curve == settled.curve
    assert np.array_equal(again.trained_weights()["W"], settled.trained_weights()["W"])


def test_the_store_keeps_it_and_a_worker_cannot_pretend(settled: RunResult, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    store.save(settled)
    kept = store.load(settled.run_id)
    assert (kept.curve, kept.settled, kept.phase) == (settled.curve, True, settled.phase)

    def content(result: RunResult) -> bytes:
        other = Store(tmp_path / f"{len(result.curve)}-{result.run_id}")
        other.save(result, weights=True)
        (file,) = (path for path in other.path.rglob("*.safetensors"))
        return file.read_bytes()

    assert checked_result(content(settled), SETTLING, weights=True).curve == settled.curve
    cut = replace(settled, curve=settled.curve[:-1], ipr_history=None)
    with pytest.raises(Damaged, match="at another step"):
        checked_result(content(cut), SETTLING, weights=True)
    with pytest.raises(Damaged, match="at another step"):  # it should have ended before
        checked_result(content(replace(execute(SPEC), spec=SETTLING)), SETTLING, weights=True)


def test_snapshots_of_steps_that_it_may_not_reach_are_refused() -> None:
    with pytest.raises(SpecError, match="leave one of them out"):
        snapshot_steps(SETTLING.training, "all")

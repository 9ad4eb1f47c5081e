"""Settings whose outcome is known, at the paper's full scale."""

import pytest

from grokscope import RunSpec, run

BATCH_NORM = {
    "task.data_fraction": 0.65,
    "task.corruption": 0.2,
    "training.batch_size": 64,
    "optimizer.learning_rate": 0.005,
    "training.steps": 2000,
    "model.norm": "batch",
}


def test_batch_norm_inverts_fully() -> None:
    result = run(RunSpec().updated(BATCH_NORM))
    assert result.phase == "full_inversion"
    assert result.final.train_accuracy == pytest.approx(0.804, abs=0.02)
    assert result.final.test_accuracy > 0.98


def test_without_batch_norm_it_lands_on_the_boundary_of_the_inversions() -> None:
    result = run(RunSpec().updated(BATCH_NORM | {"model.norm": "none"}))
    assert result.phase in ("full_inversion", "partial_inversion")
    assert result.final.train_accuracy == pytest.approx(0.819, abs=0.03)
    assert result.final.test_accuracy > 0.98


def test_without_corruption_it_groks_within_84_steps() -> None:
    """Figure 2."""
    result = run(RunSpec().updated({"task.corruption": 0.0, "optimizer.weight_decay": 5.0, "training.steps": 84}))
    assert result.final.train_accuracy == pytest.approx(1, abs=0.005)
    assert result.final.test_accuracy == pytest.approx(1, abs=0.01)


@pytest.mark.verify
@pytest.mark.parametrize(
    ("decay", "steps", "train", "test", "phase"),
    [
        (0.0, 1000, 0.978, 0.983, "coexistence"),
        (5.0, 500, 0.786, 1.0, "partial_inversion"),
        (15.0, 500, 0.654, 1.0, "full_inversion"),
    ],
)
def test_weight_decay_at_the_paper_s_standard_point(
    decay: float, steps: int, train: float, test: float, phase: str
) -> None:
    """α .5, ξ .35; single runs with other seeds move by about .02."""
    result = run(RunSpec().updated({"optimizer.weight_decay": decay, "training.steps": steps}))
    assert result.phase == phase
    assert result.final.train_accuracy == pytest.approx(train, abs=0.03)
    assert result.final.test_accuracy == pytest.approx(test, abs=0.03)


@pytest.mark.verify
def test_stronger_decay_forgets() -> None:
    result = run(RunSpec().updated({"optimizer.weight_decay": 20.0, "training.steps": 5000}))
    assert result.phase == "forgetting"
    at_250 = next(row for row in result.curve if row.step == 250)
    assert at_250.test_accuracy > 0.99
    assert result.final.test_accuracy < 0.03


@pytest.mark.verify
def test_multiplication_is_periodic_in_the_discrete_logarithm() -> None:
    result = run(RunSpec().updated({"task.operation": "multiply", "optimizer.weight_decay": 15.0}))
    assert result.phase == "full_inversion"
    assert result.final.mean_ipr > 0.5

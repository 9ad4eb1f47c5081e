"""What a sweep is said to take, before it is run."""

from pathlib import Path

import pytest

from grokscope.spec import RunSpec
from grokscope.sweeps import Running, estimate


def test_the_cost_of_a_few_large_networks_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is timed at exactly what it takes, so what is estimated for all has to be their sum."""
    spent: dict[str, float] = {}

    def timed(spec: RunSpec, engine: str, device: str) -> float:
        seconds = estimate.relative_cost(spec) * (5.0 if spec.training.batch_size else 1.0)
        spent[spec.run_id] = seconds
        return seconds

    monkeypatch.setattr(estimate, "_seconds_of", timed)
    narrow = [RunSpec().updated({"task.data_fraction": i / 100, "training.seed": i}) for i in range(1, 91)]
    wide = RunSpec().updated({"model.width": 10_000})
    in_batches = [spec.updated({"training.batch_size": 8, "training.steps": 100}) for spec in narrow[40:50]]
    specs = [*narrow[:37], wide, *narrow[37:], *in_batches]
    exact = sum(timed(spec, "auto", "cpu") for spec in specs)
    spent.clear()
    assert sum(estimate.estimated_durations(specs, "auto")) == pytest.approx(exact)
    assert len(spent) <= estimate.SAMPLES


def test_nothing_takes_no_time() -> None:
    assert estimate.estimated_durations([], "auto") == []
    assert estimate.estimated_durations([], "stacked") == []
    assert estimate.estimated_seconds([], Running()) == 0


def test_short_runs_take_the_time_around_them_too(tiny: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [tiny.updated({"training.seed": seed}) for seed in range(6)]
    monkeypatch.setattr(estimate, "estimated_durations", lambda specs, *_: [0.5] * len(specs))
    monkeypatch.setattr(estimate, "seconds_around_a_run", lambda: 0.25)
    monkeypatch.setattr(estimate, "seconds_to_start", lambda: 2.0)
    assert estimate.estimated_seconds(specs, Running(workers=2)) == 3 * 0.75 + 2
    assert estimate.estimated_seconds(specs, Running(workers=0)) == 6 * 0.75
    monkeypatch.setattr(estimate, "estimated_durations", lambda specs, *_: [1000.0] * len(specs))
    assert estimate.estimated_seconds(specs, Running(workers=2)) == 3000


def test_what_is_around_a_run_is_measured_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert estimate.seconds_around_a_run.__wrapped__() > 0
    assert estimate.seconds_to_start.__wrapped__() > 0
    assert not list(tmp_path.iterdir())

"""The authors' recorded runs, followed from the same data and the same initial weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grokscope import ModelSpec, OptimizerSpec, RunSpec, TaskSpec, TrainingSpec, run

TRACES = Path(__file__).with_name("reference")


@pytest.mark.parametrize(
    ("name", "phase"), [("wd0", "coexistence"), ("wd5", "partial_inversion"), ("relu_wd5", "partial_inversion")]
)
def test_a_run_follows_the_recorded_trace(name: str, phase: str) -> None:
    trace: dict[str, Any] = json.loads((TRACES / f"{name}.json").read_text())
    spec = RunSpec(
        task=TaskSpec(data_fraction=trace["alpha"], corruption=trace["xi"]),
        model=ModelSpec(activation=trace["act"]),
        optimizer=OptimizerSpec(weight_decay=trace["wd"]),
        training=TrainingSpec(steps=trace["steps"], seeding="reference"),
    )
    result = run(spec)
    recorded = trace["curve"]
    assert [row.step for row in result.curve] == [row["step"] for row in recorded]

    for ours, theirs in zip(result.curve[:10], recorded[:10], strict=True):
        assert ours.train_loss == pytest.approx(theirs["train_loss"], rel=1e-4)
        assert ours.test_loss == pytest.approx(theirs["test_loss"], rel=1e-4)
        assert ours.train_accuracy == pytest.approx(theirs["train_acc"], abs=0.001)

    assert result.phase == phase
    end = recorded[-1]
    assert result.final.train_accuracy == pytest.approx(end["train_acc"], abs=0.03)
    assert result.final.test_accuracy == pytest.approx(end["test_acc"], abs=0.03)
    assert result.final.corrupted_accuracy == pytest.approx(end["corrupted_acc"], abs=0.03)
    assert result.final.norm_u == pytest.approx(trace["norms"]["U"], rel=0.03)
    assert result.final.norm_w == pytest.approx(trace["norms"]["W"], rel=0.03)
    assert result.neurons is not None
    ours_low = float((result.neurons.neuron_ipr < 0.3).mean())
    theirs_low = sum(trace["ipr_hist"][:6]) / sum(trace["ipr_hist"])
    assert ours_low == pytest.approx(theirs_low, abs=0.05)
    if trace["ipr_mean"] is not None:
        assert result.final.mean_ipr == pytest.approx(trace["ipr_mean"], abs=0.03)
    assert np.isfinite(result.final.mean_ipr)

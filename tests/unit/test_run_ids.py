"""Run ids are for ever: the runs of every figure and claim, at every scale, against a list made at release 0.1.

`tests/data/run_ids.json` has for each scale and experiment the ids of its single networks, and of each diagram the
number of its cells and a digest of their ids in order. A new experiment is added to it, and new networks to a line; an
id that is there never goes.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from grokscope.experiments.catalogue import EXPERIMENTS
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.scale import SCALES, Scale
from grokscope.sweeps.plan import Plan

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "run_ids.json").read_text(encoding="utf-8")
)


def runs_of(experiment: Experiment, scale: Scale) -> dict[str, Any]:
    needs = [experiment.needs(scale), *(claim.needs(scale) for claim in experiment.claims)]
    plans = {plan.name: plan for need in needs for plan in need.plans(scale)}
    return {
        "networks": sorted({spec.run_id for need in needs for spec in need.specs(scale)}),
        "diagrams": {name: [plan.size, digest(plan)] for name, plan in sorted(plans.items())},
    }


def digest(plan: Plan) -> str:
    return hashlib.sha256(" ".join(spec.run_id for spec in plan.specs()).encode()).hexdigest()[:16]


@pytest.mark.parametrize("scale", SCALES)
def test_every_run_has_the_id_it_always_had(scale: str) -> None:
    known = RECORDED[scale]
    assert known.keys() == EXPERIMENTS.keys()
    for name, runs in known.items():
        assert runs_of(EXPERIMENTS[name], SCALES[scale]) == runs, name

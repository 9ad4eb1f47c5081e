"""The runs that every claim asks for at every scale stay the same, so that stored runs and published verdicts do.

A new claim is added with: python -m tests.unit.test_claim_runs
"""

import hashlib
import json
from pathlib import Path

import pytest

from grokscope.experiments.catalogue import CLAIMS
from grokscope.experiments.scale import SCALES, Scale

RECORD = Path(__file__).parents[1] / "data" / "claim_runs.json"
_DIAGRAMS: dict[str, list[str]] = {}  # of the diagrams that several claims share, by everything that they are


def digest(claim_id: str, scale: Scale) -> str:
    """Of the networks with all their seeds, and of the diagrams by name with the runs of their cells."""
    needs = CLAIMS[claim_id].needs(scale)
    networks = sorted(spec.run_id for spec in needs.specs(scale))
    diagrams = {}
    for plan in needs.plans(scale):
        key = repr(plan)
        if key not in _DIAGRAMS:
            _DIAGRAMS[key] = sorted({spec.run_id for spec in plan.specs()})
        diagrams[plan.name] = _DIAGRAMS[key]
    content = json.dumps({"networks": networks, "diagrams": diagrams}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def digests() -> dict[str, dict[str, str]]:
    return {name: {scale.name: digest(name, scale) for scale in SCALES.values()} for name in CLAIMS}


def test_every_claim_is_on_record() -> None:
    assert sorted(json.loads(RECORD.read_text())) == sorted(CLAIMS)


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_claim_asks_for_the_runs_on_record(claim_id: str) -> None:
    recorded = json.loads(RECORD.read_text())[claim_id]
    assert {scale.name: digest(claim_id, scale) for scale in SCALES.values()} == recorded


if __name__ == "__main__":
    kept = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    RECORD.write_text(json.dumps({**digests(), **kept}, indent=1, sort_keys=True) + "\n")

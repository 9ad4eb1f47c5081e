"""The whole paper at quick scale: every figure is drawn from real runs, every claim without a note holds."""

from pathlib import Path

import pytest

from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.claim import Claim, Verdict, examine
from grokscope.experiments.evidence import Evidence
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.gathering import gather, plan_work
from grokscope.experiments.scale import QUICK, Amount
from grokscope.store import Store
from grokscope.sweeps import Running

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3 * 3600)]


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One for all tests and all processes: what one has trained the others use."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base  # pytest-xdist gives each process a part of it
    return Store(shared / "paper")


def with_runs(store: Store, *, figures: list[Experiment] | None = None, claims: list[Claim] | None = None) -> Store:
    return gather(plan_work(figures or [], claims or [], Amount("quick"), Running(workers=1), store.path))


@pytest.mark.parametrize("name", [name for name, experiment in EXPERIMENTS.items() if not experiment.unavailable])
def test_a_figure_is_drawn(name: str, store: Store, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    drawing = experiment.drawing(Evidence(with_runs(store, figures=[experiment]), QUICK))
    drawing.figure.savefig(tmp_path / f"{name}.png")


HOLDING_WITH_A_NOTE = {  # which says something else than what was seen instead
    "analytic-solves",
    "batchnorm-keeps-low-ipr",
    "beyond-fate-early",
    "batchnorm-known-accuracies",
    "batchnorm-regularises",
    "deep-batchnorm-periodic-output",
    "deep-batchnorm-scales",
    "gradient-formula",
    "ipr-range",
    "layernorm-scales-do-not-follow-ipr",
    "no-forgetting-descent",
    "rule-survives-random-loss",
    "transformer-embedding-mode",
}


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_claim_holds_unless_its_note_says_what_was_seen(claim_id: str, store: Store) -> None:
    claim = CLAIMS[claim_id]
    finding = examine(claim, Evidence(with_runs(store, claims=[claim]), QUICK))
    said = "; ".join(measured.text for measured in finding.measured)
    excused = claim.note and claim_id not in HOLDING_WITH_A_NOTE
    fine = (Verdict.HOLDS, Verdict.UNDECIDED)  # a claim that was superseded, or corrected, is measured as well
    assert finding.found in fine or excused, f"{claim_id} {finding.found}: {said}"

"""Every figure draws, and every claim is measured, from a store that was made up."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.synthetic import fill

from grokscope.experiments.captions import caption, settings
from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.claim import Verdict, examine
from grokscope.experiments.evidence import Evidence
from grokscope.experiments.scale import SCALES, TINY, Scale
from grokscope.spec import RunSpec

AVAILABLE = list(EXPERIMENTS)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store to which every test adds what it needs: figures and claims share most of their runs."""
    return tmp_path_factory.mktemp("experiments")


@pytest.mark.parametrize("name", AVAILABLE)
def test_a_figure_draws_what_its_table_says(name: str, shared: Path, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    needs = experiment.needs(TINY)
    evidence = Evidence(fill(shared, needs, TINY), TINY)
    assert evidence.missing(needs) == 0
    drawing = experiment.drawing(evidence)
    assert len({len(column) for column in drawing.data.values()}) == 1
    assert len(next(iter(drawing.data.values()))) > 0
    drawing.figure.savefig(tmp_path / f"{name}.png", dpi=50)
    text = caption(experiment, evidence, f"grokscope figure {name}")
    assert experiment.title in text
    assert all(spec.run_id in text for spec in needs.specs(TINY))
    assert all(plan.name in text for plan in needs.plans(TINY))


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_claim_is_measured(claim_id: str, shared: Path) -> None:
    claim = CLAIMS[claim_id]
    store = fill(shared, claim.needs(TINY), TINY)
    finding = examine(claim, Evidence(store, TINY))
    assert finding.verdict is not Verdict.NOT_RUN
    assert len(finding.measured) == len(claim.checks) > 0
    for measured in finding.measured:
        assert measured.check.what in measured.text
        assert math.isfinite(measured.check.low) or math.isfinite(measured.check.high)


@pytest.mark.parametrize("name", AVAILABLE)
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_needs_are_possible_runs_at_every_scale(name: str, scale: Scale) -> None:
    needs = EXPERIMENTS[name].needs(scale)
    specs = needs.specs(scale)
    plans = needs.plans(scale)
    for plan in plans:
        assert all(spec.run_id for spec in plan.specs())
    assert len({spec.run_id for spec in specs}) == len(specs)
    assert len({plan.name for plan in plans}) == len(plans)


def test_claims_have_names_of_their_own() -> None:
    for experiment in EXPERIMENTS.values():
        assert all(CLAIMS[claim.id] is claim for claim in experiment.claims)


@pytest.mark.parametrize("figure", ["fig03", "fig07"])
def test_the_halves_of_a_figure_share_its_claims_and_its_runs_between_them(figure: str) -> None:
    whole, *halves = (EXPERIMENTS[name] for name in (figure, f"{figure}a", f"{figure}b"))
    assert whole.claims == tuple(claim for half in halves for claim in half.claims)
    needs = [half.needs(TINY) for half in halves]
    assert whole.needs(TINY).networks == tuple(spec for half in needs for spec in half.networks)
    assert whole.needs(TINY).diagrams == tuple(plan for half in needs for plan in half.diagrams)


def test_the_halves_of_figure_3_need_what_their_claims_need() -> None:
    for half in (EXPERIMENTS["fig03a"], EXPERIMENTS["fig03b"]):
        assert all(claim.needs(TINY) == half.needs(TINY) for claim in half.claims)


def test_the_losses_of_figure_18_end_at_the_level_that_it_marks(shared: Path) -> None:
    needs = EXPERIMENTS["fig18"].needs(TINY)
    figure = EXPERIMENTS["fig18"].drawing(Evidence(fill(shared, needs, TINY), TINY)).figure
    for axes in figure.axes:
        train, test, marked = (np.asarray(line.get_ydata())[-1] for line in axes.lines)
        assert (train, test) == (pytest.approx(marked), pytest.approx(marked))


def test_captions_have_all_fields_of_a_class_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gentle.py").write_text(
        "import grokscope as gs\n"
        "class Gentle(gs.Optimizer):\n"
        "    learning_rate: float = 1e-4\n"
        "    def update(self, weight, gradient, moments, step): weight.sub_(self.learning_rate * gradient)\n"
    )
    spec = RunSpec().updated({"optimizer.kind": "gentle.py:Gentle"})
    assert "optimizer.learning_rate = 0.0001" in settings(spec)
    assert "Gentle" in settings(spec, short=True)
    assert "@" not in settings(spec, short=True)
    assert settings(RunSpec()) == "the default setting"

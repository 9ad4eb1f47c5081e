"""What makes a claim hold, fail, or neither; and what the ledger says."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.synthetic import fill, synthetic_result

from grokscope.experiments.beyond.probability import CORRUPTION as LINE
from grokscope.experiments.catalogue import CLAIMS
from grokscope.experiments.cause import Superseded
from grokscope.experiments.claim import Check, CheckResult, Claim, Finding, Verdict, examine
from grokscope.experiments.evidence import Evidence, Needs, Untrained, View, best_scale, missing_networks
from grokscope.experiments.paper.deep_networks import DEEP_MLP
from grokscope.experiments.paper.fig03 import WEIGHT_DECAY, with_decay
from grokscope.experiments.quantities.regions import larger_share, share
from grokscope.experiments.scale import MIXED, PAPER, QUICK, SCALES, TINY, Scale
from grokscope.experiments.verdicts import Findings
from grokscope.phases import Phase
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.store import Store

SPEC = RunSpec()
TWO_SEEDS = replace(TINY, seeds=2)


def needs(scale: Scale) -> Needs:
    return Needs(networks=(SPEC,), seeds=3)


def claim(*checks: Check) -> Claim:
    return Claim("a-claim", "Section 9", "Something is so.", checks, note="seen otherwise", seen_before="Half of it.")


def check(low: float = -math.inf, high: float = math.inf) -> Check:
    return Check("number", lambda result: float(result.spec.training.seed), low, high, of=SPEC)


@given(st.lists(st.floats(-10, 10), min_size=1), st.floats(-10, 10), st.floats(0, 10))
def test_all_seeds_must_lie_within_the_bounds(values: list[float], low: float, width: float) -> None:
    bounds = check(low, low + width)
    inside = [bounds.low <= value <= bounds.high for value in values]
    verdict = CheckResult(bounds, tuple(values)).verdict
    assert (verdict is Verdict.HOLDS) == all(inside)
    assert (verdict is Verdict.FAILS) == (not any(inside))
    assert (verdict is Verdict.INCONCLUSIVE) == (any(inside) and not all(inside))


def test_nothing_measured_decides_nothing() -> None:
    assert CheckResult(check(0, 1), (0.5, math.nan)).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (0.2, Verdict.HOLDS),
        (0.12, Verdict.UNDECIDED),  # a cell less, and it fails
        (0.08, Verdict.UNDECIDED),
        (0.06, Verdict.UNDECIDED),  # a cell more is on the bound
        (0.05, Verdict.FAILS),
        (0.0, Verdict.FAILS),
    ],
)
def test_a_share_is_undecided_if_one_cell_would_change_its_verdict(value: float, verdict: Verdict) -> None:
    grows = Check("share", larger_share(Phase.CONFUSION), low=0.1, of=(with_decay(5), with_decay(0)))
    cell = grows.cell(QUICK)
    assert cell == 1 / 25
    assert grows.cell(PAPER) == 1 / (17 * 19)
    assert check().cell(QUICK) == 0
    assert CheckResult(grows, (value,), cell).verdict is verdict


def test_none_of_the_cells_is_what_a_bound_below_one_cell_asks_for() -> None:
    few = Check("share", share(Phase.CONFUSION), high=0.02, of=with_decay(0))
    assert CheckResult(few, (0.0,), few.cell(QUICK)).verdict is Verdict.HOLDS
    assert CheckResult(few, (0.04,), few.cell(QUICK)).verdict is Verdict.UNDECIDED


def test_a_claim_may_need_an_erratum_or_be_superseded() -> None:
    good = (CheckResult(check(0, 1), (0.5,)),)
    corrected = replace(claim(), erratum="A factor of 2.")
    superseded = replace(claim(), superseded=Superseded(("other",), "2026-11-17", "Read wrongly."))
    assert Finding(corrected, TINY, good, 1).verdict is Verdict.CORRECTED
    assert Finding(corrected, TINY, (CheckResult(check(0, 1), (2.0,)),), 1).verdict is Verdict.FAILS
    assert Finding(superseded, TINY, good, 1).verdict is Verdict.SUPERSEDED
    assert Finding(superseded, TINY, good, 1).found is Verdict.HOLDS


def test_one_failing_check_fails_the_claim() -> None:
    good, bad, mixed = (
        CheckResult(check(0, 1), (0.5,)),
        CheckResult(check(0, 1), (2.0,)),
        CheckResult(check(0, 1), (0.5, 2)),
    )
    expected: list[tuple[tuple[CheckResult, ...], Verdict]] = [
        ((), Verdict.NOT_RUN),
        ((good,), Verdict.HOLDS),
        ((good, mixed), Verdict.INCONCLUSIVE),
        ((good, bad, mixed), Verdict.FAILS),
    ]
    for measured, verdict in expected:
        assert Finding(claim(), TINY, measured, 1).verdict is verdict


def test_a_claim_is_measured_for_every_seed_that_the_scale_allows(tmp_path: Path) -> None:
    store = fill(tmp_path, needs(TWO_SEEDS), TWO_SEEDS)
    finding = examine(claim(check(0, 0)), Evidence(store, TWO_SEEDS))
    assert finding.seeds == 2
    assert list(finding.measured[0].values) == [0, 1]
    assert finding.verdict is Verdict.INCONCLUSIVE


def test_a_claim_whose_runs_are_missing_is_not_run(tmp_path: Path) -> None:
    store = fill(tmp_path, needs(TINY), TINY)
    assert examine(claim(check(0)), Evidence(store, TINY)).verdict is Verdict.HOLDS
    assert examine(claim(check(0)), Evidence(store, TWO_SEEDS)).verdict is Verdict.NOT_RUN


def test_a_network_that_diverged_decides_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, create=True)
    store.save(replace(synthetic_result(TINY.network(SPEC)), status="diverged", diverged_step=3, weights=None))
    accuracy = Check("accuracy", lambda result: result.final.test_accuracy, low=0, of=SPEC)
    assert examine(claim(accuracy), Evidence(store, TINY)).verdict is Verdict.INCONCLUSIVE


def test_a_network_without_weights_is_missing(tmp_path: Path) -> None:
    store, spec = Store(tmp_path, create=True), TINY.network(SPEC)
    assert missing_networks(store, [spec]) == [spec]
    store.save(synthetic_result(spec))
    assert missing_networks(store, [spec]) == [spec]
    store.save(synthetic_result(spec), weights=True)
    assert missing_networks(store, [spec]) == []


def test_the_best_scale_is_the_first_that_is_complete(tmp_path: Path) -> None:
    assert best_scale(needs, [PAPER, TINY], None) is TINY
    store = fill(tmp_path, needs(TINY), TINY)
    assert best_scale(needs, [PAPER, TINY], store) is TINY
    assert best_scale(needs, [TINY, PAPER], store) is TINY
    assert best_scale(needs, [TWO_SEEDS, PAPER], store) is PAPER


def test_a_reduced_scale_that_means_the_same_runs_as_the_last_goes_by_its_name(tmp_path: Path) -> None:
    def of_two_layers(scale: Scale) -> Needs:
        return Needs(networks=(RunSpec(),))

    def of_three(scale: Scale) -> Needs:
        return Needs(networks=(DEEP_MLP,))

    store = fill(tmp_path, of_two_layers(QUICK), QUICK)
    assert best_scale(of_two_layers, [MIXED, QUICK], store) is QUICK
    assert best_scale(of_two_layers, [PAPER, MIXED, QUICK], store) is PAPER
    assert best_scale(of_three, [MIXED, QUICK], store) is QUICK
    fill(tmp_path, of_three(MIXED), MIXED)
    assert best_scale(of_three, [MIXED, QUICK], store) is MIXED


def test_cells_that_can_be_inferred_are_not_missing(tmp_path: Path) -> None:
    """The made-up phases of this panel are the same everywhere, so the coarsest grid is enough."""
    store = Store(tmp_path, create=True)
    scale = replace(TINY, grid=(5, 5))
    plan = scale.diagram(WEIGHT_DECAY.with_fields({"optimizer.weight_decay": "0"}))
    evidence = Evidence(store, scale)
    same = synthetic_result(next(plan.specs()))
    wanted = Needs(diagrams=(WEIGHT_DECAY.with_fields({"optimizer.weight_decay": "0"}),))
    assert evidence.missing(wanted) == 9
    for spec in plan.specs():
        if spec.task.data_fraction in (0.1, 0.5, 0.9) and spec.task.corruption in (0, 0.45, 0.9):
            store.save(replace(same, spec=spec))
    assert evidence.missing(wanted) == 0
    diagram = evidence.diagram(wanted.diagrams[0])
    assert sum(cell.source == "inferred" for cell in diagram.all_cells()) == 16


def test_a_diagram_gives_one_number_for_all_of_its_seeds(tmp_path: Path) -> None:
    scale = replace(TINY, line_seeds=4)
    panels = Check("panels", lambda diagram: len(diagram.panels), 0, 1, of=LINE)
    about_lines = Claim("lines", "", "", (panels,))
    finding = examine(about_lines, Evidence(fill(tmp_path, about_lines.needs(scale), scale), scale))
    assert (finding.seeds, finding.measured[0].values) == (4, (1.0,))


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_no_claim_needs_networks_and_diagrams(scale: Scale) -> None:
    """The number of a diagram would be counted once for every seed of the networks."""
    needed = {name: each.needs(scale) for name, each in CLAIMS.items()}
    assert [name for name, each in needed.items() if each.networks and each.diagrams] == []


def test_bars_do_not_end_a_cell_of_the_ledger() -> None:
    finding = Finding(claim(), TINY, (CheckResult(Check("mean |γ|", lambda _: 0.0, low=0), (0.5,)),), 1)
    row = next(line for line in Findings((finding,)).to_markdown().splitlines() if line.startswith("| **a-claim**"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 6  # five cells
    assert r"mean \|γ\| 0.5" in row


def test_a_claim_about_a_diagram_with_failed_cells_is_not_run(tmp_path: Path) -> None:
    """Shares over the cells that are left would be shares of another diagram."""
    wanted = Needs(diagrams=(WEIGHT_DECAY,))
    store = fill(tmp_path, wanted, TINY)
    about = claim(Check("panels", lambda diagram: len(diagram.panels), low=0, of=WEIGHT_DECAY))
    assert about.needs(TINY) == wanted
    assert examine(about, Evidence(store, TINY)).verdict is Verdict.HOLDS
    failed = next(TINY.diagram(WEIGHT_DECAY).specs())
    store.delete(failed.run_id)
    store.save_failure(failed, "killed", "killed")
    assert Evidence(store, TINY).missing(wanted) == 1
    assert examine(about, Evidence(store, TINY)).verdict is Verdict.NOT_RUN


def test_the_ledger_says_what_was_seen(tmp_path: Path) -> None:
    store = fill(tmp_path, needs(TINY), TINY)
    evidence = Evidence(store, TINY)
    findings = Findings(tuple(examine(each, evidence) for each in (claim(check(high=-1)), claim(check(0, 1)))))
    page = findings.to_markdown()
    assert "The paper's: 2 claims (holds: 1, fails: 1)." in page
    assert "Ours, about the paper or beyond it: 0 claims" in page
    assert "number 0 (≤ -1: fails)" in page
    assert "seen otherwise" in page
    assert "## Not blind" in page
    assert "- Half of it. (a-claim, a-claim)" in page
    content = json.loads(findings.to_json())
    assert [each["verdict"] for each in content["claims"]] == ["fails", "holds"]
    assert content["claims"][0]["checks"][0] == {
        "what": "number", "low": None, "high": -1, "values": [0], "verdict": "fails"
    }  # fmt: skip


def test_a_claim_needs_what_its_checks_look_at_and_what_stands_beside_it() -> None:
    other = SPEC.updated({"training.seed": 5})
    pruned = Check("pruned", lambda width: width, low=0, of=View(other, lambda result: result.spec.model.width))
    theory = Check("width", lambda spec: spec.model.width, low=0, of=Untrained(SPEC.updated({"model.width": 16})))
    assert Claim("a", "", "", (theory,)).needs(PAPER) == Needs()
    assert Claim("a", "", "", (check(0), pruned, theory)).needs(PAPER) == Needs((SPEC, other), seeds=3)
    assert Claim("a", "", "", (pruned,), beside=SPEC, seeds=2).needs(PAPER) == Needs((other, SPEC), seeds=2)


def test_a_check_may_look_at_other_networks_at_other_scales() -> None:
    wide = SPEC.updated({"model.width": 900})
    several = Check("networks", lambda *results: len(results), of=lambda scale: [SPEC, wide] if scale.full else [SPEC])
    assert Claim("a", "", "", (several,)).needs(PAPER).networks == (SPEC, wide)
    assert Claim("a", "", "", (several,)).needs(TINY).networks == (SPEC,)


def test_what_is_computed_from_a_network_is_computed_once_for_all_claims(tmp_path: Path) -> None:
    computed: list[str] = []

    def slowly(result: RunResult) -> int:
        computed.append(result.run_id)
        return len(computed)

    about = claim(Check("order", lambda number: number, low=0, of=View(SPEC, slowly)))
    evidence = Evidence(fill(tmp_path, needs(TWO_SEEDS), TWO_SEEDS), TWO_SEEDS)
    for _ in range(2):
        assert examine(about, evidence).measured[0].values == (1, 2)
    assert computed == [TINY.network(SPEC, seed).run_id for seed in range(2)]

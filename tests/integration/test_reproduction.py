"""Figures and claims from Python: real runs of toy networks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.synthetic import fill, synthetic_result

import grokscope as gs
from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.claim import Verdict
from grokscope.experiments.scale import TINY


def test_a_figure_comes_with_its_numbers_and_its_caption(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawing = gs.figure("fig1", scale="tiny", store=tmp_path / "runs", workers=1)
    said = capsys.readouterr().err
    assert "Training 3 networks" in said
    assert "3 of 3: " in said
    run_ids = {spec.run_id for spec in EXPERIMENTS["fig01"].needs(TINY).specs(TINY)}
    assert set(drawing.data["run_id"]) == run_ids
    assert all(run_id in drawing.caption for run_id in run_ids)
    assert drawing._repr_png_().startswith(b"\x89PNG")
    assert drawing.save(tmp_path / "pictures") == tmp_path / "pictures" / "fig01.png"
    written = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert written == {"fig01.png", "fig01.svg", "fig01.pdf", "fig01.csv", "fig01.txt"}
    assert (tmp_path / "pictures" / "fig01.txt").read_text() == drawing.caption


def test_claims_are_a_sequence_of_findings(tmp_path: Path) -> None:
    store = fill(tmp_path / "runs", EXPERIMENTS["fig01"].needs(TINY), TINY)
    names = ["coexistence", "corrections-vanish"]
    findings = gs.claims(names, scale="tiny", store=store, out=tmp_path / "ledger.json")
    assert [finding.claim.id for finding in findings] == names
    assert len(findings[:1]) == 1
    assert sum(findings.counts.values()) == 2
    assert findings.counts[Verdict.NOT_RUN] == 0
    assert "| **coexistence**: " in findings.to_markdown()
    assert "<b>coexistence</b>" in findings._repr_html_()
    assert json.loads((tmp_path / "ledger.json").read_text()) == json.loads(findings.to_json())


def test_claims_without_running_leave_no_store(tmp_path: Path) -> None:
    findings = gs.claims("fig06", scale="tiny", store=tmp_path / "runs", run=False)
    assert {finding.verdict for finding in findings} == {Verdict.NOT_RUN, Verdict.SUPERSEDED}
    assert not list(tmp_path.iterdir())


def test_a_reproduction_writes_figures_and_ledgers(tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = ["fig06", "analytic"]
    made = gs.reproduce(names, scale="tiny", store=tmp_path / "runs", out=out, report=out / "report.pdf")
    assert list(made.drawings) == ["fig06", "analytic"]
    assert not made.not_drawn
    assert {finding.claim.id for finding in made.findings} == {
        claim.id for name in ("fig06", "analytic") for claim in EXPERIMENTS[name].claims
    }
    assert (out / "claims.md").read_text() == made.findings.to_markdown()
    assert (out / "analytic.png").exists()
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF")


def test_a_figure_of_a_network_that_diverged_is_refused_with_the_reason(tmp_path: Path) -> None:
    store = gs.Store(tmp_path)
    for spec in EXPERIMENTS["fig01"].needs(TINY).specs(TINY):
        result = synthetic_result(spec)
        store.save(type(result)(**{**vars(result), "status": "diverged", "diverged_step": 3, "phase": None}))
    with pytest.raises(gs.GrokscopeError, match=r"fig01 was not drawn: run \w+ diverged at step 3"):
        gs.figure("fig01", scale="tiny", store=store)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "huge"}, "must be one of"),
        ({"seeds": 0}, "at least 1"),
        ({"grid": "1x5"}, "two numbers"),
        ({"workers": -1}, "workers = -1"),
        ({"engine": "magic"}, "magic"),
    ],
)
def test_what_cannot_be_is_refused_before_a_store_is_made(
    options: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(gs.GrokscopeError, match=message):
        gs.figure("fig01", store=tmp_path / "runs", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_without_pandas_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    findings = gs.claims("fig06", scale="tiny", store=tmp_path / "runs", run=False)
    with pytest.raises(gs.GrokscopeError, match=r"pip install 'grokscope\[export\]'"):
        findings.to_pandas()


def test_with_pandas_there_is_a_row_for_each_seed_of_each_check(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    store = fill(tmp_path / "runs", CLAIMS["coexistence"].needs(TINY), TINY)
    frame = gs.claims(["coexistence", "fig06"], scale="tiny", store=store, run=False).to_pandas()
    assert list(frame[frame.claim == "coexistence"].check) == ["test accuracy", "corrupted accuracy"]


def test_importing_grokscope_loads_no_figures() -> None:
    """So that `grokscope --help` answers at once."""
    code = "import sys, grokscope; print([name for name in ('matplotlib', 'torch', 'pandas') if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"

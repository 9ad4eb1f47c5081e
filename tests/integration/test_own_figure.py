"""A user's figure from one file, by the command line and from Python: real runs of toy networks."""

import json
from pathlib import Path

import pytest
from tests.integration.processes import grokscope

import grokscope as gs

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_figure.py"


def test_the_example_is_drawn_and_checked(tmp_path: Path) -> None:
    (tmp_path / "my_figure.py").write_text(EXAMPLE.read_text())
    said = grokscope("figure", "my_figure.py", "--scale", "tiny", cwd=tmp_path)
    assert "Training 2 networks" in said.stderr
    caption = (tmp_path / "grokscope-figures" / "my-figure.txt").read_text()
    assert "Made with: grokscope figure my_figure.py --scale tiny\n" in caption
    reduced = "the scale tiny trains smaller networks or fewer cells than the file says"
    assert reduced in said.stderr
    assert reduced in caption
    claims = ("claims", "--only", "my_figure.py", "--scale", "tiny", "--no-run", "--json")
    found = json.loads(grokscope(*claims, cwd=tmp_path).stdout)
    assert [claim["id"] for claim in found["claims"]] == ["my-rule-found", "my-decay-unlearns"]
    assert "not run" not in {claim["verdict"] for claim in found["claims"]}

    store = tmp_path / "grokscope-runs"
    drawing = gs.figure(str(tmp_path / "my_figure.py"), scale="tiny", store=store)
    assert set(drawing.data["run_id"]) == {run.run_id for run in gs.Store(store).all()}
    findings = gs.claims([str(tmp_path / "my_figure.py"), "corrections-vanish"], scale="tiny", store=store, run=False)
    assert [finding.claim.id for finding in findings] == ["my-rule-found", "my-decay-unlearns", "corrections-vanish"]


def test_without_a_scale_the_file_is_trained_as_it_is_written(tmp_path: Path) -> None:
    code = """
import grokscope as gs
from grokscope.experiments import Check, Claim, Drawing, Experiment, Needs, final, tables
from grokscope.plots import draw_curves
SPEC = gs.RunSpec().updated({"task.modulus": 61, "model.kind": "transformer", "model.embed": 8, "model.heads": 2,
    "optimizer.weight_decay": 3, "task.data_fraction": 0.01, "training.steps": 2})
def draw(evidence):
    return Drawing(draw_curves([evidence.network(SPEC)], ["mine"]), tables.curves({"mine": evidence.network(SPEC)}))
EXPERIMENT = Experiment("mine", "A title", "A caption.", lambda scale: Needs(networks=(SPEC,)), draw,
    (Claim("mine-too", "mine", "It is.", (Check("accuracy", final("test_accuracy"), low=0, of=SPEC),), seeds=1),))
"""
    file, store = tmp_path / "mine.py", tmp_path / "runs"
    file.write_text(code)
    drawing = gs.figure(str(file), store=store, workers=0)
    (run,) = gs.Store(store).all()
    assert (run.spec.task.modulus, run.spec.optimizer.weight_decay) == (61, 3)
    assert "--scale paper\n" in drawing.caption.replace(f" --store {store}", "")
    assert "smaller" not in drawing.caption
    (finding,) = gs.claims(str(file), store=store, run=False)
    assert finding.verdict == "holds"
    quick = gs.figure(str(file), scale="quick", store=store, workers=0)
    assert "the scale quick trains smaller networks" in quick.caption


@pytest.mark.parametrize(("name", "claim"), [("fig01", "mine"), ("mine", "two-peaks")])
def test_a_name_of_ours_is_refused(name: str, claim: str, tmp_path: Path) -> None:
    code = f"""
from grokscope.experiments import Claim, Experiment
EXPERIMENT = Experiment("{name}", "A title", "A caption.", draw=lambda evidence: None,
    claims=(Claim("{claim}", "mine", "It is.", ()),))
"""
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(gs.GrokscopeError, match="already; call yours something else"):
        gs.figure(str(tmp_path / "mine.py"), store=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "mine.py must define EXPERIMENT, a grokscope.experiments.Experiment; it defines no EXPERIMENT"),
        ("EXPERIMENT = 3", "its EXPERIMENT is of type int"),
        (
            "from grokscope.experiments import Experiment\nEXPERIMENT = Experiment('mine', 'A title', 'A caption.')",
            "its EXPERIMENT has no draw function",
        ),
        ("import nothing_of_this_name", "mine.py does not import: ModuleNotFoundError"),
    ],
)
@pytest.mark.parametrize("command", [("figure", "mine.py"), ("claims", "--only", "mine.py")])
def test_a_file_that_is_no_figure_is_refused_in_one_line(
    code: str, message: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(code)
    done = grokscope(*command, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(gs.GrokscopeError, match=r"there is no file .*nowhere\.py"):
        gs.figure(str(tmp_path / "nowhere.py"), store=tmp_path / "runs")


def test_what_draw_returns_must_be_a_drawing(tmp_path: Path) -> None:
    code = """
from grokscope.experiments import Experiment
EXPERIMENT = Experiment("mine", "A title", "A caption.", draw=lambda evidence: "a picture")
"""
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(gs.GrokscopeError, match="draw of mine must return a Drawing, and returned str"):
        gs.figure(str(tmp_path / "mine.py"), scale="tiny", store=tmp_path / "runs")

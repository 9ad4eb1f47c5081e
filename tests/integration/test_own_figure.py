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
    claims = ("claims", "--only", "my_figure.py", "--scale", "tiny", "--no-run", "--json")
    found = json.loads(grokscope(*claims, cwd=tmp_path).stdout)
    assert [claim["id"] for claim in found["claims"]] == ["my-rule-found", "my-decay-unlearns"]
    assert "not run" not in {claim["verdict"] for claim in found["claims"]}

    store = tmp_path / "grokscope-runs"
    drawing = gs.figure(str(tmp_path / "my_figure.py"), scale="tiny", store=store)
    assert set(drawing.data["run_id"]) == {run.run_id for run in gs.Store(store).all()}
    findings = gs.claims([str(tmp_path / "my_figure.py"), "corrections-vanish"], scale="tiny", store=store, run=False)
    assert [finding.claim.id for finding in findings] == ["my-rule-found", "my-decay-unlearns", "corrections-vanish"]


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

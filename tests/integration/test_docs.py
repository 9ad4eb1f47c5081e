"""What the documents say can be run, runs."""

import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from tests.integration.processes import grokscope, here

from grokscope import RunSpec, Store
from grokscope.result import analytic_result
from grokscope.sweeps.plan import Plan

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


FIGURES_PAGE = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
EXTENDING_PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SWEEPS_PAGE = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
TASKS_PAGE = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
AUDIT_PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
NETWORKS_PAGE = (ROOT / "docs" / "networks.md").read_text(encoding="utf-8")


def help_of(*command: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "grokscope", *command, "--help"],
        env={"COLUMNS": "200", "PATH": ""}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "code",
    [
        block
        for page in (README, NETWORKS_PAGE, SWEEPS_PAGE, FIGURES_PAGE, TASKS_PAGE, AUDIT_PAGE)
        for block in blocks("python", page)
    ],
)
def test_python_in_the_documents_runs(tmp_path: Path, code: str) -> None:
    with chdir(tmp_path):  # in this process, where torch is loaded already
        exec(compile(code, "the document", "exec"), {"__name__": "__main__"})


def test_the_page_on_your_own_code_does_what_it_says(tmp_path: Path) -> None:
    """The file that it shows, the command, the spec and the program that use it."""
    rules, program, network, optimiser, measurement, figure = blocks("python", EXTENDING_PAGE)
    spec, sweep = blocks("toml", EXTENDING_PAGE)
    command, sweeping = (line for block in blocks("sh", EXTENDING_PAGE) for line in block.splitlines())
    (tmp_path / "my_rules.py").write_text(rules, encoding="utf-8")
    (tmp_path / "my.toml").write_text(spec, encoding="utf-8")
    (tmp_path / "gated.py").write_text(network, encoding="utf-8")
    (tmp_path / "lion.py").write_text(optimiser, encoding="utf-8")
    (tmp_path / "margin.py").write_text(measurement, encoding="utf-8")
    (tmp_path / "my_sweep.toml").write_text(sweep, encoding="utf-8")
    (tmp_path / "figure.py").write_text(figure, encoding="utf-8")
    small = ["--steps", "20", "--store", "runs"]
    for arguments in (command.split()[1:] + small, ["train", "--spec", "my.toml", *small]):
        assert here(tuple(arguments), tmp_path).returncode == 0
    gated = ("train", "--model", "gated.py:Gated", "--modulus", "11", "--save-weights", *small)
    assert here(gated, tmp_path).returncode == 0
    (stored,) = Store(tmp_path / "runs").runs(where=["model.kind=gated.py:Gated"])
    grokscope("prune", stored.run_id, "--store", "runs", cwd=tmp_path)
    grokscope("figure", "figure.py", "--scale", "tiny", "--store", "runs", cwd=tmp_path)
    said = grokscope(*sweeping.split()[1:], "--set", "training.steps=20", "--store", "swept", cwd=tmp_path)
    assert "Warning" not in said.stderr
    swept = Store(tmp_path / "swept")
    assert not swept.failures()
    assert {run.spec.optimizer.kind.partition("@")[0] for run in swept.all()} == {"adamw", "lion.py:Lion"}
    assert all("test_margin" in (run.final or {}) for run in swept.all())
    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert "task.length" in finished.stdout


def test_toml_in_the_readme_is_a_spec() -> None:
    (text,) = blocks("toml")
    assert RunSpec.from_toml(text).model.norm == "batch"


def test_toml_in_the_sweeps_page_is_a_sweep(tmp_path: Path) -> None:
    sizes = []
    for text in blocks("toml", SWEEPS_PAGE):
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        sizes.append(len(list(Plan.from_file(tmp_path / "mine.toml").specs())))
    assert sizes == [4 * 3 * 2 * 3, 3 * 5 * 2]


def test_python_in_the_page_on_the_store_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python", (ROOT / "docs" / "store.md").read_text(encoding="utf-8"))
    Store(tmp_path / "cluster-runs").save(analytic_result(modulus=23, width=400))
    with chdir(tmp_path):
        exec(compile(code, "the document", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.rstrip().endswith("('good',)"), "and nothing is the matter with the store"


def test_flags_named_in_the_sweeps_page_exist() -> None:
    shown = help_of("sweep") + help_of("phase-diagram") + help_of("runs", "list") + help_of()
    for flag in set(re.findall(r"`(--[a-z][a-z-]+)", SWEEPS_PAGE)) - {"--spec"}:
        assert flag in shown


def test_flags_named_in_the_networks_page_exist() -> None:
    shown = help_of("train") + help_of("sweep") + help_of("show")
    for flag in set(re.findall(r"(--[a-z][a-z-]+)", NETWORKS_PAGE)):
        assert flag in shown


def test_flags_named_in_the_tasks_page_exist() -> None:
    shown = help_of("train") + help_of("download")
    for flag in set(re.findall(r"(--[a-z][a-z-]+)", TASKS_PAGE)):
        assert flag in shown


def test_flags_named_in_the_figures_page_exist() -> None:
    shown = help_of("figure") + help_of("claims")
    for flag in set(re.findall(r"(--[a-z][a-z-]+)", FIGURES_PAGE)):
        assert flag in shown


def test_links_lead_somewhere() -> None:
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_flags_named_in_the_readme_exist() -> None:
    shown = help_of("train") + help_of("runs", "tag")
    train = README.split("## Train one network")[1].split("## Train a phase diagram")[0]
    for flag in set(re.findall(r"--[a-z][a-z-]+", train)) - {"--out"}:
        assert flag in shown

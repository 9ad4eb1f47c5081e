"""What the documents say can be run, runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from grokscope import RunSpec

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_in_the_readme_runs(tmp_path: Path, code: str) -> None:
    finished = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_toml_in_the_readme_is_a_spec() -> None:
    (text,) = blocks("toml")
    assert RunSpec.from_toml(text).model.norm == "batch"


def test_links_lead_somewhere() -> None:
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_flags_named_in_the_readme_exist() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "grokscope", "train", "--help"],
        env={"COLUMNS": "200", "PATH": ""}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    train = README.split("## Train one network")[1].split("## In Python")[0]
    for flag in set(re.findall(r"--[a-z][a-z-]+", train)) - {"--out"}:
        assert flag in shown

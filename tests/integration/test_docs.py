"""What the page on your own code shows, runs. `test_pages.py` is about all other pages."""

import re
import subprocess
import sys
from pathlib import Path

from tests.integration.processes import grokscope, here

from grokscope import Store

ROOT = Path(__file__).parents[2]
EXTENDING_PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = EXTENDING_PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def test_the_page_on_your_own_code_does_what_it_says(tmp_path: Path) -> None:
    """The file that it shows, the command, the spec and the program that use it."""
    rules, program, network, optimiser, measurement, figure = blocks("python")
    spec, sweep = blocks("toml")
    command, sweeping = (line for block in blocks("sh") for line in block.splitlines())
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

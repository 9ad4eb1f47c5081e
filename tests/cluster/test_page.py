"""What docs/scaling.md says is so."""

import re
from pathlib import Path

import pytest
from tests.integration.processes import grokscope
from typer.testing import CliRunner

from grokscope.cli import app
from grokscope.cluster import ClusterRequest

PAGE = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_the_toml_is_that_of_a_cluster(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    for name in re.findall(r'"certificates/(.+)"', text):
        (tmp_path / name).touch()
    (tmp_path / "cluster.toml").write_text(text.replace("certificates/", f"{tmp_path}/"), encoding="utf-8")
    request = ClusterRequest.parse("slurm", tmp_path / "cluster.toml")
    assert (request.jobs, request.workers, request.wait_seconds) == (16, 128, 3600)
    assert request.options["queue"] == "normal"


def test_every_command_that_trains_many_has_the_flags() -> None:
    for command in ("sweep", "figure", "claims", "reproduce"):
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
        assert {"--cluster", "--cluster-config", "--hosts"} <= set(re.findall(r"--[a-z-]+", shown))


@pytest.mark.parametrize(
    "command",
    [
        ("sweep", "fig3a", "--grid", "1x1"),
        ("figure", "fig01", "--scale", "tiny"),
        ("claims", "--only", "fig01", "--scale", "tiny"),
        ("reproduce", "fig01", "--scale", "tiny"),
    ],
    ids=lambda command: command[0],
)
def test_a_dry_run_counts_the_workers_of_the_cluster(command: tuple[str, ...], tmp_path: Path) -> None:
    """And starts none."""
    said = grokscope(*command, "--dry-run", "--cluster", "local:7", cwd=tmp_path).stdout
    assert "with 7 workers of the cluster, if each is as fast as this machine" in said
    assert not list(tmp_path.iterdir())


def test_the_numbers_that_are_stated_are_those_of_the_program() -> None:
    request = ClusterRequest.parse("tcp://login:8786")
    assert f"{request.wait_seconds:g} if it is left out" in PAGE
    assert f"silent_seconds = {request.silent_seconds:g} " in PAGE

"""What docs/scaling.md says is so."""

import re
from pathlib import Path

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


def test_the_numbers_that_are_stated_are_those_of_the_program() -> None:
    request = ClusterRequest.parse("tcp://login:8786")
    assert f"{request.wait_seconds:g} if it is left out" in PAGE
    assert f"silent_seconds = {request.silent_seconds:g} " in PAGE

"""Commands as a new user types them: tags, JSON, quiet and verbose, hints, exit statuses."""

import json
import sqlite3
from pathlib import Path

import pytest
from tests.integration.processes import grokscope

from grokscope import RunSpec, Store, run
from grokscope.cli.hints import nearest_option, usage_message
from grokscope.experiments.catalogue import EXPERIMENTS
from grokscope.store.schema import SCHEMA_VERSION

SWEEP = """
[base.task]
modulus = 7
[base.model]
width = 8
[base.training]
steps = 5
[axes]
"task.corruption" = [0, 0.3]
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    directory = tmp_path_factory.mktemp("stored")
    base = RunSpec().updated({"task.modulus": 7, "model.width": 8, "training.steps": 3})
    results = [run(base.updated({"training.seed": seed})) for seed in range(2)]
    for result in results:
        Store(directory / "grokscope-runs").save(result, weights=True)
    return directory, [result.run_id for result in results]


def test_runs_are_tagged_named_and_noted(stored: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    cwd, (first, second) = stored
    tagged = grokscope("runs", "tag", first[:8], second, "--add", "good", "--add", "new", "--remove", "old", cwd=cwd)
    assert (tagged.returncode, tagged.stdout) == (0, "")
    assert tagged.stderr.splitlines() == [f"{first}: #good #new", f"{second}: #good #new"]
    grokscope("runs", "tag", "--where", "training.seed=1", "--remove", "good", cwd=cwd)
    grokscope("runs", "name", first, "baseline", cwd=cwd)
    grokscope("runs", "note", "baseline", "the first one", cwd=cwd)
    listed = grokscope("runs", "list", "--where", "tag=good", cwd=cwd).stdout
    assert first in listed
    assert second not in listed
    assert "baseline #good #new" in listed
    content = json.loads(grokscope("runs", "show", "baseline", "--json", cwd=cwd).stdout)
    assert (content["run_id"], content["tags"], content["note"]) == (first, ["good", "new"], "the first one")
    shown = grokscope("runs", "show", first, cwd=cwd).stdout.splitlines()
    assert shown[1:4] == ["name: baseline", "tags: good, new", "note: the first one"]
    monkeypatch.setenv("COLUMNS", "80")
    narrow = grokscope("runs", "list", cwd=cwd).stdout
    assert "seed 0; baseline #good #new" in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    grokscope("runs", "tag", first, "--add", "another-long-tag", "--add", "and-one-more", cwd=cwd)
    wrapped = grokscope("runs", "list", cwd=cwd).stdout
    assert "#another-long-tag" in wrapped
    assert max(map(len, wrapped.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs", "tag", "RUN", "--add", "a b"], "tag = 'a b' is not allowed: must be letters and digits"),
        (["runs", "tag", "RUN", "--add", "-rf"], "tag = '-rf' is not allowed"),
        (["runs", "tag", "RUN"], "say what to change: --add TAG or --remove TAG"),
        (["runs", "tag", "--add", "good"], "name the runs to tag, or say which with --where or --sweep"),
        (["runs", "name", "RUN", "abc"], "could be the beginning of a run's id"),
        (["runs", "note", "RUN", "\x1b[31m"], "without control characters"),
        (["runs", "list", "--sort", "tag"], "cannot be sorted by tag"),
        (["runs", "list", "--filter", "x"], "there is no option --filter; did you mean --where?"),
        (["train", "--epochs", "3"], "there is no option --epochs; did you mean --steps?"),
        (["train", "--zzz"], "grokscope train --help` lists the options"),
        (["phase-diagram", "x", "--json", "--out", "x.png"], "--json writes no files"),
    ],
)
def test_mistakes_are_one_line_and_status_2(stored: tuple[Path, list[str]], arguments: list[str], message: str) -> None:
    cwd, (_, second) = stored
    finished = grokscope(*(second if each == "RUN" else each for each in arguments), cwd=cwd, check=False)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert len(finished.stderr.splitlines()) == 1
    assert message in finished.stderr


def test_flags_have_their_whole_names_at_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = grokscope("train", "-h", cwd=tmp_path).stdout
    for flags in ("--lr,--learning-rate", "--weight-decay,--wd", "--data-fraction,--alpha", "--corruption,--xi"):
        assert f" {flags} " in shown


def test_a_store_of_a_newer_version_is_one_line(stored: tuple[Path, list[str]], tmp_path: Path) -> None:
    Store(tmp_path / "newer", create=True).close()
    with sqlite3.connect(tmp_path / "newer" / "index.sqlite") as index:
        index.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    index.close()
    cwd, (first, _) = stored
    for command in (
        ["runs", "tag", first, "--add", "x", "--store", str(tmp_path / "newer")],
        ["store", "merge", "grokscope-runs", str(tmp_path / "newer")],
        ["store", "check", "--store", str(tmp_path / "newer")],
    ):
        finished = grokscope(*command, cwd=cwd, check=False)
        assert finished.returncode == 2
        assert "was written by a newer grokscope" in finished.stderr
        assert len(finished.stderr.splitlines()) == 1


def test_sweeps_and_figures_speak_json(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SWEEP)
    estimate = json.loads(grokscope("sweep", "mine.toml", "--dry-run", "--json", cwd=tmp_path).stdout)
    assert (estimate["name"], estimate["runs"], estimate["left"]) == ("mine", 2, 2)
    assert estimate["seconds"] > 0
    made = json.loads(grokscope("sweep", "mine.toml", "--workers", "1", "--json", cwd=tmp_path).stdout)
    assert made == {
        "name": "mine", "refined": False, "stopped": False, "cells": 2, "missing": 0, "failed": 0, "complete": True
    }  # fmt: skip
    diagram = json.loads(grokscope("phase-diagram", "mine", "--json", cwd=tmp_path).stdout)
    assert diagram["axes"] == [{"fields": ["task.corruption"], "points": [[0], [0.3]]}]
    assert [cell["task.corruption"] for cell in diagram["cells"]] == [0, 0.3]
    assert all(isinstance(cell["test_accuracy"], int | float) for cell in diagram["cells"])
    listed = json.loads(grokscope("figures", "list", "--json", cwd=tmp_path).stdout)
    assert [each["name"] for each in listed] == list(EXPERIMENTS)
    assert not (tmp_path / "grokscope-figures").exists()


def test_quiet_leaves_results_and_errors(tmp_path: Path) -> None:
    arguments = ("train", "--modulus", "7", "--width", "8", "--steps", "5")
    loud = grokscope(*arguments, cwd=tmp_path)
    assert "training" in loud.stderr
    for quiet in (("--quiet", *arguments, "--seed", "1"), (*arguments, "--seed", "2", "-q"), (*arguments, "-q")):
        finished = grokscope(*quiet, cwd=tmp_path)
        assert (finished.returncode, finished.stderr) == (0, "")
        assert finished.stdout.startswith(("Confusion", "Memorization"))
    wrong = grokscope(*arguments, "--seed", "-1", "--quiet", cwd=tmp_path, check=False)
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)


def test_verbose_says_where_an_error_came_from(tmp_path: Path) -> None:
    finished = grokscope("train", "--steps", "0", "--verbose", cwd=tmp_path, check=False)
    assert finished.returncode == 2
    assert finished.stderr.startswith("Traceback")
    assert finished.stderr.splitlines()[-1].startswith("grokscope: training.steps = 0 is not allowed")


def test_a_note_may_look_like_an_option(stored: tuple[Path, list[str]]) -> None:
    cwd, (_, second) = stored
    assert grokscope("runs", "note", second, "--", "-q", cwd=cwd).stderr == f"{second}: -q\n"


def test_toys_say_that_they_mean_nothing(tmp_path: Path) -> None:
    said = grokscope("claims", "--only", "frequencies-suffice", "--scale", "tiny", cwd=tmp_path)
    assert said.returncode == 0
    assert "says nothing about the paper" in said.stderr
    assert "\nfrequencies-suffice: holds\n" in said.stdout, "a list, where a table would be cramped"
    other = grokscope("claims", "--only", "frequencies-suffice", "--no-run", cwd=tmp_path)
    assert "says nothing" not in other.stderr


def test_pruning_a_network_that_knows_nothing_is_called_so(stored: tuple[Path, list[str]]) -> None:
    cwd, (first, _) = stored
    assert "the following numbers say little" in grokscope("prune", first, "--out", "x.csv", cwd=cwd).stdout
    assert "say little" not in grokscope("prune", "analytic:7:100", "--out", "x.csv", cwd=cwd).stdout


@pytest.mark.parametrize(
    ("wrong", "meant"), [("--LR", "--lr"), ("--batch_size", "--batch-size"), ("--gpu", None), ("--wd", None)]
)
def test_options_are_found_by_other_spellings(wrong: str, meant: str | None) -> None:
    assert nearest_option(wrong, ["--lr", "--batch-size", "-h"]) == meant


def test_other_usage_errors_are_told_as_they_are() -> None:
    import typer

    assert usage_message(typer.BadParameter("name at least two")) == "Invalid value: name at least two"

"""`grokscope audit --csv` from end to end."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("sklearn")

from grokscope.cli import app
from grokscope.errors import GrokscopeError


def written(path: Path, rows: int = 60) -> set[int]:
    """Two clouds; the rows, counted from 1, whose label is that of the other cloud."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=rows)
    numbers = 5 * truth[:, None] + rng.normal(size=(rows, 2))
    wrong = set(rng.choice(rows, 6, replace=False).tolist())
    lines = [
        f"{x:.4f},{y:.4f},{'right' if label ^ (row in wrong) else 'left'}"
        for row, ((x, y), label) in enumerate(zip(numbers, truth, strict=True))
    ]
    path.write_text("x,y,side\n" + "\n".join(lines) + "\n")
    return {row + 1 for row in wrong}


def test_a_table_and_a_page_of_the_worst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = written(Path("data.csv"))
    result = CliRunner().invoke(app, ["audit", "--csv", "data.csv", "--label", "side", "--top", "5"])
    assert result.exit_code == 0, result.output
    assert "labels look wrong" in result.output
    with Path("grokscope-figures/data-audit.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["rank"] for row in rows[:3]] == ["1", "2", "3"]
    assert {int(row["row"]) for row in rows[:6]} == wrong
    assert all(row["suggested"] != row["label"] for row in rows[:6])
    page = Path("grokscope-figures/data-audit.html").read_text()
    assert "Labels of data.csv that look wrong" in page

    printed = CliRunner().invoke(app, ["audit", "--csv", "data.csv", "--label", "side", "--json", "--top", "6"])
    assert {row["row"] for row in json.loads(printed.stdout)["ranking"]} == wrong


def test_without_scikit_learn_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "grokscope.labels.auditor", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    written(Path("data.csv"))
    result = CliRunner().invoke(app, ["audit", "--csv", "data.csv", "--label", "side"])
    assert "pip install 'grokscope[audit]'" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--csv", "data.csv"], "--label is missing"),
        (["--csv", "data.csv", "--label", "size"], "did you mean 'side'"),
        (["--csv", "none.csv", "--label", "side"], "there is no file 'none.csv'"),
        (["--csv", "data.csv", "--label", "side", "--out", "worst.png"], "must end in .csv or .html"),
        (["--csv", "data.csv", "--npy", "a.npy", "--label", "side"], "name one table"),
        (["41630c", "--csv", "data.csv", "--label", "side"], "one of them"),
        (["--label", "side"], "name it with --csv"),
        (["--npy", "a.npy", "--label", "b.npy", "--ignore", "x"], "an array does not have"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("data.csv"))
    result = CliRunner().invoke(app, ["audit", *arguments])
    assert isinstance(result.exception, GrokscopeError)
    assert message in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]

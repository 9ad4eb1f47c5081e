"""The commands `dynamics` and `ablate` as a user types them, and their figures."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.processes import grokscope
from tests.integration.test_docs import ROOT, blocks
from typer.testing import CliRunner

from grokscope import (
    GrokscopeError,
    LedgerRecorder,
    ModelSpec,
    RunSpec,
    Store,
    TaskSpec,
    ablate,
    analytic_weights,
    make_dataset,
    run,
    training_events,
)
from grokscope.cli import app
from grokscope.plots import draw_ablations, draw_dynamics, draw_ledger

EVENTS = ["memorised", "grokked", "unlearned", "forgot", "collapsed"]
MEASURES = [
    "train_accuracy", "test_accuracy", "corrupted_accuracy", "clean_accuracy", "recovered_accuracy",
    "train_loss", "corrupted_loss", "clean_loss", "test_loss",
]  # fmt: skip


def printed(*arguments: str) -> str:
    """Standard output of a command that runs in this process, which need not load torch again."""
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def stored(store: Path, spec: RunSpec) -> str:
    result = run(spec)
    Store(store).save(result, weights=True)
    return result.run_id


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def parsed(text: str) -> Any:
    """JSON without NaN and without anything around it."""

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_dynamics_in_words_and_as_json(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = stored(tmp_path / "grokscope-runs", tiny)
    words = grokscope("dynamics", name[:8], "--out", "a.png", "--out", "a.csv", cwd=tmp_path).stdout
    for event in EVENTS:
        assert f"\n{event}: " in words
    assert "1 to 10, then every 10" in words
    assert (tmp_path / "a.png").stat().st_size > 20_000
    table = rows(tmp_path / "a.csv")
    assert [int(row["step"]) for row in table] == tiny.training.measured_steps()
    assert float(table[-1]["norm_w"]) > 0
    monkeypatch.chdir(tmp_path)
    content = parsed(printed("dynamics", name, "--json"))
    assert list(content["events"]) == EVENTS
    assert [str(row["norm_u"]) for row in content["curve"]] == [row["norm_u"] for row in table]
    assert "ledger" not in content


def test_the_ledger_of_every_corrupted_example(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tiny.updated({"training.steps": 60, "optimizer.weight_decay": 1.0})
    name = stored(tmp_path / "grokscope-runs", spec)
    monkeypatch.chdir(tmp_path)
    words = printed("dynamics", name, "--ledger", "--out", "a.png", "--out", "a.csv")
    table = rows(tmp_path / "a.csv")
    assert list(table[0]) == ["m", "n", "label", "truth", "memorised_step", "recovered_step", "lost_step", "final"]
    assert all((int(row["m"]) + int(row["n"])) % 11 == int(row["truth"]) for row in table)
    result = run(spec)
    dataset = result.dataset()
    assert len(table) == dataset.corrupted.sum()
    memorised = sum(row["final"] in ("memorised", "correct") for row in table)
    assert memorised / len(table) == pytest.approx(result.final.corrupted_accuracy)
    finished = grokscope("dynamics", name, "--ledger", "--json", cwd=tmp_path)
    assert "again: step 60 of 60" in finished.stderr
    assert "differ" not in finished.stderr  # the same engine gives the same run
    content = parsed(finished.stdout)
    counts = content["ledger"]["counts"]
    assert counts["drawn_true"] == sum(row["label"] == row["truth"] for row in table)
    assert f"{counts['drawn_true']} drew the true label" in words
    examples = content["ledger"]["examples"]
    assert [example["memorised_step"] for example in examples] == [
        int(row["memorised_step"]) if row["memorised_step"] else None for row in table
    ]


def test_what_cannot_be_done_is_one_line(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "grokscope-runs"
    clean = stored(store, tiny.updated({"task.corruption": 0.0}))
    for arguments, message in (
        (("dynamics", clean, "--ledger"), "has no corrupted examples"),
        (("dynamics", clean, "--out", "a.xls"), r"must end in \.png"),
        (("dynamics", clean, "--json", "--out", "a.png"), "leave out --out, or --json"),
        (("dynamics", "analytic"), "analytic"),
        (("ablate", stored(store, tiny.updated({"model.depth": 3}))), "need a two-layer network"),
        (("ablate", clean, "--json", "--out", "a.csv"), "leave out --out, or --json"),
    ):
        with pytest.raises(GrokscopeError, match=message):
            printed(*arguments)
    refused = grokscope("dynamics", clean, "--ledger", cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert refused.stdout == ""
    assert "no label is corrupted" in printed("dynamics", clean, "--out", "a.svg")


def test_ablate_in_words_as_table_and_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = grokscope("ablate", "analytic:11:60", "--out", "a.png", "--out", "a.csv", cwd=tmp_path)
    assert "Relative distance of the weights to Equation 2: 0.000 in all" in finished.stdout
    assert (tmp_path / "a.png").stat().st_size > 20_000
    table = rows(tmp_path / "a.csv")
    assert list(table[0]) == ["ablation", "k", *MEASURES]
    assert [int(row["k"]) for row in table if row["ablation"] == "frequencies"] == list(range(1, 7))
    monkeypatch.chdir(tmp_path)
    content = parsed(printed("ablate", "analytic:11:60", "--json"))
    assert [str(row["test_loss"]) for row in content["rows"]] == [row["test_loss"] for row in table]
    assert len(content["neurons"]["distance"]) == 60
    assert content["missing"] == {}


def test_ablate_says_what_there_is_not(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fields = {"task.operation": "x2+y2", "task.corruption": 0.0, "model.norm": "batch"}
    name = stored(tmp_path / "grokscope-runs", tiny.updated(fields))
    words = printed("ablate", name)
    assert "There is no distance to Equation 2: x2+y2 mod 11 is not a group operation" in words
    assert "There are no restricted and excluded logits" in words
    assert (tmp_path / "grokscope-figures" / f"{name}-ablate.png").exists()
    content = parsed(printed("ablate", name, "--json"))
    assert content["neurons"]["distance"] is None
    assert content["distance"]["weights"] is None
    assert content["rows"][0]["corrupted_accuracy"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"task.corruption": 0.0},
        {"optimizer.learning_rate": 1e20},
        {"model.kind": "transformer", "model.embed": 16, "model.width": 500},
        {"optimizer.weight_decay": 90.0},
    ],
)
def test_dynamics_of_every_run_can_be_drawn(tiny: RunSpec, fields: dict[str, object]) -> None:
    result = run(tiny.updated(fields))
    events = training_events(result.curve)
    figure = draw_dynamics(result, events, "title")
    figure.canvas.draw()
    happened = [event.step for event in events.events().values() if event.step is not None]
    for axes in figure.axes:
        marked = [line for line in axes.get_lines() if line.get_gid() == "event"]
        assert [np.asarray(line.get_xdata())[0] for line in marked] == happened


@pytest.mark.parametrize("rate", [0.01, 1e20])
def test_a_ledger_counts_what_it_draws(tiny: RunSpec, rate: float) -> None:
    spec = tiny.updated({"optimizer.learning_rate": rate})
    recorder = LedgerRecorder(run(spec).dataset())
    run(spec, on_evaluation=recorder)
    ledger = recorder.ledger()
    figure = draw_ledger(ledger, "title")
    figure.canvas.draw()
    counts = ledger.counts()
    heights = sum(patch.get_height() for patch in figure.axes[0].patches)  # type: ignore[attr-defined]
    assert heights == counts["ever_memorised"] + counts["ever_recovered"]
    drawn = [np.asarray(line.get_ydata())[-1] for line in figure.axes[1].get_lines()]
    assert drawn == [counts[f"finally_{fate}"] for fate in ("memorised", "recovered", "other")]


def test_ablations_are_drawn_as_measured(tiny: RunSpec) -> None:
    result = run(tiny)
    ablations = ablate(result.spec.model, result.trained_weights(), result.dataset())
    figure = draw_ablations(ablations, "title")
    figure.canvas.draw()
    assert len(figure.axes) == 6
    for axes, name in zip(figure.axes, ("own_wave", "shared_wave", "analytic_family", "frequencies"), strict=False):
        expected = [row.behaviour.test_accuracy for row in ablations.series(name)]
        (line,) = (line for line in axes.get_lines() if line.get_label() == "test")
        assert np.asarray(line.get_ydata()).tolist() == expected


def test_the_page_says_what_there_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Python runs, its flags exist, and the ablations that it lists are those of the table."""
    page = (ROOT / "docs" / "dynamics.md").read_text(encoding="utf-8")
    (code,) = blocks("python", page)
    exec(compile(code, "dynamics.md", "exec"), {})
    assert "'corrupted': 21" in capsys.readouterr().out  # of int(α·11²) = 60 examples, int(.35 · 60)
    monkeypatch.setenv("COLUMNS", "200")
    shown = "".join(printed(command, "--help") for command in ("dynamics", "ablate", "train"))
    for flag in set(re.findall(r"(--[a-z][a-z-]+)", page)):
        assert flag in shown
    model = ModelSpec(width=60)
    ablations = ablate(model, analytic_weights(11, 60), make_dataset(TaskSpec(modulus=11)))
    listed = re.findall(r"^\| `([a-z_]+)` \|.*\|.*\|$", page.split("| `ablation` |")[1], flags=re.MULTILINE)
    assert listed == list(dict.fromkeys(row.ablation for row in ablations.rows))

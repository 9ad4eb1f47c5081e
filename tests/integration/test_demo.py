"""The demo with networks small enough for a test; its workers are real processes."""

from pathlib import Path

import pytest

from grokscope import GrokscopeError, RunSpec, Store
from grokscope.cli.demo import demo
from grokscope.experiments.paper import fig01


@pytest.fixture
def small(tiny: RunSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    specs = [tiny.updated({"optimizer.weight_decay": decay}) for decay in fig01.WEIGHT_DECAYS]
    monkeypatch.setattr(fig01, "specs", lambda: specs)
    return tmp_path


def test_the_demo_prints_a_table_and_says_where_the_figure_is(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo(store=small / "runs", out=small / "pictures" / "fig.png")
    said = capsys.readouterr()
    for heading in ("wd", "phase", "train", "test", "corrupted", "clean", "mean IPR", "seconds"):
        assert heading in said.out
    assert f"Figure: {small / 'pictures' / 'fig.png'}" in said.out
    assert (small / "pictures" / "fig.png").read_bytes().startswith(b"\x89PNG")
    assert said.err.count("step 30 of 30") == 3  # progress without a terminal is lines

    seconds = [run.seconds for run in Store(small / "runs").all()]
    demo(store=small / "runs", out=small / "again.pdf")
    assert "3 of 3 runs are in the store" in capsys.readouterr().err
    assert [run.seconds for run in Store(small / "runs").all()] == seconds


@pytest.mark.parametrize(("out", "engine"), [("fig.qqq", "auto"), ("fig", "auto"), ("fig.png", "warp")])
def test_the_demo_refuses_bad_input_before_it_trains(small: Path, out: str, engine: str) -> None:
    with pytest.raises(GrokscopeError, match="is not allowed"):
        demo(store=small / "runs", out=small / out, engine=engine)
    assert list(small.iterdir()) == []

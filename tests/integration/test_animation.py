"""`grokscope animate` and `gs.animate`: films that can be opened, of what they say."""

import os
import signal
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.integration.processes import here, start

import grokscope as gs
from grokscope.animation import frame_steps
from grokscope.measure import phases_along
from grokscope.plots.animation import draw_frames

SMALL = ("--size", "240x160", "--frames", "3")


@pytest.fixture(scope="module")
def run() -> gs.RunResult:
    spec = gs.RunSpec(
        task=gs.TaskSpec(modulus=11),
        model=gs.ModelSpec(width=24),
        training=gs.TrainingSpec(steps=40, measure_every=10),
    )
    return gs.run(spec, snapshots="all")


def film(path: Path) -> Image.Image:
    picture = Image.open(BytesIO(path.read_bytes()))
    assert picture.format == "GIF"
    return picture


def test_a_film_has_its_frames(run: gs.RunResult, tmp_path: Path) -> None:
    path = gs.animate(run, tmp_path / "new" / "grok.gif", frames=3, fps=4, size=(240, 160))
    picture = film(path)
    assert picture.size == (240, 160)
    assert getattr(picture, "n_frames", 1) == 3
    assert picture.info["duration"] == 250
    assert [file.name for file in path.parent.iterdir()] == ["grok.gif"]


def test_a_run_without_snapshots_gives_the_same_film(run: gs.RunResult, tmp_path: Path) -> None:
    store = gs.Store(tmp_path / "grokscope-runs")
    store.save(replace(run, weights_at={}))
    done = here(("animate", run.run_id, "--out", "again.gif", *SMALL), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "has no snapshots, so it is trained again" in done.stderr
    assert f"Film: {tmp_path / 'again.gif'}" in done.stdout
    kept = gs.animate(run, tmp_path / "kept.gif", frames=3, size=(240, 160))
    assert kept.read_bytes() == (tmp_path / "again.gif").read_bytes()
    assert store.snapshot_count(store.all()[0]) == 0


def test_a_stopped_run_is_filmed_to_where_it_was_stopped(run: gs.RunResult, tmp_path: Path) -> None:
    def stop(row: gs.Row, _: gs.Moment) -> None:
        if row.step == 20:
            raise gs.Stop

    stopped = gs.run(run.spec, on_measurement=stop)
    path = gs.animate(stopped, tmp_path / "grok.gif", frames=2, size=(200, 160))
    assert getattr(film(path), "n_frames", 1) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"model.kind": "transformer", "model.embed": 8, "model.heads": 2},
        {"model.depth": 3, "model.width": 8},
        {"task.operation": "multiply", "task.modulus": 12, "task.corruption": 0.0},
    ],
)
def test_all_that_has_waves_can_be_drawn(changes: dict[str, object]) -> None:
    spec = gs.RunSpec().updated({"task.modulus": 11, "training.steps": 3})
    result = gs.run(spec.updated(changes), snapshots=2)
    pictures = list(draw_frames(result, result.snapshots, (240, 160)))
    assert [picture.size for picture in pictures] == [(240, 160)] * 2
    first, last = (np.asarray(picture) for picture in (pictures[0], pictures[-1]))
    assert (first != last).any()


def test_dead_neurons_are_drawn_too(run: gs.RunResult) -> None:
    dead = {name: np.zeros_like(array) for name, array in run.snapshots[40].items()}
    assert list(draw_frames(run, {1: run.snapshots[1], 40: dead}, (240, 160)))


def test_the_phase_of_a_frame_is_that_of_a_run_that_ends_there(run: gs.RunResult) -> None:
    for row in run.curve[::6]:
        shorter = gs.run(run.spec.updated({"training.steps": row.step}))
        past = [other for other in run.curve if other.step <= row.step]
        assert phases_along(past, run.corruption)[-1] is shorter.phase


def test_frames_keep_both_ends_and_are_no_more_than_asked_for() -> None:
    steps = gs.TrainingSpec(steps=2000, measure_every=5).measured_steps()
    for count in (2, 10, 60, 1000):
        chosen = frame_steps(steps, count)
        assert chosen[0] == 1
        assert chosen[-1] == 2000
        assert len(chosen) <= count
        assert set(chosen) <= set(steps)
        assert chosen == sorted(set(chosen))
    assert len(frame_steps(steps, 60)) >= 55


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "grok.avi"), "must end in .gif or .mp4"),
        (("--size", "wide"), "must be two numbers of pixels such as 720x480"),
        (("--size", "10x10"), "size = 10 is not allowed: must be 160 to 4000"),
        (("--frames", "1"), "frames = 1 is not allowed: must be 2 to 1000"),
        (("--fps", "0"), "fps = 0.0 is not allowed: must be 0.1 to 50"),
        (("--fps", "nan"), "fps = nan is not allowed"),
        (("--out", "/dev/full/grok.gif"), "cannot write"),
    ],
)
def test_bad_input_is_one_line(run: gs.RunResult, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    gs.Store(tmp_path / "grokscope-runs").save(run)
    done = here(("animate", run.run_id, *arguments), tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_has_no_waves_is_refused(run: gs.RunResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = gs.RunSpec().updated(
        {"task.kind": "parity", "training.steps": 3, "model.width": 8, "task.bit_count": 6, "task.relevant_bits": 2}
    )
    parity = gs.run(spec, snapshots="all")
    for result in (parity, replace(parity, weights=None, weights_at={})):
        with pytest.raises(gs.GrokscopeError, match="wave"):
            gs.animate(result, tmp_path / "grok.gif")
    assert "again" not in capsys.readouterr().err  # it was not trained for nothing
    diverged = gs.run(run.spec.updated({"optimizer.kind": "sgd", "optimizer.learning_rate": 1e6}))
    with pytest.raises(gs.GrokscopeError, match=r"diverged at step \d+"):
        gs.animate(diverged, tmp_path / "grok.gif")
    assert not list(tmp_path.iterdir())


def test_an_interrupted_film_leaves_nothing(run: gs.RunResult, tmp_path: Path) -> None:
    """While it is trained again; the stored run pretends to be a long one."""
    spec = run.spec.updated({"training.steps": 10_000_000, "training.measure_every": 10_000_000})
    last = gs.Row({**run.final, "step": 10_000_000})
    long = replace(run, spec=spec, curve=(*run.curve[:-1], last), weights_at={}, ipr_history=None)
    gs.Store(tmp_path / "grokscope-runs").save(long)
    process = start("animate", spec.run_id, "--out", "grok.gif", cwd=tmp_path)
    assert process.stderr is not None
    assert "trained again" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert [file.name for file in tmp_path.iterdir()] == ["grokscope-runs"]


def test_an_mp4_without_ffmpeg_says_so(run: gs.RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(gs.GrokscopeError, match="needs the program ffmpeg, which is not here"):
        gs.animate(run, tmp_path / "grok.mp4")


@pytest.mark.parametrize("works", [True, False])
def test_an_mp4_is_what_ffmpeg_makes_of_the_frames(
    run: gs.RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    """A stand-in for ffmpeg counts the bytes of the frames, or fails as ffmpeg does."""
    script = tmp_path / "ffmpeg"
    ending = 'for out; do :; done; wc -c > "$out"' if works else "echo no such encoder >&2; exit 1"
    script.write_text(f"#!/bin/sh\n{ending}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if works:
        path = gs.animate(run, tmp_path / "grok.mp4", frames=2, fps=5, size=(200, 160))
        assert int(path.read_text()) == (2 + 10) * 200 * 160 * 3  # and the last one for two seconds
    else:
        with pytest.raises(gs.GrokscopeError, match="no such encoder"):
            gs.animate(run, tmp_path / "grok.mp4", frames=2, size=(200, 160))
        assert not (tmp_path / "grok.mp4").exists()

"""Event files for TensorBoard: the curve of the run, each step once, whatever happened on the way."""

import importlib.util
import math
import os
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

import grokscope as gs
from grokscope.sweeps import tracking
from grokscope.sweeps.running import Running
from grokscope.sweeps.tracking import Tracker, tag, track_directory
from grokscope.sweeps.worker import Worker

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:google.*")


def events(directory: Path) -> EventAccumulator:
    accumulator = EventAccumulator(str(directory), size_guidance={"scalars": 0})
    accumulator.Reload()
    return accumulator


def check(directory: Path, result: gs.RunResult) -> None:
    """Every number of the curve, once, and nothing else."""
    assert len(list((directory / result.run_id).iterdir())) == 1
    read = events(directory / result.run_id)
    for name in set(result.curve[0]) - {"step"}:
        expected = [(row.step, row[name]) for row in result.curve if not math.isnan(row[name])]
        if not expected:
            assert tag(name) not in read.Tags()["scalars"]
            continue
        found = read.Scalars(tag(name))
        assert [event.step for event in found] == [step for step, _ in expected]
        assert [event.value for event in found] == pytest.approx([value for _, value in expected], rel=1e-6)


def test_a_run_is_tracked_with_its_settings(tmp_path: Path, tiny: gs.RunSpec) -> None:
    result = gs.train(tiny, store=tmp_path / "runs", track="tensorboard")
    beside = tmp_path / "runs-tensorboard"
    check(beside, result)
    content = events(beside / tiny.run_id).SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    fields = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    assert fields["task.modulus"].number_value == 11
    assert fields["model.activation"].string_value == "quadratic"
    assert fields["training.batch_size"].string_value == "none"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sweep_is_tracked_and_so_are_its_runs_from_before(tmp_path: Path, tiny: gs.RunSpec, workers: int) -> None:
    before = gs.train(tiny, store=tmp_path / "runs")
    gs.sweep(
        {"training.seed": [0, 1, 2]},
        base=tiny,
        store=tmp_path / "runs",
        workers=workers,
        progress=False,
        track="tensorboard",
        track_dir=tmp_path / "events",
    )
    store = gs.Store(tmp_path / "runs")
    assert before.run_id in store.ids()
    for run_id in store.ids():
        check(tmp_path / "events", store.load(run_id))


def test_a_run_that_was_stopped_has_no_step_twice(tmp_path: Path, tiny: gs.RunSpec) -> None:
    """Its event file ran ahead of the checkpoint, as after a crash, and then it went on."""
    spec = tiny.updated({"training.steps": 200})
    store = gs.Store(tmp_path / "runs")
    directory = tmp_path / "events"
    stops = iter([False] * 3 + [True])
    running = Running(workers=0, track=directory)
    list(Worker(store, running, lambda: next(stops, True)).take([(0, spec)]))
    checkpoint = store.load_checkpoint(spec)
    assert checkpoint is not None
    assert 0 < checkpoint.state.step < 200
    ahead = Tracker(directory)
    ahead.begin(spec, checkpoint.curve)
    for step in range(checkpoint.state.step + 1, 190):
        ahead.add(spec, gs.Row({**checkpoint.curve[-1], "step": step}))
    ahead.close()
    list(Worker(store, running, lambda: False).take([(0, spec)]))
    check(directory, store.load(spec.run_id))


def test_a_checkpoint_that_is_not_used_leaves_no_rows(tmp_path: Path, tiny: gs.RunSpec) -> None:
    """Another engine begins from the start, although there is a checkpoint."""
    result = gs.run(tiny)
    tracker = Tracker(tmp_path)
    tracker.begin(tiny, result.curve[:5])
    for row in result.curve:
        tracker.add(tiny, row)
    tracker.end(tiny, "finished")
    check(tmp_path, result)


def test_a_finished_file_is_not_written_again_and_an_older_one_is(tmp_path: Path, tiny: gs.RunSpec) -> None:
    result = gs.train(tiny, store=tmp_path / "runs", track="tensorboard")
    directory = tmp_path / "runs-tensorboard" / tiny.run_id
    (first,) = directory.iterdir()
    gs.train(tiny, store=tmp_path / "runs", track="tensorboard")
    assert list(directory.iterdir()) == [first]
    Tracker(directory.parent).write(tiny, result.curve[:3])  # the run was then finished without --track
    (unfinished,) = directory.iterdir()

    os.utime(unfinished, (0, 0))
    gs.train(tiny, store=tmp_path / "runs", track="tensorboard")
    check(directory.parent, result)


def test_what_goes_wrong_is_said_once_and_stops_nothing(
    tmp_path: Path, tiny: gs.RunSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / tiny.run_id).write_text("a file in the way")
    gs.train(tiny, store=tmp_path / "runs", track="tensorboard", track_dir=tmp_path / "events")
    said = capsys.readouterr().err
    assert said.count("Nothing more is tracked") == 2  # while it was trained, and when the rest was to be written
    assert "File exists" in said
    assert gs.Store(tmp_path / "runs").ids() == [tiny.run_id]


def test_a_full_disk_does_not_stop_a_run(
    tmp_path: Path, tiny: gs.RunSpec, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tracking._EventFile, "_write", full)
    gs.train(tiny, store=tmp_path / "runs", track="tensorboard")
    assert "No space left on device" in capsys.readouterr().err
    assert gs.Store(tmp_path / "runs").ids() == [tiny.run_id]


def test_without_tensorboard_it_says_what_to_install(
    tmp_path: Path, tiny: gs.RunSpec, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(tracking, "find_spec", lambda name: None if name == "tensorboard" else find(name))
    gs.train(tiny, store=tmp_path / "runs", track="tensorboard")
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "track" in line)
    assert line == "Nothing is tracked: TensorBoard is not installed; pip install 'grokscope[track]'"
    assert not (tmp_path / "runs-tensorboard").exists()


def test_a_tensorboard_that_is_broken_does_not_stop_a_run(
    tmp_path: Path, tiny: gs.RunSpec, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.record_writer", None)
    gs.train(tiny, store=tmp_path / "runs", track="tensorboard")
    assert "Nothing more is tracked, the runs go on: import of tensorboard" in capsys.readouterr().err
    assert gs.Store(tmp_path / "runs").ids() == [tiny.run_id]


def test_bad_trackers_and_directories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(gs.GrokscopeError, match=r"track = 'tensorbord' is not allowed.*did you mean 'tensorboard'"):
        track_directory("tensorbord", None, tmp_path)
    with pytest.raises(gs.GrokscopeError, match="goes with a tracker"):
        track_directory(None, tmp_path, tmp_path)
    (tmp_path / "file").write_text("")
    assert track_directory("tensorboard", tmp_path / "file" / "events", tmp_path) is None
    assert "Nothing is tracked: cannot write" in capsys.readouterr().err
    assert track_directory(None, None, tmp_path) is None


def test_a_run_that_diverged_is_tracked_as_far_as_it_came(tmp_path: Path, tiny: gs.RunSpec) -> None:
    spec = tiny.updated({"optimizer.learning_rate": 1e20})
    result = gs.train(spec, store=tmp_path / "runs", track="tensorboard")
    assert result.status == "diverged"
    read = events(tmp_path / "runs-tensorboard" / spec.run_id)
    assert len(list((tmp_path / "runs-tensorboard" / spec.run_id).iterdir())) == 1
    steps = {event.step for name in read.Tags()["scalars"] for event in read.Scalars(name)}
    assert steps <= {row.step for row in result.curve}

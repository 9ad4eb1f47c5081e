"""`grokscope runs export`: the formats, what is refused, and files that are whole or not there."""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import safetensors.numpy
import xarray as xr
from tests.integration.processes import grokscope

import grokscope as gs


@pytest.fixture(scope="module")
def cwd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a sweep of four runs, and one run with its weights."""
    directory = tmp_path_factory.mktemp("exports")
    small = gs.RunSpec(
        task=gs.TaskSpec(modulus=7), model=gs.ModelSpec(width=8), training=gs.TrainingSpec(steps=12, measure_every=4)
    )
    store = directory / "grokscope-runs"
    axes: dict[str, list[float]] = {"task.corruption": [0, 0.3], "training.seed": [0, 1]}
    gs.sweep(axes, base=small, name="mine", store=store, workers=0, progress=False)
    gs.train(small.updated({"model.width": 4}), store=store, weights=True)
    return directory


def export(cwd: Path, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    return grokscope("runs", "export", *arguments, cwd=cwd, check=check)


def run_ids(cwd: Path) -> list[str]:
    return gs.Store(cwd / "grokscope-runs", create=False).ids()


def test_one_run_in_every_format(cwd: Path) -> None:
    run_id = gs.open(cwd / "grokscope-runs").sweep("mine").ids()[0]
    result = gs.open(cwd / "grokscope-runs").run(run_id)
    accuracies = [row.test_accuracy for row in result.curve]
    for ending in ("csv", "parquet", "nc"):
        said = export(cwd, run_id[:8], "--out", f"one/run.{ending}")
        assert said.stderr == f"Wrote {cwd / 'one' / f'run.{ending}'}\n"
        assert said.stdout == ""
    table = pd.read_csv(cwd / "one" / "run.csv")
    assert list(table.columns) == list(result.curve[0])
    assert table["test_accuracy"].tolist() == accuracies
    assert pd.read_parquet(cwd / "one" / "run.parquet")["test_accuracy"].tolist() == accuracies
    with xr.open_dataset(cwd / "one" / "run.nc") as data:
        assert dict(data.sizes) == {"step": len(accuracies), "neuron": 8}
        assert data["test_accuracy"].values.tolist() == accuracies
        assert data.attrs["task.modulus"] == 7
    export(cwd, run_id, "--table", "neurons", "--out", "one/neurons.csv")
    assert len(pd.read_csv(cwd / "one" / "neurons.csv")) == 8


def test_a_sweep_and_all_runs(cwd: Path) -> None:
    export(cwd, "--sweep", "mine", "--out", "mine.nc")
    with xr.open_dataset(cwd / "mine.nc") as data:
        assert dict(data.sizes) == {"corruption": 2, "seed": 2, "step": 11, "neuron": 8}
    export(cwd, "--sweep", "mine", "--out", "mine.csv")
    assert pd.read_csv(cwd / "mine.csv")["run_id"].tolist() == gs.open(cwd / "grokscope-runs").sweep("mine").ids()
    export(cwd, "--sweep", "mine", "--where", "training.seed=1", "--table", "curves", "--out", "some.parquet")
    assert set(pd.read_parquet(cwd / "some.parquet")["task.corruption"]) == {0, 0.3}
    export(cwd, "--all", "--out", "all.nc")
    with xr.open_dataset(cwd / "all.nc") as data:
        assert sorted(data["run"].values) == sorted(run_ids(cwd))
    printed = export(cwd, "--all")
    assert printed.stderr == ""
    assert [row["run_id"] for row in csv.DictReader(printed.stdout.splitlines())] == run_ids(cwd)


def test_weights_of_a_run_that_has_them_and_of_one_that_has_not(cwd: Path) -> None:
    (kept,) = gs.Store(cwd / "grokscope-runs").runs(["model.width=4"])
    said = export(cwd, kept.run_id, "--out", "weights.safetensors")
    assert "without weights" not in said.stderr
    assert safetensors.numpy.load_file(cwd / "weights.safetensors")["weights.W"].shape == (7, 4)
    other = next(run_id for run_id in run_ids(cwd) if run_id != kept.run_id)
    said = export(cwd, other, "--out", "none.safetensors")
    assert "was stored without weights: the file has its curve and its spectra only" in said.stderr
    assert "weights.W" not in safetensors.numpy.load_file(cwd / "none.safetensors")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "say what to export: a run by its id, or runs with --sweep and --where, or --all"),
        (["{run}", "--all"], "say what to export"),
        (["--all", "--format", "cvs"], "--format = 'cvs' is not allowed.*did you mean 'csv'"),
        (["--all", "--out", "x.csv", "--format", "netcdf"], r"must end in \.nc with --format netcdf"),
        (["--all", "--out", "x.dat", "--format", "csv"], r"must end in \.csv with --format csv"),
        (["--all", "--out", "x"], r"must end in \.json, \.toml, \.safetensors, \.csv, \.parquet, \.nc"),
        (["--all", "--format", "netcdf"], "netcdf is not text: name a file with --out"),
        (["{run}", "--format", "safetensors"], "safetensors is not text"),
        (["--all", "--out", "x.json"], "json is a format for one run"),
        (["--sweep", "mien", "--out", "x.csv"], "no sweep 'mien'.*did you mean 'mine'"),
        (["--sweep", "mine", "--where", "training.seed=1", "--out", "x.nc"], "leave --where out"),
        (["--where", "phase=forgetting", "--out", "x.csv"], "nothing to export: no run .* meets these conditions"),
        (["--where", "task.corupption=1", "--out", "x.csv"], "did you mean"),
        (["--all", "--table", "curve", "--out", "x.csv"], "--table = 'curve' is not allowed.*did you mean 'curves'"),
        (["--all", "--table", "runs", "--out", "x.nc"], "--table goes with csv and parquet"),
        (["--all", "--out", "one.csv/x.csv"], "cannot write"),
        (["zzz", "--out", "x.csv"], "there is no run 'zzz'"),
    ],
)
def test_what_is_refused(cwd: Path, arguments: list[str], expected: str) -> None:
    (cwd / "one.csv").write_text("in the way")
    finished = export(cwd, *(part.format(run=run_ids(cwd)[0]) for part in arguments), check=False)
    assert finished.returncode == 2
    assert finished.stdout == ""
    (line,) = finished.stderr.splitlines()

    assert re.search(expected, line), line
    assert not list(cwd.glob("x*"))


@pytest.mark.parametrize(
    ("ending", "library"), [("parquet", "pyarrow"), ("nc", "xarray"), ("nc", "h5netcdf"), ("nc", "h5py")]
)
def test_a_missing_library_is_named_before_anything_is_read(
    cwd: Path, ending: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    finished = export(cwd, "--all", "--out", f"x.{ending}", check=False)
    assert finished.returncode == 2
    said = f"grokscope: this needs {library}, which is not installed: pip install 'grokscope[export]'\n"
    assert finished.stderr == said


@pytest.mark.parametrize("out", ["stopped.csv", "stopped.parquet", "stopped.nc"])
def test_ctrl_c_leaves_the_file_from_before(cwd: Path, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load, loaded = gs.Store.load, iter(range(100))

    def stopped(self: gs.Store, run_id: str) -> gs.RunResult:
        if next(loaded) == 3:
            raise KeyboardInterrupt
        return load(self, run_id)

    (cwd / out).write_text("before")
    there = set(cwd.iterdir())
    monkeypatch.setattr(gs.Store, "load", stopped)
    table = [] if out.endswith(".nc") else ["--table", "curves"]
    finished = export(cwd, "--all", *table, "--out", out, check=False)
    assert finished.returncode == 130
    assert (cwd / out).read_text() == "before"
    assert set(cwd.iterdir()) == there


def test_long_exports_show_how_far_they_are(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grokscope.cli.export.MANY", 3)
    for out in ("long.csv", "long.nc"):
        assert "Exporting runs: 5 of 5" in export(cwd, "--all", "--out", out).stderr


@pytest.fixture
def damaged(cwd: Path) -> Iterator[str]:
    """A run whose file has lost its end, for a while."""
    victim = run_ids(cwd)[2]
    (file,) = (cwd / "grokscope-runs" / "runs").glob(f"*/{victim}-*")
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    yield victim
    file.write_bytes(whole)


@pytest.mark.parametrize("out", ["damaged.csv", "damaged.parquet", "damaged.nc"])
def test_damaged_runs_are_left_out_and_said_so(cwd: Path, damaged: str, out: str) -> None:
    table = [] if out.endswith(".nc") else ["--table", "curves"]
    said = export(cwd, "--all", *table, "--out", out).stderr
    assert f"damaged in the store grokscope-runs, and left out: run {damaged}" in said
    assert (cwd / out).exists()


def test_a_reader_that_has_enough(cwd: Path) -> None:
    """As `| head -1`: no traceback, and no error."""
    command = [sys.executable, "-m", "grokscope", "runs", "export", "--all", "--table", "neurons", "--format", "csv"]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_pipe_takes_every_format(cwd: Path) -> None:
    for format_, begins in (("csv", b"run_id,"), ("parquet", b"PAR1"), ("netcdf", b"\x89HDF")):
        command = [sys.executable, "-m", "grokscope", "runs", "export", "--all", "--format", format_]
        read, write = os.pipe()
        with subprocess.Popen([*command, "--out", f"/dev/fd/{write}"], cwd=cwd, pass_fds=[write]) as process:
            os.close(write)
            with os.fdopen(read, "rb") as pipe:
                assert pipe.read().startswith(begins)
        assert process.returncode == 0


def test_json_is_still_what_it_was(cwd: Path) -> None:
    run_id = run_ids(cwd)[0]
    assert json.loads(export(cwd, run_id).stdout)["run_id"] == run_id
    export(cwd, run_id, "--out", "run.json")
    assert json.loads((cwd / "run.json").read_text()) == json.loads(export(cwd, run_id).stdout)


def test_runs_of_your_own_code_are_exported_without_it(tmp_path: Path) -> None:
    """The files of the task and of the measurement are gone: nothing here needs them."""
    examples = Path(__file__).parents[2] / "examples"
    for name in ("sparse_parity.py", "effective_rank.py"):
        (tmp_path / name).write_bytes((examples / name).read_bytes())
    sweep = """
[base.task]
kind = "sparse_parity.py:SparseParity"
[base.model]
width = 8
[base.training]
steps = 12
measurements = ["effective_rank.py:EffectiveRank"]
[axes]
"task.bits" = [5, 6]
"""
    (tmp_path / "own.toml").write_text(sweep)
    grokscope("sweep", "own.toml", "--workers", "1", cwd=tmp_path)
    for name in ("sparse_parity.py", "effective_rank.py"):
        (tmp_path / name).unlink()
    export(tmp_path, "--sweep", "own", "--out", "own.nc")
    with xr.open_dataset(tmp_path / "own.nc") as data:
        assert data["bits"].values.tolist() == [5, 6]
        assert data["effective_rank"].dims == ("bits", "step")
        assert float(data["effective_rank"].min()) >= 1
        assert data.attrs["task.kind"].startswith("sparse_parity.py:SparseParity")
    export(tmp_path, "--sweep", "own", "--out", "own.parquet")
    table = pd.read_parquet(tmp_path / "own.parquet")
    assert table["task.bits"].tolist() == [5, 6]
    assert table["effective_rank"].notna().all()

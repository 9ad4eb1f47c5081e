"""The command as a user types it: a process, its exit status, and what it writes where."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.numpy
from tests.integration.processes import grokscope as look

from grokscope.cli import main

TINY = ["--modulus", "11", "--width", "24", "--steps", "30", "--measure-every", "10"]
CURVE_KEYS = {
    "step", "train_loss", "test_loss", "train_accuracy", "test_accuracy", "corrupted_accuracy", "clean_accuracy",
    "recovered_accuracy", "mean_ipr", "norm_u", "norm_v", "norm_w",
}  # fmt: skip
PHASES = {"coexistence", "partial_inversion", "full_inversion", "memorization", "forgetting", "confusion"}


def grokscope(*arguments: str, cwd: Path, answer: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "grokscope", *arguments],
        cwd=cwd,
        input=answer,
        capture_output=True,
        text=True,
        check=False,
    )


def train(cwd: Path, *arguments: str) -> dict[str, object]:
    finished = grokscope("train", *TINY, "--json", *arguments, cwd=cwd)
    assert finished.returncode == 0, finished.stderr
    result = json.loads(finished.stdout)
    assert isinstance(result, dict)
    return result


def test_who_stops_a_command_hears_how_to_start_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("grokscope.cli.app", lambda **_: 130)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "nothing of the unfinished work was stored, and the same command starts it again" in capsys.readouterr().err


def test_train_prints_one_json_object(tmp_path: Path) -> None:
    result = train(tmp_path)
    assert result["phase"] in PHASES
    assert result["engine"] == "native"
    assert isinstance(result["curve"], list)
    assert [row["step"] for row in result["curve"]] == [*range(1, 11), 20, 30]
    assert all(row.keys() >= CURVE_KEYS for row in result["curve"])
    assert result["final"] == result["curve"][-1]


def test_train_in_words_stores_the_run(tmp_path: Path) -> None:
    finished = grokscope("train", *TINY, "--store", "elsewhere", cwd=tmp_path)
    assert finished.returncode == 0
    assert "After 30 steps" in finished.stdout
    assert "grokscope show" in finished.stdout
    assert (tmp_path / "elsewhere" / "index.sqlite").exists()
    assert not (tmp_path / "grokscope-runs").exists()


def test_every_flag_reaches_the_spec(tmp_path: Path) -> None:
    result = train(
        tmp_path,
        *("--operation", "multiply", "--modulus", "13", "--data-fraction", ".6", "--corruption", ".2"),
        *("--corruption-kind", "symmetric-wrong", "--corrupted-operands", "3,1", "--width", "20"),
        *("--activation", "relu", "--dropout", ".1", "--norm", "layer", "--parameterization", "standard"),
        *("--optimizer", "sgd", "--lr", ".1", "--weight-decay", ".001", "--momentum", ".5"),
        *(
            "--loss",
            "cross-entropy",
            "--steps",
            "12",
            "--batch-size",
            "16",
            "--seed",
            "3",
            "--measure-every",
            "6",
            "--settle",
            "5",
            "--measure-per-decade",
            "3",
        ),
    )
    assert result["spec"] == {
        "task": {
            "kind": "modular", "operation": "multiply", "modulus": 13, "data_fraction": 0.6, "corruption": 0.2,
            "corruption_kind": "symmetric-wrong", "corrupted_operands": [1, 3],
        },
        "model": {
            "width": 20, "activation": "relu", "dropout": 0.1, "norm": "layer", "parameterization": "standard",
            "kind": "mlp", "depth": 2,
        },
        "optimizer": {
            "kind": "sgd", "learning_rate": 0.1, "weight_decay": 0.001, "momentum": 0.5, "decay_embeddings": True,
        },
        "training": {
            "loss": "cross-entropy", "steps": 12, "batch_size": 16, "seed": 3, "seeding": "independent",
            "measure_every": 6, "measurements": [], "settle": 5, "measure_per_decade": 3,
        },
        "regularizer": {"kind": "none"},
    }  # fmt: skip


def test_flags_of_other_networks(tmp_path: Path) -> None:
    finished = grokscope(
        *("train", "--modulus", "11", "--steps", "12", "--json", "--save-weights", "--model", "transformer"),
        *(
            "--embed",
            "16",
            "--heads",
            "2",
            "--layers",
            "2",
            "--tie-weights",
            "--tied-start",
            "unembedding",
            "--scaling",
            "sqrt_d",
            "--norm",
            "layer",
        ),
        *("--no-decay-embeddings", "--weight-decay", "1", "--dropout", ".1"),
        cwd=tmp_path,
    )
    assert finished.returncode == 0, finished.stderr
    result = json.loads(finished.stdout)
    assert result["engine"] == "native"
    assert result["spec"]["model"] == {
        "kind": "transformer", "activation": "relu", "dropout": 0.1, "norm": "layer", "embed": 16, "heads": 2,
        "layers": 2, "tie_weights": True, "scaling": "sqrt-d", "module_rates": False, "tied_start": "unembedding",
        "dropout_places": "residual",
    }  # fmt: skip
    assert result["spec"]["optimizer"]["decay_embeddings"] is False
    shown = look("show", result["run_id"], "--attention", "3,10", "--out", "it.png", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "it.png").stat().st_size > 5000
    assert "2-layer transformer 16, 2 heads, tied" in look("runs", "list", cwd=tmp_path).stdout
    for pair, message in (("3", "must be a pair such as 3,58"), ("3,11", "m and n are 0 … 10"), ("-1,2", "0 … 10")):
        refused = look("show", result["run_id"], "--attention", pair, cwd=tmp_path, check=False)
        assert refused.returncode == 2
        assert message in refused.stderr

    deep = train(tmp_path, "--depth", "3", "--parameterization", "lazy")
    assert deep["spec"]["model"]["activation"] == "relu"  # type: ignore[index]
    refused = look("show", str(deep["run_id"]), "--attention", "3,10", cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert "has no attention: model.kind = 'mlp'" in refused.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--model", "transformer", "--heads", "3"),
            "model.heads = 3 is not allowed: it must divide",
        ),
        (("--model", "transformer", "--width", "500"), "model.width = 500 is not allowed: it means nothing"),
        (("--heads", "4"), "model.heads = 4 is not allowed: it means nothing for model.kind = 'mlp'"),
        (("--tie-weights",), "model.tie_weights = True is not allowed: it means nothing"),
        (("--no-decay-embeddings",), "optimizer.decay_embeddings = False is not allowed: it means nothing"),
        (("--task", "parity", "--engine", "native"), "engine 'torch' can"),
    ],
)
def test_flags_that_mean_nothing_are_refused(tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    refused = grokscope("train", *flags, cwd=tmp_path)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "grokscope-runs").exists()


def test_a_spec_file_and_flags_that_override_it(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[task]\nmodulus = 13\n[optimizer]\nweight_decay = 5\n")
    spec = train(tmp_path, "--spec", "my.toml", "--modulus", "7")["spec"]
    assert isinstance(spec, dict)
    assert spec["task"]["modulus"] == 7
    assert spec["optimizer"]["weight_decay"] == 5


def test_scale_with_batch(tmp_path: Path) -> None:
    spec = train(tmp_path, "--batch-size", "16", "--scale-with-batch")["spec"]
    assert isinstance(spec, dict)
    assert spec["training"]["steps"] == 30 * 256 // 16
    assert spec["optimizer"]["learning_rate"] == pytest.approx(0.01 / 4)


def test_a_stored_run_is_not_trained_again_unless_forced(tmp_path: Path) -> None:
    first, again, forced = train(tmp_path), train(tmp_path), train(tmp_path, "--force")
    assert first["seconds"] == again["seconds"] != forced["seconds"]
    assert first["curve"] == again["curve"] == forced["curve"]
    with_weights = train(tmp_path, "--save-weights")
    assert with_weights["seconds"] != forced["seconds"]
    train(tmp_path, "--force")
    (run,) = json.loads(grokscope("runs", "list", "--json", cwd=tmp_path).stdout)
    assert run["has_weights"]  # what was asked for once is not taken away


def test_a_run_that_diverges_is_a_result(tmp_path: Path) -> None:
    result = train(tmp_path, "--lr", "1e20")
    assert (result["status"], result["phase"], result["diverged_step"]) == ("diverged", None, 2)
    listed = grokscope("runs", "list", cwd=tmp_path)
    assert "diverged at 2" in listed.stdout


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    cwd = tmp_path_factory.mktemp("stored")
    train(cwd)
    return cwd, str(train(cwd, "--seed", "1", "--save-weights")["run_id"])


def test_runs_list(stored: tuple[Path, str]) -> None:
    cwd, run_id = stored
    table = grokscope("runs", "list", cwd=cwd).stdout
    assert run_id in table
    assert "add mod 11" in table
    runs = json.loads(grokscope("runs", "list", "--json", cwd=cwd).stdout)
    assert {run["spec"]["training"]["seed"] for run in runs} == {0, 1}


def test_runs_show(stored: tuple[Path, str]) -> None:
    cwd, run_id = stored
    shown = grokscope("runs", "show", run_id[:8], cwd=cwd).stdout
    assert "seed = 1" in shown
    assert "mean_ipr" in shown
    assert json.loads(grokscope("runs", "show", run_id, "--json", cwd=cwd).stdout)["run_id"] == run_id


def test_runs_export(stored: tuple[Path, str]) -> None:
    cwd, run_id = stored
    for name in ("run.json", "curve.csv", "spec.toml", "arrays.safetensors"):
        assert grokscope("runs", "export", run_id, "--out", name, cwd=cwd).returncode == 0
    printed = json.loads(grokscope("runs", "export", run_id, cwd=cwd).stdout)
    assert json.loads((cwd / "run.json").read_text()) == printed
    rows = list(csv.DictReader((cwd / "curve.csv").read_text().splitlines()))
    assert [float(row["test_accuracy"]) for row in rows] == [row["test_accuracy"] for row in printed["curve"]]
    assert safetensors.numpy.load_file(cwd / "arrays.safetensors")["weights.U"].shape == (24, 11)
    again = grokscope("train", "--spec", "spec.toml", "--json", cwd=cwd)
    assert json.loads(again.stdout)["run_id"] == run_id


def test_show_draws_a_figure(stored: tuple[Path, str]) -> None:
    cwd, run_id = stored
    shown = grokscope("show", run_id[:6], cwd=cwd)
    assert shown.returncode == 0, shown.stderr
    path = Path(shown.stdout.split("Figure: ")[1].strip())
    assert path.is_absolute()
    assert path.read_bytes().startswith(b"\x89PNG")
    assert grokscope("show", run_id, "--out", "pictures/run.pdf", cwd=cwd).returncode == 0
    assert (cwd / "pictures" / "run.pdf").read_bytes().startswith(b"%PDF")


def test_ids_in_a_narrow_terminal_are_whole(stored: tuple[Path, str]) -> None:
    cwd, run_id = stored
    shown = subprocess.run(
        [sys.executable, "-m", "grokscope", "runs", "list"],
        cwd=cwd, env=os.environ | {"COLUMNS": "80"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert run_id in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "Memorization" in shown
    assert "…" not in shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("command", [["runs", "list"], ["spectrum"]])
def test_letters_that_a_terminal_does_not_have(stored: tuple[Path, str], encoding: str, command: list[str]) -> None:
    cwd, run_id = stored
    shown = subprocess.run(
        [sys.executable, "-m", "grokscope", *command, *([run_id] if command == ["spectrum"] else [])],
        cwd=cwd, env=os.environ | {"PYTHONIOENCODING": encoding}, capture_output=True, check=False,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert run_id[:8].encode() in shown.stdout


def test_runs_are_found_by_what_was_measured(stored: tuple[Path, str]) -> None:
    cwd, _ = stored
    listed = json.loads(look("runs", "list", "--sort", "test_accuracy", "--json", cwd=cwd).stdout)
    accuracies = [run["final"]["test_accuracy"] for run in listed]
    assert accuracies == sorted(accuracies)
    assert len(accuracies) == 2
    falling = look("runs", "list", "--sort", "-test_accuracy", "--limit", "1", "--json", cwd=cwd).stdout
    assert [run["run_id"] for run in json.loads(falling)] == [listed[1]["run_id"]], "the best run"
    assert "1 of 2 runs in" in look("runs", "list", "--sort", "test_accuracy", "--limit", "1", cwd=cwd).stderr
    best = json.loads(look("runs", "list", "--where", f"test_accuracy>={accuracies[1]}", "--json", cwd=cwd).stdout)
    assert [run["run_id"] for run in best] == [listed[1]["run_id"]]
    for condition, words in {
        "tst_accuracy>0": "did you mean 'test_accuracy'",
        "modulus>5": "did you mean 'task.modulus'",
        "tags=good": "must be a field such as task.corruption, a measured number such as test_accuracy, or phase, "
        "status, engine, tag, name; did you mean 'tag'?",
        "test_accuracy=high": "test_accuracy is a number",
    }.items():
        refused = look("runs", "list", "--where", condition, cwd=cwd, check=False)
        assert (refused.returncode, words in refused.stderr) == (2, True)
    refused = look("runs", "list", "--sweep", "mine", cwd=cwd, check=False)
    assert (refused.returncode, "there is no sweep 'mine'" in refused.stderr) == (2, True)


def test_runs_are_deleted_by_a_condition(tmp_path: Path) -> None:
    kept, gone = str(train(tmp_path)["run_id"]), str(train(tmp_path, "--seed", "1")["run_id"])
    refused = look("runs", "delete", gone, "--where", "training.seed=1", cwd=tmp_path, check=False)
    assert (refused.returncode, "but not both" in refused.stderr) == (2, True)
    assert "No run meets" in look("runs", "delete", "--where", "training.seed=7", cwd=tmp_path).stderr
    assert f"Deleted {gone}" in look("runs", "delete", "--where", "training.seed=1", "--yes", cwd=tmp_path).stderr
    assert [run["run_id"] for run in json.loads(look("runs", "list", "--json", cwd=tmp_path).stdout)] == [kept]


def test_short_names_of_flags_and_the_place_of_the_store(tmp_path: Path) -> None:
    flags = ["--p", "11", "--alpha", "0.4", "--xi", "0.2", "--learning-rate", "0.02", "--wd", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "grokscope", "train", *flags, "--width", "24", "--steps", "5", "--json"],
        cwd=tmp_path, env=os.environ | {"GROKSCOPE_STORE": "elsewhere"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    spec = json.loads(done.stdout)["spec"]
    assert (spec["task"]["modulus"], spec["task"]["data_fraction"], spec["task"]["corruption"]) == (11, 0.4, 0.2)
    assert (spec["optimizer"]["learning_rate"], spec["optimizer"]["weight_decay"]) == (0.02, 3.0)
    assert (tmp_path / "elsewhere" / "index.sqlite").exists()
    assert not (tmp_path / "grokscope-runs").exists()
    assert "Usage: grokscope runs list" in look("runs", "list", "-h", cwd=tmp_path).stdout


def test_runs_delete_asks_first(tmp_path: Path) -> None:
    run_id = str(train(tmp_path)["run_id"])
    refused = grokscope("runs", "delete", run_id, cwd=tmp_path, answer="n\n")
    assert refused.returncode == 2
    assert refused.stderr.endswith("grokscope: nothing was deleted\n")
    silent = grokscope("runs", "delete", run_id, cwd=tmp_path, answer="")
    assert silent.returncode == 2
    assert "--yes deletes without asking" in silent.stderr
    assert len(json.loads(grokscope("runs", "list", "--json", cwd=tmp_path).stdout)) == 1
    assert grokscope("runs", "delete", "", "--yes", cwd=tmp_path).returncode == 2
    twice = grokscope("runs", "delete", run_id, run_id[:8], "--yes", cwd=tmp_path)
    assert twice.returncode == 0
    assert twice.stderr.count("Deleted") == 1
    assert json.loads(grokscope("runs", "list", "--json", cwd=tmp_path).stdout) == []


BAD_TRAINING = {
    "α too large": (["--data-fraction", "1"], ["task.data_fraction = 1.0", "less than 1"]),
    "α too small": (["--data-fraction", "0"], ["task.data_fraction = 0.0", "greater than 0"]),
    "ξ negative": (["--corruption", "-0.1"], ["task.corruption = -0.1", "at least 0 and at most 1"]),
    "ξ too large": (["--corruption", "1.5"], ["task.corruption = 1.5"]),
    "dropout 1": (["--dropout", "1"], ["model.dropout = 1.0", "less than 1"]),
    "BatchNorm of 1": (["--norm", "batch", "--batch-size", "1"], ["training.batch_size = 1", "at least 2"]),
    "modulus 1": (["--modulus", "1"], ["task.modulus = 1", "at least 2"]),
    "division modulo a composite": (["--operation", "divide", "--modulus", "15"], ["task.modulus = 15", "prime"]),
    "large batch": (["--batch-size", "61"], ["training.batch_size = 61", "60"]),
    "misspelt choice": (["--activation", "rleu"], ["model.activation = 'rleu'", "did you mean 'relu'?"]),
    "not a number": (["--steps", "many"], ["training.steps = 'many'", "a whole number at least 1"]),
    "misspelt flag": (["--wieght-decay", "5"], ["--wieght-decay", "--weight-decay"]),
    "half a step": (["--steps", "1.5"], ["training.steps = '1.5'", "a whole number"]),
    "not a fraction": (
        ["--corruption", "high"],
        ["task.corruption = 'high'", "a finite number at least 0 and at most 1"],
    ),
    "operands": (["--corrupted-operands", "1,x"], ["task.corrupted_operands = '1,x'", "list of whole numbers"]),
    "unknown engine": (["--engine", "warp"], ["engine = 'warp'", "auto, native, torch"]),
    "unknown device": (["--device", "abacus"], ["device = 'abacus'", "cpu"]),
    "too large for any memory": (["--width", "100000000000000"], ["model.width", "less than"]),
    "no spec": (["--spec", "nowhere.toml"], ["nowhere.toml"]),
    "misspelt key": (["--spec", "bad.toml"], ["bad.toml", "task.modulo", "did you mean 'modulus'?"]),
    "scaling without batches": (["--scale-with-batch"], ["--batch-size"]),
}


@pytest.mark.parametrize("case", BAD_TRAINING)
def test_bad_input_is_one_line_and_stores_nothing(tmp_path: Path, case: str) -> None:
    arguments, expected = BAD_TRAINING[case]
    (tmp_path / "bad.toml").write_text("[task]\nmodulo = 13\n")
    finished = grokscope("train", *TINY, *arguments, cwd=tmp_path)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert len(finished.stderr.splitlines()) == 1
    for part in expected:
        assert part in finished.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


def test_an_engine_that_cannot_names_one_that_can(tmp_path: Path) -> None:
    refused = grokscope("train", "--task", "parity", "--engine", "native", cwd=tmp_path)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    for part in ("engine = 'native'", "parity of 3 of 12 bits has other examples", "engine 'torch' can"):
        assert part in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", *TINY, "--store", "file"], "cannot open the store file"),
        (["train", *TINY, "--store", "/proc/grokscope"], "cannot open the store /proc/grokscope"),
        (["runs", "list", "--store", "nowhere"], "there is no store at nowhere"),
        (["show", "abc", "--store", "nowhere"], "there is no store at nowhere"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_places_and_commands(tmp_path: Path, arguments: list[str], expected: str) -> None:
    (tmp_path / "file").write_text("in the way")
    finished = grokscope(*arguments, cwd=tmp_path)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert expected in finished.stderr
    assert len(finished.stderr.splitlines()) == 1


def test_unknown_run_lists_the_nearest(stored: tuple[Path, str]) -> None:
    cwd, run_id = stored
    for command in (["show"], ["runs", "show"], ["runs", "export"], ["runs", "delete", "--yes"]):
        finished = grokscope(*command, run_id[:5] + "zz", cwd=cwd)
        assert finished.returncode == 2
        assert f"nearest: {run_id}" in finished.stderr


@pytest.mark.parametrize("out", ["run.xyz", "run"])
def test_unknown_endings(stored: tuple[Path, str], out: str) -> None:
    cwd, run_id = stored
    for command in ("runs export", "show"):
        finished = grokscope(*command.split(), run_id, "--out", out + ".qqq", cwd=cwd)
        assert finished.returncode == 2
        assert len(finished.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "command",
    [[], ["train"], ["show"], ["runs"], *(["runs", name] for name in ("list", "show", "export", "delete")), ["demo"]],
)
def test_help_answers_without_loading_torch(tmp_path: Path, command: list[str]) -> None:
    script = (
        "import sys; from grokscope.cli import app\n"
        f"app({[*command, '--help']}, standalone_mode=False)\n"
        "assert not {'torch', 'matplotlib'} & sys.modules.keys()"
    )
    finished = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "Usage" in finished.stdout


def test_version_and_bare_command(tmp_path: Path) -> None:
    assert grokscope("--version", cwd=tmp_path).stdout.startswith("grokscope 0.")
    assert "Usage" in grokscope(cwd=tmp_path).stdout
    without_command = grokscope("runs", cwd=tmp_path)
    assert "Usage" in without_command.stdout
    assert without_command.stderr == ""

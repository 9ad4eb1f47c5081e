"""The examples, as somebody uses them who writes a class of their own: on the command line, in sweeps, from Python."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.processes import grokscope as in_a_process
from typer.testing import CliRunner

from grokscope import GrokscopeError, Store
from grokscope.cli import app

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ("--modulus", "11", "--width", "24", "--steps", "20")

# What a user types, and what must be in the settings that are stored.
CASES = {
    "task": (
        ["--task", "sparse_parity.py:SparseParity", "--set", "task.bits=6", "--width", "16", "--steps", "20"],
        ("task", "bits", 6),
    ),
    "network": (
        ["--model", "bilinear.py:Bilinear", "--set", "model.width=24", "--modulus", "11", "--steps", "20"],
        ("model", "width", 24),
    ),
    "optimiser": (
        ["--optimizer", "grokfast.py:Grokfast", "--set", "optimizer.amplify=3", *SMALL],
        ("optimizer", "amplify", 3.0),
    ),
    "optimiser of matrices": (["--optimizer", "muon.py:Muon", *SMALL], ("optimizer", "iterations", 5)),
    "label smoothing": (
        ["--regularizer", "regularizers.py:LabelSmoothing", "--set", "regularizer.smoothing=.2", *SMALL],
        ("regularizer", "smoothing", 0.2),
    ),
    "norm penalty": (["--regularizer", "regularizers.py:NormPenalty", *SMALL], ("regularizer", "power", 1.0)),
    "corruption": (["--corruption-kind", "nearby_labels.py:Nearby", *SMALL], ("task", "corruption", 0.35)),
    "measurement": (["--measure", "effective_rank.py:EffectiveRank", *SMALL], ("training", "steps", 20)),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for example in EXAMPLES.glob("*.py"):
        shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: str) -> str:
    """What a command prints, in this process: torch is loaded once for all of them."""
    done = CliRunner().invoke(app, list(arguments))
    if done.exception is not None:
        raise done.exception
    return done.output


def forget_the_code(here: Path) -> None:
    for example in here.glob("*.py"):
        example.unlink()
    for name in [name for name in sys.modules if name.startswith("grokscope_extension_")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", CASES)
def test_a_run_with_your_own_code_is_trained_listed_and_exported(here: Path, name: str) -> None:
    arguments, (section, field, value) = CASES[name]
    command("train", *arguments, "--save-weights")
    (stored,) = Store(here / "grokscope-runs").all()
    assert stored.status == "finished"
    assert getattr(getattr(stored.spec, section), field) == value

    # Once more: it is the same run, from the flags and from the spec that was stored.
    assert "already" in command("train", *arguments)
    command("runs", "export", stored.run_id, "--out", "spec.toml")
    assert "already" in command("train", "--spec", "spec.toml")

    # What only looks at a store needs no code, and imports none.
    forget_the_code(here)
    assert stored.run_id in command("runs", "list", "--json")
    assert "your own code" in command("runs", "show", stored.run_id)
    command("show", stored.run_id)
    for ending in ("csv", "json", "safetensors"):
        command("runs", "export", stored.run_id, "--out", f"run.{ending}")
    if name == "measurement":
        assert "effective_rank" in Path("run.csv").read_text(encoding="utf-8").splitlines()[0]


def test_your_network_is_taken_apart_like_any_other(here: Path) -> None:
    command(
        "train", "--model", "bilinear.py:Bilinear", "--set", "model.width=40", "--modulus", "11", "--steps", "60",
        "--save-weights",
    )  # fmt: skip
    (stored,) = Store(here / "grokscope-runs").all()
    for analysis in ("prune", "spectrum", "logits", "dynamics", "ablate", "audit"):
        command(analysis, stored.run_id)
    with Path("bilinear.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    with pytest.raises(GrokscopeError, match=r"bilinear\.py has changed since"):
        command("prune", stored.run_id)
    Path("bilinear.py").unlink()
    with pytest.raises(GrokscopeError, match=r"there is no file bilinear\.py"):
        command("prune", stored.run_id)


def test_a_sweep_over_your_own_fields_and_kinds(here: Path) -> None:
    (here / "mine.toml").write_text(
        '[base.task]\nmodulus = 11\n[base.training]\nsteps = 20\nmeasurements = ["effective_rank.py:EffectiveRank"]\n'
        '[axes]\n"model.kind" = ["bilinear.py:Bilinear", "mlp"]\n'
        '"optimizer.amplify" = { from = 1, to = 3, count = 2 }\n'
        '[base.optimizer]\nkind = "grokfast.py:Grokfast"\n[base.model]\nwidth = 16\n',
        encoding="utf-8",
    )
    in_a_process("sweep", "mine.toml", "--workers", "2", cwd=here)
    assert Store(here / "grokscope-runs").counts("mine").get("missing", 0) == 0
    forget_the_code(here)
    command("phase-diagram", "mine", "--out", "mine.csv")
    cells = (here / "mine.csv").read_text(encoding="utf-8").splitlines()
    assert len(cells) == 1 + 4
    assert "mine" in command("status")


def test_workers_train_with_the_defaults_of_your_class(here: Path) -> None:
    (here / "gentle.py").write_text(
        "import grokscope as gs\n"
        "class Gentle(gs.Optimizer):\n"
        "    learning_rate: float = 1e-4\n"
        "    weight_decay: float = 2.0\n"
        "    def update(self, weight, gradient, moments, step):\n"
        "        weight.sub_(self.learning_rate * (gradient + self.weight_decay * weight))\n",
        encoding="utf-8",
    )
    (here / "mine.toml").write_text(
        '[axes]\n"task.modulus" = [11, 13]\n[base.model]\nwidth = 8\n[base.training]\nsteps = 5\n'
        '[base.optimizer]\nkind = "gentle.py:Gentle"\n',
        encoding="utf-8",
    )
    in_a_process("sweep", "mine.toml", "--workers", "1", cwd=here)
    store = Store(here / "grokscope-runs")
    assert {run.spec.optimizer.learning_rate for run in store.all()} == {1e-4}
    assert {cell.run_id for cell in store.cells("mine")} == {run.run_id for run in store.all()}


def test_a_sweep_goes_on_with_the_other_cells_when_your_code_fails(here: Path) -> None:
    (here / "mine.py").write_text(
        "import grokscope as gs\n"
        "class Fragile(gs.Measurement):\n"
        "    columns = ('number',)\n"
        "    def measure(self, moment):\n"
        "        if moment.dataset.task.modulus == 13:\n"
        "            raise ValueError('I cannot count to 13')\n"
        "        return {'number': 1.0}\n",
        encoding="utf-8",
    )
    (here / "mine.toml").write_text(
        '[axes]\n"task.modulus" = [11, 13, 17]\n[base.model]\nwidth = 8\n'
        '[base.training]\nsteps = 5\nmeasurements = ["mine.py:Fragile"]\n',
        encoding="utf-8",
    )
    in_a_process("sweep", "mine.toml", cwd=here, check=False)
    store = Store(here / "grokscope-runs")
    (failure,) = store.failures("mine")
    assert failure.spec.task.modulus == 13
    assert failure.error == "ValueError: I cannot count to 13 (mine.py, line 6)"
    assert store.counts("mine")["failed"] == 1
    assert sum(store.counts("mine").values()) == 3


def test_a_cell_that_your_task_refuses_fails_and_the_others_go_on(here: Path) -> None:
    (here / "mine.py").write_text(
        "import numpy as np\nimport grokscope as gs\n"
        "class Rings(gs.Task):\n"
        "    rings: int = 2\n"
        "    def examples(self):\n"
        "        points = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)\n"
        "        return gs.Examples(points, np.arange(40) % max(self.rings, 1), classes=self.rings)\n",
        encoding="utf-8",
    )
    (here / "mine.toml").write_text(
        '[base.task]\nkind = "mine.py:Rings"\n[base.model]\nwidth = 8\n[base.training]\nsteps = 5\n'
        '[axes]\n"task.rings" = [0, 2, 3]\n',
        encoding="utf-8",
    )
    said = in_a_process("sweep", "mine.toml", "--dry-run", cwd=here).stdout
    assert "0 done, 0 failed, 3 to do" in said
    done = in_a_process("sweep", "mine.toml", "--store", "elsewhere", cwd=here, check=False)
    assert done.returncode == 1
    assert "1 runs failed: `grokscope status mine --store elsewhere` says why" in done.stderr
    store = Store(here / "elsewhere")
    (failure,) = store.failures("mine")
    assert failure.spec.task.rings == 0
    assert failure.error.endswith("labels must lie in 0 … -1; these go from 0 to 0 (mine.py, line 7)")
    assert sorted(run.spec.task.rings for run in store.all()) == [2, 3]
    (here / "mine.toml").write_text((here / "mine.toml").read_text().replace("0, 2, 3", '2, "three"'))
    refused = in_a_process("sweep", "mine.toml", "--store", "another", cwd=here, check=False)
    assert "task.rings = 'three' is not allowed" in refused.stderr
    assert not (here / "another").exists()


def test_an_error_in_your_code_is_one_line_with_its_place(here: Path) -> None:
    (here / "mine.py").write_text(
        "import grokscope as gs\nclass Bad(gs.Regularizer):\n"
        "    def penalty(self, weights):\n        return weights['nothing']\n"
        "class Worse(gs.Measurement):\n    columns = ('number',)\n"
        "    def measure(self, moment):\n        return moment.weights['nothing']\n",
        encoding="utf-8",
    )
    for option, name, line in (("--regularizer", "Bad", 4), ("--measure", "Worse", 8)):
        done = in_a_process("train", option, f"mine.py:{name}", *SMALL, cwd=here, check=False)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("grokscope: ")
        assert done.stderr.splitlines()[-1].endswith(f"KeyError: 'nothing' (mine.py, line {line})")
        assert "Traceback" not in done.stderr


def test_a_class_of_a_script_trains_from_python(here: Path) -> None:
    (here / "script.py").write_text(
        "import grokscope as gs\n"
        "from sparse_parity import SparseParity\n"
        "from bilinear import Bilinear\n"
        "parity = gs.run(gs.RunSpec(task=SparseParity(bits=6), model=gs.MLP(width=16), "
        "training=gs.TrainingSpec(steps=5)))\n"
        "print(parity.run_id, parity.spec.task.kind.partition('@')[0])\n"
        "product = gs.run(gs.RunSpec(task=gs.TaskSpec(modulus=11), model=Bilinear(width=8), "
        "training=gs.TrainingSpec(steps=5)))\n"
        "print(product.module()(__import__('torch').tensor([[1, 2]])).shape)\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "sparse_parity.py:SparseParity" in done.stdout
    assert "torch.Size([1, 11])" in done.stdout


def test_a_file_that_is_edited_during_a_sweep_fails_its_runs_and_ends(here: Path) -> None:
    """The workers compare the source before they import it; they must not be started again and again."""
    (here / "script.py").write_text(
        "import pathlib\nimport grokscope as gs\n"
        "specs = [gs.RunSpec(task=gs.TaskSpec(kind='sparse_parity.py:SparseParity', bits=5), model=gs.MLP(width=4), "
        "training=gs.TrainingSpec(steps=2, seed=seed)) for seed in range(3)]\n"
        "with pathlib.Path('sparse_parity.py').open('a') as file:\n    file.write('# edited')\n"
        "from grokscope.sweeps import Failed, Running, run_all\n"
        "events = list(run_all(specs, pathlib.Path('runs'), Running(workers=2)))\n"
        "print(sum(isinstance(event, Failed) for event in events), events[-1].error)\n",
        encoding="utf-8",
    )
    Store(here / "runs", create=True).close()
    done = subprocess.run([sys.executable, "script.py"], cwd=here, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("3 "), done.stderr
    assert "sparse_parity.py has changed since" in done.stdout


def test_a_script_that_defines_its_class_and_sweeps_says_what_to_do(here: Path) -> None:
    (here / "script.py").write_text(
        "import numpy as np\nimport grokscope as gs\n"
        "class Mine(gs.Task):\n    def examples(self):\n"
        "        x = np.indices((4, 4)).reshape(2, -1).T\n"
        "        return gs.Examples(x, x.sum(axis=1) % 4, classes=4)\n"
        "base = gs.RunSpec(task=Mine(), model=gs.MLP(width=4), training=gs.TrainingSpec(steps=2))\n"
        "diagram = gs.sweep({'task.corruption': [0, 0.5]}, base=base, workers=2, name='mine')\n"
        "print([failure.error for failure in gs.Store().failures('mine')][0])\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=here, capture_output=True, text=True, check=False)
    assert "if __name__ ==" in done.stdout, done.stderr


def test_runs_are_found_by_fields_and_kinds_of_your_own(here: Path) -> None:
    for bits in ("5", "6"):
        command(
            "train",
            "--task",
            "sparse_parity.py:SparseParity",
            "--set",
            f"task.bits={bits}",
            "--steps",
            "2",
            *SMALL[2:4],
        )
    command("train", *SMALL[:4], "--steps", "2", "--corruption-kind", "asymmetric")
    forget_the_code(here)
    store = Store(here / "grokscope-runs")
    assert [run.spec.task.bits for run in store.runs(where=["task.bits>5"])] == [6]
    assert len(store.runs(where=["task.kind=sparse_parity.py:SparseParity"])) == 2
    assert len(store.runs(where=["task.kind=modular"])) == 1
    assert len(store.runs(where=["task.corruption_kind=asymmetric"])) == 1
    assert len(store.runs(where=["task.modulus=97"])) == 0  # a task of one's own has no modulus
    with pytest.raises(GrokscopeError, match=r"unknown key task\.bitz"):
        store.runs(where=["task.bitz=5"])

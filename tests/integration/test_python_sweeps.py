"""`gs.sweep`: in this process, in plain scripts without a guard, on standard input, and as a notebook runs code."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.integration.processes import is_running, wait_until

import grokscope as gs
from grokscope.experiments.catalogue import SWEEPS
from grokscope.sweeps.diagram import phase_diagram
from grokscope.sweeps.display import SweepDisplay
from grokscope.sweeps.estimate import estimate_sweep
from grokscope.sweeps.running import Running

AXES = {"task.data_fraction": [0.3, 0.6], "task.corruption": [0, 0.3]}

# No `if __name__ == "__main__"`, on purpose. It says when it is run, so that one run too many is seen.
SCRIPT = """
print("begins", flush=True)
import grokscope as gs
base = gs.RunSpec().updated({{"task.modulus": 11, "model.width": 24, "training.steps": {steps}}})
diagram = gs.sweep({{"task.data_fraction": [0.3, 0.6], "task.corruption": [0, 0.3]}}, base=base, workers=2)
print(sorted(cell.source for cell in diagram.all_cells()))
"""


def run_python(*arguments: str, cwd: Path, code: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], input=code, cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


# ---- what it does ---------------------------------------------------------------------------------------------------


def test_axes_give_the_diagram_of_their_runs(tiny: gs.RunSpec, tmp_path: Path) -> None:
    diagram = gs.sweep(AXES, base=tiny, store=tmp_path, workers=2, progress=False)
    assert (diagram.columns.fields, diagram.rows and diagram.rows.fields) == (
        ("task.data_fraction",), ("task.corruption",),
    )  # fmt: skip
    store = gs.Store(tmp_path)
    for spec in diagram.plan.specs():
        assert repr(store.load(spec.run_id).curve) == repr(gs.run(spec).curve)  # NaN is not equal to itself
    assert phase_diagram(store, diagram.plan.name) == diagram  # the store knows it as a sweep
    before = {run.run_id: run.file for run in store.all()}
    assert gs.sweep(AXES, base=tiny, store=store, progress=False) == diagram  # by the same name, and nothing to do
    assert {run.run_id: run.file for run in store.all()} == before


def test_a_sweep_goes_on_from_a_table_of_cells(tiny: gs.RunSpec, tmp_path: Path) -> None:
    """As on a new machine, where only the table is left."""
    whole = gs.sweep(AXES, base=tiny, name="mine", store=tmp_path / "whole", workers=0, progress=False)
    begun = gs.sweep(AXES, base=tiny, name="mine", store=tmp_path / "begun", workers=0, limit=3, progress=False)
    table = tmp_path / "cells.csv"
    table.write_text(begun.to_csv())
    known = {run.run_id for run in gs.Store(tmp_path / "begun").all()}
    again = gs.sweep(AXES, base=tiny, name="mine", store=tmp_path / "new", workers=0, progress=False, cells=table)
    assert again.to_csv() == whole.to_csv()
    new = {run.run_id for run in gs.Store(tmp_path / "new").all()}
    assert (len(known), len(new), known & new) == (3, 1, set())
    with pytest.raises(gs.GrokscopeError, match=r"cannot read .*none\.csv"):
        gs.sweep(AXES, base=tiny, store=tmp_path / "new", workers=0, progress=False, cells=tmp_path / "none.csv")


def test_a_refined_sweep_goes_on_from_a_table_of_cells(tiny: gs.RunSpec, tmp_path: Path) -> None:
    axes = {"task.data_fraction": [0.2, 0.3, 0.4, 0.5, 0.6], "task.corruption": [0, 0.1, 0.2, 0.3, 0.4]}
    whole = gs.sweep(axes, base=tiny, name="mine", store=tmp_path / "whole", workers=0, refine=True, progress=False)
    table = tmp_path / "cells.csv"
    table.write_text(whole.to_csv())
    cells = table.read_text().splitlines(keepends=True)
    ran = [line for line in cells if ",run," in line]
    assert 2 < len(ran) < 25
    for lines, trained in ((cells, 0), ([line for line in cells if line != ran[1]], 1)):
        table.write_text("".join(lines))
        store = gs.Store(tmp_path / f"lacks {trained}")
        again = gs.sweep(axes, base=tiny, name="mine", store=store, workers=0, refine=True, progress=False, cells=table)
        assert again.to_csv() == whole.to_csv()
        assert len(store.all()) == trained


def test_values_of_numpy_and_fields_that_change_together(tiny: gs.RunSpec, tmp_path: Path) -> None:
    axes: dict[object, list[object]] = {
        "task.corruption": list(np.linspace(0, 0.5, 2)),
        ("model.width", "training.seed"): [(8, 1), (16, 2)],
    }
    diagram = gs.sweep(axes, base=tiny, store=tmp_path, workers=0, progress=False)
    specs = [run.spec for run in gs.Store(tmp_path).all()]
    seen = {(spec.task.corruption, spec.model.width, spec.training.seed) for spec in specs}
    assert seen == {(0.0, 8, 1), (0.5, 8, 1), (0.0, 16, 2), (0.5, 16, 2)}
    assert {cell.source for cell in diagram.all_cells()} == {"run"}


def test_plans_names_and_files(tiny: gs.RunSpec, tmp_path: Path) -> None:
    plan = gs.Plan("mine", tiny, (gs.Axis.over("training.seed", range(3)),))
    assert gs.sweep(plan, store=tmp_path, workers=0, limit=2, progress=False).plan == plan
    assert len(gs.Store(tmp_path).runs()) == 2
    base = "[base.task]\nmodulus = 7\n[base.training]\nsteps = 2\n[base.model]\nwidth = 8\n"
    (tmp_path / "file.toml").write_text(f'{base}[axes]\n"task.corruption" = [0]\n')
    diagram = gs.sweep(tmp_path / "file.toml", store=tmp_path, workers=0, seeds=2, weights=True, progress=False)
    assert (diagram.plan.name, diagram.plan.seed_count) == ("file", 2)
    assert all(run.has_weights for run in gs.Store(tmp_path).runs(where=["task.modulus=7"]))
    paper = gs.sweep(SWEEPS["fig3a"].with_fields({"task.modulus": "7", "model.width": "8",
        "training.steps": "1"}), grid="2x2", name="small", store=tmp_path, workers=0, progress=False)  # fmt: skip
    assert (paper.plan.name, paper.plan.size) == ("small", 16)
    assert gs.sweep("mine", store=tmp_path, workers=0, progress=False).plan.name == "mine"
    assert all(cell.outcome for cell in gs.Store(tmp_path).cells("mine")), "it goes on by its name"


def test_networks_that_were_not_kept_are_trained_again_for_their_weights(tiny: gs.RunSpec, tmp_path: Path) -> None:
    axes = {"training.seed": [0, 1]}
    plan = gs.sweep(axes, base=tiny, store=tmp_path, workers=0, progress=False).plan
    store = gs.Store(tmp_path)
    specs = list(plan.specs())
    kept, without = (estimate_sweep(specs, Running(weights=weights), store) for weights in (True, False))
    assert (kept.done, kept.left, without.done, without.left) == (0, 2, 2, 0)
    gs.sweep(axes, base=tiny, store=tmp_path, workers=0, weights=True, progress=False)
    assert all(run.has_weights for run in store.runs())
    assert estimate_sweep(specs, Running(weights=True), store).left == 0


def test_another_sweep_of_the_same_name_is_announced(
    tiny: gs.RunSpec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for values in ([0, 1], [0, 1], [2]):
        gs.sweep({"training.seed": values}, base=tiny, name="mine", store=tmp_path, workers=0)
    assert capsys.readouterr().err.count("The store has a sweep mine with other settings.") == 1
    assert len(gs.Store(tmp_path).cells("mine")) == 1
    assert len(gs.Store(tmp_path).all()) == 3


def test_bad_input_is_refused_before_anything_is_made(tiny: gs.RunSpec, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    for what, options, message in (
        ("fig3", {}, "there is no sweep 'fig3'"),
        ([1], {}, "a sweep is made of axes, a Plan, a name or a file, not of"),
        ({"task.corruptio": [1]}, {}, "did you mean 'corruption'"),
        ({"task.corruption": "0.3"}, {}, "must be a list of values"),
        ({("model.width", "training.seed"): [(8,)]}, {}, "needs 2 values at every point, not"),
        ({("model.width", "training.seed"): [8, 16]}, {}, "needs 2 values at every point, not 8"),
        ({5: [1]}, {}, "5 is no axis"),
        ({"task.corruption": [2]}, {}, "task.corruption = 2"),
        ({}, {}, "has no axes"),
        (AXES, {"engine": "warp"}, "engine = 'warp' is not allowed"),
        (AXES, {"seeds": 0}, "seeds = 0 is not allowed"),
        (AXES, {"workers": -1}, "workers = -1 is not allowed"),
        (AXES, {"limit": 0}, "limit = 0 is not allowed"),
        ("fig3a", {"base": tiny}, "base goes with axes"),
    ):
        with pytest.raises(gs.GrokscopeError, match=message):
            gs.sweep(what, store=store, **options)  # type: ignore[arg-type]
    assert not store.exists()


def test_runs_are_found_by_their_settings(tiny: gs.RunSpec, tmp_path: Path) -> None:
    gs.sweep(AXES, base=tiny, store=tmp_path, workers=0, progress=False)
    store = gs.Store(tmp_path)
    assert {run.spec.task.data_fraction for run in store.runs(where=["task.corruption>=0.3"])} == {0.3, 0.6}
    assert len(store.runs(where="task.corruption=0")) == 2
    assert len(store.runs(limit=3)) == 3
    with pytest.raises(gs.SpecError, match="did you mean 'corruption'"):
        store.runs(where=["task.corruptio=1"])


def test_an_error_while_it_is_shown_ends_the_workers(
    tiny: gs.RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even while somebody, such as a notebook, holds on to the traceback."""
    monkeypatch.setattr(SweepDisplay, "update", lambda *_: 1 / 0)
    long = tiny.updated({"training.steps": 500_000, "training.measure_every": 1000})
    with pytest.raises(ZeroDivisionError) as caught:
        gs.sweep({"training.seed": [0, 1]}, base=long, store=tmp_path, workers=2)
    assert caught.tb is not None
    assert not multiprocessing.active_children()


# ---- in plain scripts and notebooks ---------------------------------------------------------------------------------


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["begins", "['run', 'run', 'run', 'run']"]
    assert done.stderr.count(" of 4: ") == 4
    assert "\x1b" not in done.stderr  # a log has no control codes
    assert done.stderr.splitlines()[-1].endswith("; none left")


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(steps=30))
    check(run_python("script.py", cwd=tmp_path))


def test_standard_input(tmp_path: Path) -> None:
    check(run_python("-", cwd=tmp_path, code=SCRIPT.format(steps=30)))


def test_code_that_is_executed_as_a_notebook_does(tmp_path: Path) -> None:
    """In a `__main__` that has no file, with output that is no terminal."""
    notebook = (
        "import sys, types\n"
        "sys.modules['__main__'] = main = types.ModuleType('__main__')\n"
        f"exec(compile({SCRIPT.format(steps=30)!r}, '<cell 1>', 'exec'), main.__dict__)\n"
        "assert sys.modules['__main__'] is main\n"
    )
    check(run_python("-c", notebook, cwd=tmp_path))


def test_ctrl_c_in_a_script_checkpoints_and_the_same_script_goes_on(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(steps=40000))
    process = subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    store = tmp_path / "grokscope-runs"
    wait_until(lambda: (store / "index.sqlite").exists() and len(gs.Store(store).running()) == 2, "two runs start")
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert gs.Store(store).running() == set()
    assert list((store / "checkpoints").iterdir())
    again = run_python("script.py", cwd=tmp_path)
    assert again.stdout.splitlines() == ["begins", "['run', 'run', 'run', 'run']"], again.stderr
    for run in gs.Store(store).all():
        assert repr(gs.Store(store).load(run.run_id).curve) == repr(gs.run(run.spec).curve)


def test_workers_end_with_the_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(steps=400000))
    process = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    store = tmp_path / "grokscope-runs"
    wait_until(lambda: (store / "index.sqlite").exists() and len(gs.Store(store).running()) == 2, "two runs start")
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    )
    process.kill()
    process.wait()
    wait_until(lambda: not any(is_running(int(pid)) for pid in listed.stdout.split()), "the workers end")

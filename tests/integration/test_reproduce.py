"""`figure`, `claims` and `reproduce` as a user runs them: real runs of toy networks, real signals."""

import csv
import importlib
import json
import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.integration.processes import grokscope, start, wait_until
from tests.synthetic import synthetic_result

from grokscope import Store, run
from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.claim import Claim
from grokscope.experiments.dense import densely
from grokscope.experiments.evidence import missing_places
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.paper.fig01 import specs
from grokscope.experiments.paper.fig03 import WEIGHT_DECAY
from grokscope.experiments.scale import TINY

TINY_SCALE = ("--scale", "tiny")


def test_figures_are_made_from_nothing_and_reuse_what_is_there(tmp_path: Path) -> None:
    first = grokscope("figure", "fig01", "fig03", "fig06", *TINY_SCALE, cwd=tmp_path)
    assert "Training 4 networks" in first.stderr  # three for curves, one to prune
    out = tmp_path / "grokscope-figures"
    for name in ("fig01", "fig03", "fig06"):
        assert all((out / f"{name}{ending}").stat().st_size > 0 for ending in (".png", ".svg", ".pdf", ".csv", ".txt"))
    caption = (out / "fig01.txt").read_text()
    with (out / "fig01.csv").open() as file:
        rows = list(csv.DictReader(file))
    for spec in map(densely, specs()):
        run_id = TINY.network(spec).run_id
        assert run_id in caption
        curve = Store(tmp_path / "grokscope-runs", create=False).load(run_id).curve
        assert [float(row["test_accuracy"]) for row in rows if row["run_id"] == run_id] == pytest.approx(
            [row.test_accuracy for row in curve], rel=1e-5
        )
    assert "grokscope figure fig01 --scale tiny" in caption
    again = grokscope("figure", "fig01", "fig03", "fig06", *TINY_SCALE, cwd=tmp_path)
    assert "Training" not in again.stderr
    assert " of " not in again.stderr


def test_a_dry_run_makes_nothing(tmp_path: Path) -> None:
    said = grokscope("reproduce", "fig01", "fig03a", "fig12", *TINY_SCALE, "--dry-run", cwd=tmp_path).stdout
    assert "fig3a-tiny" in said
    assert "In all about" in said
    assert not list(tmp_path.iterdir())


def test_a_dry_run_counts_what_diagrams_share_once(tmp_path: Path) -> None:
    """The panel without dropout is the one without weight decay: 3 × 3 cells."""
    said = grokscope("figure", "fig03", *TINY_SCALE, "--dry-run", cwd=tmp_path).stdout
    assert re.search(r"fig3a-tiny +36 runs, 0 in the store, 36 to do", said)
    assert re.search(r"fig3b-tiny +36 runs, 0 in the store, 9 in lines above, 27 to do", said)


def test_failed_cells_of_a_diagram_are_to_do(tmp_path: Path) -> None:
    store = Store(tmp_path / "grokscope-runs")
    for spec in TINY.diagram(WEIGHT_DECAY).specs():
        store.save_failure(spec, "killed", "killed")
    said = grokscope("figure", "fig03a", *TINY_SCALE, "--dry-run", cwd=tmp_path).stdout
    assert re.search(r"fig3a-tiny +36 runs, 0 in the store, 36 to do", said)
    claims = json.loads(grokscope("claims", "--only", "fig03", *TINY_SCALE, "--no-run", "--json", cwd=tmp_path).stdout)
    assert {claim["verdict"] for claim in claims["claims"]} == {"not run"}


def test_a_figure_is_made_once_however_often_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    command = importlib.import_module("grokscope.cli.figure")  # the package has a function of this name
    made: list[tuple[list[str], list[str]]] = []

    def make(chosen: list[Experiment], claims: list[Claim], *_: object, **__: object) -> None:
        made.append(([experiment.name for experiment in chosen], [claim.id for claim in claims]))

    monkeypatch.setattr(command, "_make", make)
    command.figure(["fig1", "fig03a", "fig01"])
    assert made.pop() == (["fig01", "fig03a"], [])
    command.reproduce(["fig03a", "fig3"])
    figures, claims = made.pop()
    assert figures == ["fig03a", "fig03"]
    assert sorted(claims) == sorted(claim.id for claim in EXPERIMENTS["fig03"].claims)
    command.reproduce(["all"])
    command.reproduce(["all", "fig1"])
    assert made[0] == made[1]
    possible = [claim.id for each in EXPERIMENTS.values() if not each.unavailable for claim in each.claims]
    assert set(made[0][1]) == set(possible) <= set(CLAIMS)
    assert made[0][1] == [name for name in CLAIMS if name in set(possible)]


def test_claims_run_what_is_missing_and_answer_in_numbers(tmp_path: Path) -> None:
    arguments = ("claims", "--only", "fig01", *TINY_SCALE)
    before = json.loads(grokscope(*arguments, "--no-run", "--json", cwd=tmp_path).stdout)
    assert before["verdicts"]["not run"] == len(before["claims"]) >= 5
    after = json.loads(grokscope(*arguments, "--json", "--out", "ledger.md", cwd=tmp_path).stdout)
    assert after["verdicts"]["not run"] == 0
    claims = {claim["id"]: claim for claim in after["claims"]}
    store = Store(tmp_path / "grokscope-runs", create=False)
    rows = {spec.optimizer.weight_decay: store.load(TINY.network(spec).run_id).final for spec in specs()}
    test, corrupted = (check["values"] for check in claims["coexistence"]["checks"])
    assert test == [pytest.approx(rows[0].test_accuracy)]
    assert corrupted == [pytest.approx(rows[0].corrupted_accuracy)]
    # A toy of 23 numbers only memorises without weight decay, and the ledger says that the claim fails for it.
    assert claims["coexistence"]["verdict"] == ("holds" if rows[0].test_accuracy >= 0.9 <= corrupted[0] else "fails")
    page = (tmp_path / "ledger.md").read_text()
    assert all(name in page for name in claims)


def test_claims_are_chosen_by_the_names_that_figures_have(tmp_path: Path) -> None:
    def chosen(only: str) -> list[str]:
        said = grokscope("claims", "--only", only, *TINY_SCALE, "--no-run", "--json", cwd=tmp_path).stdout
        return [claim["id"] for claim in json.loads(said)["claims"]]

    figure_1 = [claim.id for claim in EXPERIMENTS["fig01"].claims]
    assert chosen("fig1") == chosen("fig01") == figure_1
    assert chosen(" two-peaks, fig1") == ["two-peaks", *figure_1]
    assert not list(tmp_path.iterdir())  # nothing is run, so there is nothing to store


def test_the_list_of_figures_names_all_claims(tmp_path: Path) -> None:
    words = grokscope("figures", "list", cwd=tmp_path).stdout.replace(",", " ").split()
    assert {*EXPERIMENTS, *CLAIMS} <= set(words)


def test_claims_of_the_theory_hold_without_a_run(tmp_path: Path) -> None:
    only = "corrections-vanish,gradient-formula,frequencies-suffice"
    said = json.loads(grokscope("claims", "--only", only, *TINY_SCALE, "--json", cwd=tmp_path).stdout)
    assert (said["verdicts"]["holds"], said["verdicts"]["holds as corrected"]) == (1, 2), said


def refined_paper_diagram(path: Path) -> Store:
    """Figure 3(a) as `--scale paper --refine` leaves it where every network memorises: a coarse grid of it."""
    store = Store(path, create=True)
    specs = list(WEIGHT_DECAY.specs())
    made_up = synthetic_result(TINY.network(specs[0]))
    while places := missing_places(store, WEIGHT_DECAY):
        for place in places:
            store.save(replace(made_up, spec=specs[place]))
    store.record_sweep(WEIGHT_DECAY.name, WEIGHT_DECAY.to_dict(), [spec.run_id for spec in specs], refined=True)
    return store


def test_the_best_of_a_refined_diagram_is_what_is_there(tmp_path: Path) -> None:
    store = refined_paper_diagram(tmp_path / "grokscope-runs")
    runs = len(store.all())
    assert 0 < runs < 400
    for options in (("--scale", "best"), ("--scale", "paper", "--refine")):
        said = grokscope("figure", "fig03a", *options, "--dry-run", cwd=tmp_path).stdout
        assert re.search(rf"fig3a +1292 runs, {runs} in the store, {1292 - runs} inferred, 0 to do", said)
        assert "fewer" not in said
    grokscope("figure", "fig03a", "--scale", "best", cwd=tmp_path)
    assert len(store.all()) == runs
    assert [sweep.refined for sweep in store.sweeps()] == [True]
    caption = (tmp_path / "grokscope-figures" / "fig03a.txt").read_text()
    assert "Made with: grokscope figure fig03a --scale paper --refine\n" in caption


def test_a_figure_of_all_cells_leaves_a_refined_diagram_one_that_infers(tmp_path: Path) -> None:
    """If it is interrupted, `phase-diagram` shows what it showed before and not fewer cells."""
    store, plan = Store(tmp_path / "grokscope-runs"), TINY.diagram(WEIGHT_DECAY)
    store.record_sweep(plan.name, plan.to_dict(), [spec.run_id for spec in plan.specs()], refined=True)
    grokscope("figure", "fig03a", *TINY_SCALE, cwd=tmp_path)
    assert len(store.all()) == plan.size
    assert [sweep.refined for sweep in store.sweeps()] == [True]


def test_a_sweep_of_other_settings_does_not_lose_its_name_silently(tmp_path: Path) -> None:
    store, plan = Store(tmp_path / "grokscope-runs"), TINY.diagram(WEIGHT_DECAY)
    other = plan.with_fields({"optimizer.weight_decay": "5"})
    store.record_sweep(plan.name, other.to_dict(), [spec.run_id for spec in other.specs()], refined=False)
    said = grokscope("figure", "fig03a", *TINY_SCALE, cwd=tmp_path).stderr
    assert "The store has a sweep fig3a-tiny with other settings" in said
    assert len(store.cells(plan.name)) == plan.size
    assert "other settings" not in grokscope("figure", "fig03a", *TINY_SCALE, cwd=tmp_path).stderr


def test_a_dry_run_with_refine_says_that_it_is_at_most(tmp_path: Path) -> None:
    store = refined_paper_diagram(tmp_path / "grokscope-runs")
    spec = next(WEIGHT_DECAY.specs())  # a corner: nothing around it says what it is
    store.delete(spec.run_id)
    said = grokscope("figure", "fig03a", "--scale", "paper", "--refine", "--dry-run", cwd=tmp_path).stdout
    assert f"{1292 - len(store.all())} to do" in said
    assert "With --refine it will be fewer runs" in said


def in_every_process(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python imports this before anything else, in workers as well. It finds what trains as `RunGroup`."""
    (tmp_path / "first").mkdir()
    names = "import grokscope.sweeps.worker as worker\n\nRunGroup = worker.RunGroup\n"
    patch = f"{names}{code}\nworker.RunGroup = changed\n"
    (tmp_path / "first" / "sitecustomize.py").write_text(patch)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'first'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


_FAILING = """
def changed(jobs, **options):
    if jobs[0].spec.optimizer.weight_decay == 15:
        raise RuntimeError("no such luck")
    return RunGroup(jobs, **options)
"""


def test_a_figure_whose_runs_failed_is_named_and_the_others_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_every_process(_FAILING, tmp_path, monkeypatch)  # one of Figure 1's networks cannot be trained
    done = grokscope("figure", "fig01", "analytic", *TINY_SCALE, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "no such luck" in done.stderr
    assert "not drawn: fig01, because 1 of its runs failed: `grokscope status` says why" in done.stderr
    assert (tmp_path / "grokscope-figures" / "analytic.png").exists()
    assert not (tmp_path / "grokscope-figures" / "fig01.png").exists()
    checked = grokscope("claims", "--only", "full-inversion", *TINY_SCALE, cwd=tmp_path, check=False)
    assert checked.returncode == 1
    assert checked.stderr.splitlines()[-1].startswith("grokscope: 1 runs failed: `grokscope status` says why")
    assert grokscope("claims", "--only", "full-inversion", "--no-run", *TINY_SCALE, cwd=tmp_path).returncode == 0


def test_a_network_that_diverged_costs_its_own_figure_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "grokscope-runs")
    for spec in map(TINY.network, [*specs(), *map(densely, specs())]):
        diverged = spec.optimizer.weight_decay == 15
        result = synthetic_result(spec)
        store.save(
            replace(result, status="diverged", diverged_step=3, phase=None, weights=None) if diverged else result,
            weights=True,
        )
    done = grokscope("reproduce", "fig01", "analytic", *TINY_SCALE, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert re.search(r"not drawn: fig01, because run \w+ diverged at step 3", done.stderr)
    assert "Traceback" not in done.stderr
    out = tmp_path / "grokscope-figures"
    assert not (out / "fig01.png").exists()
    assert (out / "analytic.png").exists()
    verdicts = {claim["id"]: claim["verdict"] for claim in json.loads((out / "claims.json").read_text())["claims"]}
    assert verdicts["full-inversion"] == "inconclusive"
    assert "corrections-vanish" in verdicts


_SLOW = """
import time
from dataclasses import replace

def changed(jobs, **options):
    def slowly(job):
        def measured(*arguments):
            time.sleep(0.5)
            job.on_measurement(*arguments)

        return replace(job, on_measurement=measured)

    return RunGroup([slowly(job) for job in jobs], **options)
"""


def test_an_interrupted_figure_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (spec,) = map(TINY.network, EXPERIMENTS["fig06"].needs(TINY).networks)
    path = tmp_path / "grokscope-runs"
    with monkeypatch.context() as slowly:
        in_every_process(_SLOW, tmp_path, slowly)  # so that the network is under way when the signal comes
        process = start("figure", "fig06", *TINY_SCALE, cwd=tmp_path)
    wait_until(lambda: (path / "index.sqlite").exists() and bool(Store(path).running()), "a network is trained")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "The same command goes on" in said
    store = Store(path)
    assert not store.running()
    checkpoint = store.load_checkpoint(spec)
    assert checkpoint is not None
    assert 0 < checkpoint.state.step < spec.training.steps
    grokscope("figure", "fig06", *TINY_SCALE, cwd=tmp_path)
    assert (tmp_path / "grokscope-figures" / "fig06.png").exists()
    found, in_peace = store.load(spec.run_id), run(spec)
    assert found.curve == in_peace.curve
    weights = found.trained_weights()
    assert all(np.array_equal(weights[name], array) for name, array in in_peace.trained_weights().items())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("figure", "fig99"), "there is no figure 'fig99'"),
        (("figure", "beyond-modules"), "did you mean 'beyond-modulus'"),
        (("figure", "fig16"), "fig16 cannot be made"),
        (("figure", "fig01", "--scale", "full"), "must be one of tiny, quick, mixed, paper, best"),
        (("figure", "fig01", "--grid", "9"), "must be two numbers"),
        (("figure", "fig01", "--workers", "0"), "--workers"),
        (("figure", "fig01", "--engine", "magic"), "magic"),
        (("claims", "--only", "coexistence,nothing"), "there is no claim or figure 'nothing'"),
        (("claims", "--only", "coexistense"), "did you mean 'coexistence'"),
        (("claims", "--out", "ledger.txt"), "must end in .md or .json"),
        (("claims", "--json", "--dry-run"), "leave out --json, or --dry-run"),
        (("reproduce", "fig99"), "there is no figure"),
        (("reproduce", "all", "fig99"), "there is no figure"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = grokscope(*arguments, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    done = grokscope("figure", "fig01", *TINY_SCALE, "--out", "locked/figures", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert not (tmp_path / "grokscope-runs").exists()


@pytest.mark.skipif(not Path("/proc").exists(), reason="a directory that is there and takes no files, even from root")
def test_a_directory_that_takes_no_files_is_refused_before_training(tmp_path: Path) -> None:
    done = grokscope("figure", "fig01", *TINY_SCALE, "--out", "/proc", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "cannot write /proc/fig01.png" in done.stderr
    assert not (tmp_path / "grokscope-runs").exists()


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("claims", "--only", "fig01", "--out", "out/ledger.md"), "out/ledger.md"),
        (("figure", "fig01", "--out", "out"), "out/fig01.txt"),
        (("reproduce", "fig01", "--out", "out"), "out/claims.json"),
    ],
)
def test_a_file_that_is_a_directory_is_refused_before_training(
    arguments: tuple[str, ...], path: str, tmp_path: Path
) -> None:
    (tmp_path / path).mkdir(parents=True)
    done = grokscope(*arguments, *TINY_SCALE, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert f"cannot write {path}: it is a directory" in done.stderr
    assert not (tmp_path / "grokscope-runs").exists()


def test_a_sweep_that_wants_weights_trains_again_what_was_stored_without(tmp_path: Path) -> None:
    arguments = ("sweep", "fig3a", "--grid", "2x2", "--set", "task.modulus=11", "--set", "model.width=24",
                 "--set", "training.steps=20", "--set", "optimizer.weight_decay=0")  # fmt: skip
    grokscope(*arguments, cwd=tmp_path)
    store = Store(tmp_path / "grokscope-runs")
    assert not any(run.has_weights for run in store.all())
    grokscope(*arguments, "--save-weights", cwd=tmp_path)
    assert len(store.all()) == 4
    assert all(run.has_weights for run in store.all())

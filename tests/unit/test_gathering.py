"""Which runs figures and claims ask for, at which scale, and how doing them can be stopped."""

import os
import signal
from pathlib import Path
from typing import Self

import pytest
from tests.synthetic import fill

from grokscope.cli.running import running_from
from grokscope.errors import GrokscopeError
from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.gathering import StoppedError, gather, jobs, plan_work
from grokscope.experiments.scale import PAPER, QUICK, TINY, Amount
from grokscope.store import Store
from grokscope.sweeps import Running
from grokscope.sweeps.bars import RunsProgress
from grokscope.sweeps.plan import parse_grid


def test_every_figure_and_claim_has_the_best_scale_that_is_complete_for_it(tmp_path: Path) -> None:
    """Theory needs no runs, so the paper's scale is complete without a store."""
    figures = [EXPERIMENTS[name] for name in ("fig01", "analytic")]
    claims = [CLAIMS[name] for name in ("corrections-vanish", "coexistence")]
    work = plan_work(figures, claims, Amount("best"), Running(), Store(tmp_path, create=True).path)
    assert [(experiment.name, scale) for experiment, scale in work.figures] == [("fig01", QUICK), ("analytic", PAPER)]
    assert [(claim.id, scale) for claim, scale in work.claims] == [
        ("corrections-vanish", PAPER),
        ("coexistence", QUICK),
    ]
    wanted = [*figures[0].needs(QUICK).specs(QUICK), *claims[1].needs(QUICK).specs(QUICK)]
    assert {spec.run_id for spec in work.specs} == {spec.run_id for spec in wanted}


def test_what_is_in_the_store_is_not_to_do(tmp_path: Path) -> None:
    experiment = EXPERIMENTS["fig01"]
    work = plan_work([experiment], [], Amount("tiny"), Running(), tmp_path)
    (before,) = jobs(work)
    assert (before.runs, before.done, before.to_do, before.diagram) == (3, 0, 3, False)
    fill(tmp_path, experiment.needs(TINY), TINY)
    (after,) = jobs(work)
    assert (after.done, after.to_do, after.seconds, after.size) == (3, 0, 0, 0)


def test_work_that_is_asked_to_stop_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = plan_work([EXPERIMENTS["fig06"]], [], Amount("tiny"), Running(workers=0), tmp_path)

    class ImpatientProgress(RunsProgress):
        def __enter__(self) -> Self:
            os.kill(os.getpid(), signal.SIGINT)  # somebody presses Ctrl-C when the first bar appears
            return super().__enter__()

    monkeypatch.setattr("grokscope.sweeps.bars.RunsProgress", ImpatientProgress)
    with pytest.raises(StoppedError, match="nothing is lost"):
        gather(work)
    assert not Store(tmp_path).all()


@pytest.mark.parametrize("workers", ["0", "-1", "many", "1.5"])
def test_a_number_of_workers_is_one_or_more(workers: str) -> None:
    with (
        pytest.raises(GrokscopeError, match="must be auto or a number of at least 1"),
        running_from(workers, "auto", "cpu", None, None, ""),
    ):
        pass


@pytest.mark.parametrize(("text", "grid"), [("5x7", (5, 7)), ("5X7", (5, 7)), ("5×7", (5, 7)), ("1x1", (1, 1))])
def test_a_grid_is_two_numbers(text: str, grid: tuple[int, int]) -> None:
    assert parse_grid(text) == grid


def test_a_grid_may_have_a_least_number() -> None:
    with pytest.raises(GrokscopeError, match="above 1"):
        parse_grid("1x5", least=2)

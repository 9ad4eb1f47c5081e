"""Sweeps on workers that nothing happens to."""

from pathlib import Path

import pytest
from tests.cluster.dask_processes import DaskProcesses, check_stored_once, do_all

from grokscope import RunSpec, Store
from grokscope.cluster import dask_executor
from grokscope.sweeps import Measured, Running


def test_runs_on_a_cluster_are_those_of_one_process(
    whole: DaskProcesses, short: list[RunSpec], longer: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 0.2)  # so that runs are done in several pieces
    monkeypatch.setattr(dask_executor, "CHECKPOINTS_A_SECOND", 100.0)
    specs = [*short[:12], *longer[:3]]
    with whole.cluster() as cluster:
        seen = do_all(specs, tmp_path / "store", Running(cluster=cluster))
    assert [event for event in seen if isinstance(event, Measured)]
    check_stored_once(specs, tmp_path / "store", tmp_path)


def test_weights_come_back_too(whole: DaskProcesses, tiny: RunSpec, tmp_path: Path) -> None:
    with whole.cluster() as cluster:
        do_all([tiny], tmp_path / "store", Running(cluster=cluster, weights=True))
    weights = Store(tmp_path / "store").load(tiny.run_id).trained_weights()
    assert weights["U"].shape == (24, 11)

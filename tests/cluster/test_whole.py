"""Sweeps on workers that nothing happens to."""

import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tests.cluster.dask_processes import DaskProcesses, certificates, check_stored_once, do_all
from tests.integration.processes import grokscope, here

import grokscope as gs
from grokscope import ClusterError, RunSpec, Store
from grokscope.cluster import ClusterRequest, DaskCluster, dask_executor
from grokscope.sweeps import Failed, Measured, Running, run_all


def test_runs_on_a_cluster_are_those_of_one_process(
    whole: DaskProcesses,
    short: list[RunSpec],
    longer: list[RunSpec],
    tmp_path: Path,
    serial: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 0.2)  # so that runs are done in several pieces
    monkeypatch.setattr(dask_executor, "CHECKPOINTS_A_SECOND", 100.0)
    specs = [*short[:12], *longer[:3]]
    with whole.cluster() as cluster:
        seen = do_all(specs, tmp_path / "store", Running(cluster=cluster))
    assert [event for event in seen if isinstance(event, Measured)]
    check_stored_once(specs, tmp_path / "store", serial)


def test_there_are_news_of_a_run_before_it_answers(
    whole: DaskProcesses, longer: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 5.0)
    spec = longer[0].updated({"training.steps": 60_000})
    with whole.cluster() as cluster, closing(run_all([spec], tmp_path / "s", Running(cluster=cluster))) as events:
        news = next(event for event in events if isinstance(event, Measured))
        assert not Store(tmp_path / "s").checkpoints()
    assert 0 < news.measurement.step < 60_000


def test_runs_on_a_cluster_are_tracked_here(
    whole: DaskProcesses, longer: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several pieces, and every step once."""
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 0.2)
    with whole.cluster() as cluster:
        do_all(longer[:2], tmp_path / "store", Running(cluster=cluster, track=tmp_path / "events"))
    for spec in longer[:2]:
        (file,) = (tmp_path / "events" / spec.run_id).iterdir()
        steps = [event.step for event in EventFileLoader(str(file)).Load() if event.step]
        assert steps == [row.step for row in Store(tmp_path / "store").load(spec.run_id).curve]


def test_weights_come_back_too(whole: DaskProcesses, tiny: RunSpec, tmp_path: Path) -> None:
    with whole.cluster() as cluster:
        do_all([tiny], tmp_path / "store", Running(cluster=cluster, weights=True))
    weights = Store(tmp_path / "store").load(tiny.run_id).trained_weights()
    assert weights["U"].shape == (24, 11)


def test_snapshots_come_back_in_pieces(
    whole: DaskProcesses, longer: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 0.2)
    monkeypatch.setattr(dask_executor, "CHECKPOINTS_A_SECOND", 100.0)
    spec = longer[0]
    with whole.cluster() as cluster:
        do_all([spec], tmp_path / "store", Running(cluster=cluster))
        do_all([spec], tmp_path / "store", Running(cluster=cluster, snapshots=7))  # trained again, for these
    result, expected = Store(tmp_path / "store").load(spec.run_id), gs.run(spec, snapshots=7)
    assert result.curve == expected.curve
    assert list(result.snapshots) == list(expected.snapshots)
    for step, weights in expected.snapshots.items():
        for name, array in weights.items():
            np.testing.assert_array_equal(result.snapshots[step][name], array)


def test_your_own_code_that_fails_is_a_failed_run(
    whole: DaskProcesses, tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.py").write_text(
        "import grokscope as gs\n\n\nclass Bad(gs.Measurement):\n    columns = ('x',)\n\n"
        "    def measure(self, moment):\n        raise ValueError('no such luck')\n"
    )
    spec = tiny.updated({"training.measurements": ["bad.py:Bad"]})
    with whole.cluster() as cluster:
        list(run_all([spec], tmp_path / "store", Running(cluster=cluster)))
    (failure,) = Store(tmp_path / "store").failures()
    assert failure.error == "ValueError: no such luck (bad.py, line 8)"
    assert "Traceback" in failure.traceback


def test_workers_with_a_gpu_take_stacks_and_the_others_single_runs(
    scheduler: DaskProcesses, short: list[RunSpec], tmp_path: Path, serial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "GPU", "cpu")  # there is none here: the stacked engine computes on the CPU
    scheduler.add_worker()
    scheduler.add_worker("--resources", "GPU=1")
    with scheduler.cluster() as cluster:
        cluster.connect()
        while len(cluster.workers) < 2:
            cluster.look()
            time.sleep(0.1)
        assert Running(cluster=cluster).processes == 2
        assert Running(cluster=cluster, device="cuda").processes == 1  # the others have none
        do_all(short, tmp_path / "store", Running(cluster=cluster))
    engines = Counter(run.engine for run in Store(tmp_path / "store").all())
    assert sum(engines.values()) == len(short)
    assert engines["stacked"] > 1
    assert set(engines) <= {"stacked", "native"}
    do_all(short, serial, Running(workers=0))
    for run in Store(tmp_path / "store").all():
        alone = Store(serial).resolve(run.run_id)
        assert run.phase is alone.phase
        assert run.final is not None
        assert alone.final is not None
        assert run.final["test_loss"] == pytest.approx(alone.final["test_loss"], rel=1e-3)


@pytest.mark.verify
def test_all_that_a_gpu_had_can_be_done_without_it(
    scheduler: DaskProcesses, longer: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "GPU", "cpu")
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 0.3)
    gpu = scheduler.add_worker("--resources", "GPU=1")
    with scheduler.cluster() as cluster:
        for event in run_all(longer[:2], tmp_path / "store", Running(cluster=cluster)):
            assert not isinstance(event, Failed)
            if isinstance(event, Measured) and gpu.poll() is None:
                gpu.kill()
                gpu.wait()
                scheduler.add_worker()
    assert {run.engine for run in Store(tmp_path / "store").all()} == {"native"}


def test_python_and_the_command_line_take_the_same_cluster(whole: DaskProcesses, tmp_path: Path) -> None:
    diagram = gs.sweep(
        {"task.corruption": [0, 0.3]},
        base=RunSpec().updated({"task.modulus": 7, "model.width": 8, "training.steps": 2}),
        store=tmp_path / "store",
        cluster=whole.address,
        progress=False,
    )
    assert [cell.outcome for cell in diagram.all_cells()] == ["confusion", "confusion"]
    scale = ("--scale", "tiny", "--store", "runs", "--cluster", whole.address)
    drawn = here(("figure", "fig01", *scale, "--out", "pictures"), tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "pictures" / "fig01.png").exists()
    findings = gs.claims("fig01", scale="tiny", store=tmp_path / "runs", cluster=whole.address)
    assert len(findings)
    said = grokscope("sweep", "fig3a", "--grid", "1x1", "--dry-run", "--cluster", whole.address, cwd=tmp_path).stdout
    assert "with 2 workers of the cluster" in said


def test_a_connection_with_certificates(tmp_path: Path, tiny: RunSpec) -> None:
    config = tmp_path / "cluster.toml"
    config.write_text(certificates(tmp_path))
    ca, cert, key = (f"{tmp_path}/{name}.pem" for name in ("ca", "cert", "key"))
    options = ("--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key)
    dask = DaskProcesses(tmp_path / "dask", protocol="tls", options=options)
    try:
        dask.start(1)
        with DaskCluster(ClusterRequest.parse(dask.address, config)) as cluster:
            do_all([tiny], tmp_path / "store", Running(cluster=cluster))
        with (
            DaskCluster(ClusterRequest.parse(dask.address)) as cluster,
            pytest.raises(ClusterError, match=r"cannot connect to .*\[tls\]"),
        ):
            list(run_all([tiny], tmp_path / "other", Running(cluster=cluster)))
    finally:
        dask.close()

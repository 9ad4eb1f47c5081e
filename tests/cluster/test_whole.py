"""Sweeps on workers that nothing happens to."""

import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from distributed import Security
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tests.cluster.dask_processes import DaskProcesses, check_stored_once, do_all
from tests.integration.processes import grokscope

import grokscope as gs
from grokscope import ClusterError, RunSpec, Store, TrainingSpec
from grokscope.cluster import ClusterRequest, DaskCluster, dask_executor
from grokscope.cluster.start import queue_cluster
from grokscope.sweeps import Failed, Measured, Running, run_all


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


def test_your_own_module_travels(whole: DaskProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have another working directory; the file, and one beside it that it imports, come with the runs."""
    monkeypatch.chdir(tmp_path)
    Path("moments.py").write_text("def second(values):\n    return float((values**2).mean())\n")
    Path("mine.py").write_text(
        "import grokscope as gs\nfrom moments import second\n\n\n"
        "class Second(gs.Measurement):\n    columns = ('second',)\n\n"
        "    def measure(self, moment):\n        return {'second': second(moment.weights['U'])}\n"
    )
    spec = RunSpec(training=TrainingSpec(steps=3, measurements=("mine.py:Second",)))
    spec = spec.updated({"task.modulus": 11, "model.width": 8})
    with whole.cluster() as cluster:
        do_all([spec], tmp_path / "store", Running(cluster=cluster))
    check_stored_once([spec], tmp_path / "store", tmp_path)
    stored = Store(tmp_path / "store").resolve(spec.run_id)
    assert stored.spec.training.measurements == spec.training.measurements
    assert stored.final is not None
    assert stored.final["second"] is not None


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
    dask: DaskProcesses, short: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "GPU", "cpu")  # there is none here: the stacked engine computes on the CPU
    dask.start(1)
    dask.add_worker("--resources", "GPU=1")
    with dask.cluster() as cluster:
        cluster.connect()
        while len(cluster.workers) < 2:
            cluster.look()
            time.sleep(0.1)
        do_all(short, tmp_path / "store", Running(cluster=cluster))
    engines = Counter(run.engine for run in Store(tmp_path / "store").all())
    assert sum(engines.values()) == len(short)
    assert engines["stacked"] > 1
    assert set(engines) <= {"stacked", "native"}


def test_all_that_a_gpu_had_can_be_done_without_it(
    dask: DaskProcesses, longer: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "GPU", "cpu")
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 0.3)
    dask.start(0)
    gpu = dask.add_worker("--resources", "GPU=1")
    with dask.cluster() as cluster:
        for event in run_all(longer[:2], tmp_path / "store", Running(cluster=cluster)):
            assert not isinstance(event, Failed)
            if isinstance(event, Measured) and gpu.poll() is None:
                gpu.kill()
                gpu.wait()
                dask.add_worker()
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
    grokscope("figure", "fig01", *scale, "--out", "pictures", cwd=tmp_path)
    assert (tmp_path / "pictures" / "fig01.png").exists()
    findings = gs.claims("fig01", scale="tiny", store=tmp_path / "runs", cluster=whole.address)
    assert len(findings)
    said = grokscope("sweep", "fig3a", "--grid", "1x1", "--dry-run", "--cluster", whole.address, cwd=tmp_path).stdout
    assert "with 2 workers of the cluster" in said


def test_a_connection_with_certificates(tmp_path: Path, tiny: RunSpec) -> None:
    made = Security.temporary()
    files = {}
    for name, content in (
        ("ca", made.tls_ca_file), ("cert", made.tls_client_cert), ("key", made.tls_client_key)
    ):  # fmt: skip
        files[name] = tmp_path / f"{name}.pem"
        files[name].write_text(content)
    options = ("--tls-ca-file", str(files["ca"]), "--tls-cert", str(files["cert"]), "--tls-key", str(files["key"]))
    dask = DaskProcesses(tmp_path / "dask", protocol="tls", options=options)
    config = tmp_path / "cluster.toml"
    config.write_text("[tls]\n" + "".join(f'{name} = "{file}"\n' for name, file in files.items()))
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


@pytest.mark.parametrize(
    ("queue", "expected"), [("slurm", "#SBATCH"), ("pbs", "#PBS"), ("lsf", "#BSUB"), ("sge", "#$")]
)
def test_the_job_of_a_queue(tmp_path: Path, queue: str, expected: str) -> None:
    config = tmp_path / "cluster.toml"
    config.write_text(
        f'jobs = 5\n[{queue}]\ncores = 4\nprocesses = 4\nmemory = "8GB"\nqueue = "long"\nwalltime = "02:00:00"\n'
    )
    request = ClusterRequest.parse(queue, config)
    assert request.workers == 20
    with closing(queue_cluster(request)) as cluster:
        script = cluster.job_script()
    assert expected in script
    assert "long" in script
    assert "--nworkers 4" in script
    assert "--nthreads 1" in script

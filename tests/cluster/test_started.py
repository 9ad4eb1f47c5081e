"""Clusters that grokscope starts itself: on this machine, as jobs of a queue, by SSH."""

import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from distributed import Client, Security
from tests.cluster.dask_processes import certificates, check_stored_once, do_all
from tests.cluster.ssh_server import ssh_server
from tests.integration.processes import is_running, wait_until

from grokscope import ClusterError, RunSpec
from grokscope.cluster import ClusterRequest, cluster_at, queues, ssh
from grokscope.cluster.queues import queue_cluster
from grokscope.sweeps import Finished, Running, run_all


def test_a_cluster_of_this_machine_is_closed_to_others(tiny: RunSpec, tmp_path: Path, serial: Path) -> None:
    with cluster_at("local:1") as cluster:
        do_all([tiny], tmp_path / "store", Running(cluster=cluster))
        assert cluster is not None
        (worker,) = cluster.workers
        scheduler = cluster.client.scheduler.address
        for address in (scheduler, worker):
            assert address.startswith("tls://127.0.0.1:")
            with pytest.raises(OSError, match="certificate"):
                Client(address, security=Security.temporary(), timeout=2, set_as_default=False)
        with pytest.raises(OSError, match=r"closed|reset|Timed out"):
            Client(scheduler.replace("tls", "tcp"), timeout=2, set_as_default=False)
    check_stored_once([tiny], tmp_path / "store", serial)


# ---- queues -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "expected"), [("slurm", "#SBATCH"), ("pbs", "#PBS"), ("lsf", "#BSUB"), ("sge", "#$")]
)
def test_the_job_of_a_queue(tmp_path: Path, queue: str, expected: str) -> None:
    config = tmp_path / "cluster.toml"
    config.write_text(
        f'jobs = 5\n[{queue}]\ncores = 4\nprocesses = 4\nmemory = "8GB"\nqueue = "long"\nwalltime = "02:00:00"\n'
        'job_script_prologue = ["module load python"]\n' + certificates(tmp_path)
    )
    request = ClusterRequest.parse(queue, config)
    assert request.workers == 20
    with closing(queue_cluster(request)) as cluster:
        script = cluster.job_script()
        assert cluster.scheduler_address.startswith("tls://")
    assert expected in script
    assert "long" in script
    assert "--nworkers 4" in script
    assert "--nthreads 1" in script
    assert f"--tls-key {tmp_path}/key.pem" in script
    assert "export DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False\n" in script
    assert "module load python\n" in script


SBATCH = """#!/bin/sh
cp "$1" "$0.$$"
setsid sh "$0.$$" >/dev/null 2>&1 &
echo $! >> "$0.jobs"
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
kill -9 -- "-$1"
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The two commands of SLURM that are used, for one machine: a job is a process group. Where its jobs are listed."""
    for name, content in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    jobs = tmp_path / "sbatch.jobs"
    yield jobs
    for job in jobs.read_text().split() if jobs.exists() else ():
        subprocess.run([tmp_path / "scancel", job], capture_output=True, check=False)


def test_jobs_that_end_are_submitted_again(
    slurm: Path, tiny: RunSpec, tmp_path: Path, serial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With certificates that are made for the sweep."""
    monkeypatch.setattr(queues, "GONE_SECONDS", 1.0)
    config = tmp_path / "cluster.toml"
    config.write_text(
        '[slurm]\ncores = 2\nprocesses = 2\nmemory = "2GB"\ninterface = "lo"\nsecurity = true\n'
        f'shared_temp_directory = "{tmp_path}"\n'
    )
    specs = [tiny.updated({"training.seed": seed}) for seed in range(8)]
    killed = False
    with (
        cluster_at("slurm", config) as cluster,
        closing(run_all(specs, tmp_path / "store", Running(cluster=cluster))) as events,
    ):
        for event in events:
            if isinstance(event, Finished) and not killed:
                killed = True
                assert cluster is not None
                assert all(address.startswith("tls://127.0.0.1:") for address in cluster.workers)
                os.killpg(int(slurm.read_text()), signal.SIGKILL)  # its wall time is over
    assert killed
    first, second = slurm.read_text().split()
    assert first != second
    wait_until(lambda: not is_running(int(second)), "the last job is cancelled")
    check_stored_once(specs, tmp_path / "store", serial)


def test_a_queue_that_does_not_take_jobs_is_named(
    tiny: RunSpec, tmp_path: Path, slurm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 'invalid partition specified' >&2\nexit 1\n")
    config = tmp_path / "cluster.toml"
    config.write_text('[slurm]\ncores = 1\nmemory = "1GB"\ninterface = "lo"\n')
    with (
        cluster_at("slurm", config) as cluster,
        pytest.raises(ClusterError, match=r"cannot start the cluster slurm: .*invalid partition specified"),
    ):
        list(run_all([tiny], tmp_path / "store", Running(cluster=cluster)))
    assert not slurm.exists()
    assert not caplog.records  # which would be on the terminal too


# ---- SSH --------------------------------------------------------------------------------------------------------


def test_hosts_by_ssh(tiny: RunSpec, tmp_path: Path, serial: Path) -> None:
    """Two names of one host, encrypted."""
    specs = [tiny.updated({"training.seed": seed}) for seed in range(6)]
    with ssh_server(tmp_path) as options:
        workers = "[ssh.worker_options]\nn_workers = 1\n"
        (tmp_path / "cluster.toml").write_text(options + workers + certificates(tmp_path))
        with cluster_at("ssh", tmp_path / "cluster.toml", "127.0.0.1,localhost") as cluster:
            assert cluster is not None
            assert cluster.slots("cpu") == 2
            do_all(specs, tmp_path / "store", Running(cluster=cluster))
            assert len(cluster.workers) == 2
            assert all(address.startswith("tls://") for address in cluster.workers)
            assert cluster.client.scheduler.address.startswith("tls://")
    check_stored_once(specs, tmp_path / "store", serial)


def test_hosts_that_do_not_answer_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is there, one refuses, and one says nothing."""
    monkeypatch.setattr(ssh, "ANSWER_SECONDS", 2.0)
    with ssh_server(tmp_path) as options, socket.socket() as silent:
        config = tmp_path / "cluster.toml"
        config.write_text(options)
        request = ClusterRequest.parse("ssh", config, "127.0.0.1")
        assert ssh.cores_of_hosts(request) == {"127.0.0.1": len(os.sched_getaffinity(0))}
        silent.bind(("127.0.0.3", request.options["connect_options"]["port"]))
        silent.listen()
        with (
            cluster_at("ssh", config, "127.0.0.1,127.0.0.2,127.0.0.3") as cluster,
            pytest.raises(ClusterError) as caught,
        ):
            list(run_all([RunSpec()], tmp_path / "store", Running(cluster=cluster)))
    said = str(caught.value)
    assert said.startswith("cannot reach 2 of 3 hosts: 127.0.0.2 (")
    assert "refused" in said.lower() or "failed" in said.lower()
    assert said.endswith("127.0.0.3 (no answer within 2 s); `ssh HOST` must work without a password")

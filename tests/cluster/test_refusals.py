"""What cannot be had is one line that says which."""

import signal
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest
from tests.cluster.dask_processes import DaskProcesses, free_port

from grokscope import ClusterError, GrokscopeError, RunSpec, SpecError, figure, sweep
from grokscope.cluster import ClusterRequest, DaskCluster, cluster_at
from grokscope.cluster import connection as connecting
from grokscope.cluster.remote import versions
from grokscope.store import Store
from grokscope.sweeps import Running, run_all

OLD = """
from pathlib import Path
from grokscope.cluster import remote
remote.true = getattr(remote, "true", None) or remote.versions()  # Dask runs this more than once
remote.versions = lambda: remote.true | {{Path({file!r}).read_text(): "0.0.9"}}
"""
NONE = """
import sys
sys.modules["grokscope.cluster.remote"] = None
"""


def refused(specs: list[RunSpec], store: Path, cluster: DaskCluster) -> str:
    with pytest.raises(ClusterError) as caught:
        list(run_all(specs, store, Running(cluster=cluster)))
    return str(caught.value)


def test_a_scheduler_that_is_not_there(tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.5)
    address = f"tcp://127.0.0.1:{free_port()}"
    with DaskCluster(ClusterRequest.parse(address)) as cluster:
        said = refused([tiny], tmp_path, cluster)
    assert said.startswith(f"cannot reach the scheduler {address}: ")
    assert " object at 0x" not in said
    assert not said.endswith("Error")  # the name of an exception says nothing


def test_a_scheduler_that_is_not_there_leaves_no_store(
    tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.5)
    address, store = f"tcp://127.0.0.1:{free_port()}", tmp_path / "new"
    with pytest.raises(ClusterError, match="cannot reach the scheduler"):
        sweep({"task.corruption": [0, 0.1]}, base=tiny, store=store, cluster=address)
    with pytest.raises(ClusterError, match="cannot reach the scheduler"):
        figure("fig06", scale="tiny", store=store, out=tmp_path / "figures", cluster=address)
    assert not store.exists()


def test_a_cluster_that_cannot_be_had_takes_no_name(
    tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a finished sweep keeps its meaning until the other one can begin."""
    monkeypatch.setenv("PATH", str(tmp_path))  # without sbatch
    config = tmp_path / "cluster.toml"
    config.write_text('[slurm]\ncores = 1\nmemory = "1GB"\ninterface = "lo"\n')
    sweep({"task.corruption": [0, 0.1]}, base=tiny, name="mine", store=tmp_path / "store", workers=0, progress=False)
    before = Store(tmp_path / "store").sweeps()
    with pytest.raises(ClusterError, match="sbatch"):
        sweep(
            {"task.corruption": [0, 0.2]},
            base=tiny,
            name="mine",
            store=tmp_path / "store",
            cluster="slurm",
            cluster_config=config,
            progress=False,
        )
    assert Store(tmp_path / "store").sweeps() == before


def test_a_reason_has_words_even_if_its_cause_has_none() -> None:
    error = OSError("Timed out trying to connect to tcp://10.0.0.1:8786 after 10 s")
    error.__cause__ = TimeoutError()
    assert connecting._reason(error) == str(error)


def test_a_scheduler_that_hangs_from_the_beginning(
    dask: DaskProcesses, tiny: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.5)
    dask.start(0).signal_scheduler(signal.SIGSTOP)
    with dask.cluster() as cluster:
        assert refused([tiny], tmp_path, cluster).startswith(f"cannot reach the scheduler {dask.address}: ")


def test_a_scheduler_without_workers(scheduler: DaskProcesses, tiny: RunSpec, tmp_path: Path) -> None:
    with scheduler.cluster(wait_seconds=1.0) as cluster:
        said = refused([tiny], tmp_path, cluster)
    assert said == (
        f"no worker that can be used came to the scheduler {scheduler.address} within 1 s; one is started with: "
        f"dask worker {scheduler.address} --nthreads 1"
    )


def test_a_worker_of_another_version_is_refused_with_both_named(
    scheduler: DaskProcesses, tiny: RunSpec, tmp_path: Path
) -> None:
    """It has another version of what a file names: of grokscope, then of each format."""
    old = tmp_path / "old"
    scheduler.add_worker(*scheduler.preload(OLD.format(file=str(old))))
    for what, version in versions().items():
        old.write_text(what)
        with scheduler.cluster() as cluster:
            said = refused([tiny], tmp_path, cluster)
        assert f"has {what} 0.0.9, and here is {version}: both need the same" in said


def test_a_worker_without_grokscope_is_refused(scheduler: DaskProcesses, tiny: RunSpec, tmp_path: Path) -> None:
    scheduler.add_worker(*scheduler.preload(NONE))
    with scheduler.cluster() as cluster:
        said = refused([tiny], tmp_path, cluster)
    assert f"has no grokscope, or one without clusters, and here is {versions()['grokscope']}" in said


def test_a_scheduler_without_grokscope_is_refused(tiny: RunSpec, tmp_path: Path) -> None:
    dask = DaskProcesses(tmp_path / "dask")
    dask.options = dask.preload(NONE)
    try:
        with dask.start().cluster() as cluster:
            said = refused([tiny], tmp_path / "store", cluster)
    finally:
        dask.close()
    assert said.startswith(f"the scheduler {dask.address} has no grokscope, or one without clusters, and here is ")


def test_a_device_that_no_worker_has(whole: DaskProcesses, tiny: RunSpec, tmp_path: Path) -> None:
    with whole.cluster() as cluster, pytest.raises(ClusterError, match="has a GPU, and --device is cuda: start some"):
        list(run_all([tiny], tmp_path, Running(cluster=cluster, device="cuda")))


def test_without_the_extra_the_flag_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    there = util.find_spec
    monkeypatch.setattr(
        "grokscope.cluster.request.find_spec", lambda name: None if name == "distributed" else there(name)
    )
    with pytest.raises(ClusterError, match=r"pip install 'grokscope\[cluster\]'"):
        ClusterRequest.parse("local:2")


@pytest.mark.parametrize(
    ("where", "config", "hosts", "reason"),
    [
        ("slrum", None, "", "did you mean 'slurm'"),
        ("local:0", None, "", "a number of workers, such as local:4"),
        ("local:x", None, "", "a number of workers, such as local:4"),
        ("local:1", None, "a,b", "--hosts goes with --cluster ssh"),
        ("ssh", None, "", "--hosts a,b,c"),
        ("slurm", None, "", r"needs a table \[slurm\].*--cluster-config"),
        ("pbs", "[slurm]\ncores = 1", "", r"has no table \[pbs\]"),
        ("slurm", "slurm = 3", "", r"must be a table: \[slurm\]"),
        ("slurm", "jobs = 0\n[slurm]", "", "jobs = 0 is not allowed"),
        ("slurm", "job = 1\n[slurm]", "", "unknown key job.*did you mean 'jobs'"),
        ("tls://a:1", "[tls]\nca = 'x'", "", r"\[tls\] needs the files ca, cert, key"),
        ("tls://a:1", "[tls]\nca = 'x'\ncert = 'x'\nkey = 'x'", "", "names x, which is no file"),
        ("tcp://a:1", "[tls]\nca = 'FILE'\ncert = 'FILE'\nkey = 'FILE'", "", "are for tls:// addresses"),
        ("local:1", "[tls]\nca = 'FILE'\ncert = 'FILE'\nkey = 'FILE'", "", "not for local:1, which makes its own"),
        ("ssh", "[ssh]\nremote_pyton = 'x'", "a", "unknown key remote_pyton in .*did you mean 'remote_python'"),
        ("ssh", "[ssh]\nconnect_options = 'x'", "a", "connect_options in .* must be a table"),
        ("ssh", "[ssh.worker_options]\nn_workers = 0", "a", "n_workers = 0 in .* must be at least 1"),
        ("local:1", "=", "", "not valid TOML"),
    ],
)
def test_a_request_that_means_nothing_is_refused(
    tmp_path: Path, where: str, config: str | None, hosts: str, reason: str
) -> None:
    file = tmp_path / "cluster.toml"
    if config is not None:
        file.write_text(config.replace("FILE", str(file)))
    with pytest.raises(SpecError, match=reason):
        ClusterRequest.parse(where, file if config is not None else None, hosts)


def test_settings_that_are_not_there(tmp_path: Path) -> None:
    file = tmp_path / "none.toml"
    with pytest.raises(SpecError) as caught:
        ClusterRequest.parse("local:1", file)
    assert str(caught.value) == f"cannot read the cluster's settings {file}: No such file or directory"


def test_what_goes_with_a_cluster_is_refused_without(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="go with --cluster"), cluster_at(None, None, "a,b"):
        pass
    with pytest.raises(GrokscopeError, match="a cluster has its own"):
        sweep("fig3a", grid="1x1", cluster="local:1", workers=2, store=tmp_path)


def test_nothing_of_dask_is_loaded_before_it_is_needed() -> None:
    code = "import sys, grokscope, grokscope.cli; print([name for name in sys.modules if name[:4] in ('dask', 'dist')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

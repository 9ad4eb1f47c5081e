"""Two hosts of a cluster, each a network namespace, one of which is cut off and comes back."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cluster.dask_processes import DaskProcesses, check_stored_once, free_port

from grokscope import RunSpec
from grokscope.cluster import connection, dask_executor
from grokscope.sweeps import Failed, Finished, Running, run_all

NETWORK = "10.213.71"
BRIDGE = "gs-bridge"
HOSTS = {"gs-one": 2, "gs-two": 3}


def ip(*arguments: str, check: bool = True) -> bool:
    return subprocess.run(["ip", *arguments], capture_output=True, check=check).returncode == 0


def cannot_have_namespaces() -> str | None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "there is no command ip"
    if not ip("link", "add", BRIDGE, "type", "bridge", check=False):
        return "network devices may not be made here"
    ip("link", "del", BRIDGE)
    return None


@pytest.fixture
def hosts() -> Iterator[None]:
    if reason := cannot_have_namespaces():
        pytest.skip(reason)
    ip("link", "add", BRIDGE, "type", "bridge")
    try:
        ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for name, number in HOSTS.items():
            ip("netns", "add", name)
            ip("link", "add", f"{name}-out", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{name}-out", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        for name in HOSTS:
            ip("netns", "del", name, check=False)
            ip("link", "del", f"{name}-out", check=False)
        ip("link", "del", BRIDGE, check=False)


@pytest.mark.usefixtures("hosts")
def test_a_host_that_is_cut_off_and_comes_back(
    longer: list[RunSpec], tmp_path: Path, serial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "PIECE_SECONDS", 0.3)
    monkeypatch.setattr(dask_executor, "CHECKPOINTS_A_SECOND", 100.0)
    monkeypatch.setattr(connection, "LOOK_SECONDS", 0.3)
    gateway = f"{NETWORK}.1"
    dask = DaskProcesses(tmp_path / "dask", port=free_port(gateway), host=gateway)
    addresses: set[str] = set()
    state = "whole"
    finished = 0
    try:
        dask.start()
        for name, number in HOSTS.items():
            dask.add_worker("--host", f"{NETWORK}.{number}", before=("ip", "netns", "exec", name))
        with (
            dask.cluster(silent_seconds=4.0) as cluster,
            closing(run_all(longer, tmp_path / "store", Running(cluster=cluster))) as events,
        ):
            for event in events:
                assert not isinstance(event, Failed)
                finished += isinstance(event, Finished)
                addresses |= set(cluster.workers)
                if state == "whole" and finished and len(addresses) == 2:
                    ip("link", "set", "gs-two-out", "down")
                    state = "cut off"
                elif state == "cut off" and len(cluster.workers) == 1:  # the other was given up
                    ip("link", "set", "gs-two-out", "up")
                    state = "back"
    finally:
        dask.close()
    assert state == "back"
    assert finished == len(longer)
    assert {urlsplit(address).hostname for address in addresses} == {f"{NETWORK}.2", f"{NETWORK}.3"}
    check_stored_once(longer, tmp_path / "store", serial)

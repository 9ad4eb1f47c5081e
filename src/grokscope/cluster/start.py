"""Clusters that are started for a sweep and end with it: local processes, jobs of a queue, hosts by SSH.

with started(request) as address: ...
"""

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from distributed import Scheduler, Security, SpecCluster, SSHCluster
from distributed.deploy.spec import ProcessInterface

from grokscope.cluster.request import QUEUES, ClusterError, ClusterRequest
from grokscope.errors import in_one_line

# Port 0 is any that is free: the scheduler answers to HTTP even without its dashboard.
_NO_DASHBOARD = {"dashboard": False, "dashboard_address": ":0"}
_QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster", "sge": "SGECluster"}


def security_of(request: ClusterRequest) -> Security | None:
    """The certificate and key for all connections; None: as Dask itself is configured."""
    if not request.tls:
        return None
    ca, cert, key = (str(Path(request.tls[name]).expanduser()) for name in ("ca", "cert", "key"))
    roles = {
        f"tls_{role}_{what}": file
        for role in ("client", "worker", "scheduler")
        for what, file in (("cert", cert), ("key", key))
    }
    return Security(tls_ca_file=ca, require_encryption=True, **roles)


@contextmanager
def started(request: ClusterRequest) -> Iterator[str]:
    """The address of a scheduler. What was started for it ends with the context."""
    if request.kind == "address":
        yield request.address
        return
    try:
        cluster = _start(request)
    except Exception as error:  # of queues, hosts and their options anything may come
        raise ClusterError(f"cannot start {request}: {in_one_line(str(error) or type(error).__name__)}") from error
    try:
        yield str(cluster.scheduler_address)
    finally:
        with suppress(Exception):  # it ends with this process in any case
            cluster.close(timeout=10)


def _start(request: ClusterRequest) -> Any:
    if request.kind in QUEUES:
        cluster = queue_cluster(request)
        cluster.scale(jobs=request.jobs)
        return cluster
    if request.kind == "ssh":
        # Dask starts the scheduler on the first host that it is given, and workers on the others.
        return SSHCluster([request.hosts[0], *request.hosts], **request.options)
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", **_NO_DASHBOARD}}
    workers = {place: {"cls": LocalWorker, "options": {}} for place in range(request.workers)}
    return SpecCluster(workers, scheduler, name="grokscope", silence_logs=False)


def queue_cluster(request: ClusterRequest) -> Any:
    """The cluster of a queue, with no job submitted yet; `job_script()` shows what a job will be."""
    options: dict[str, Any] = {"scheduler_options": _NO_DASHBOARD, **request.options}
    if security := security_of(request):
        options |= {"security": security, "protocol": "tls://"}
    return getattr(_jobqueue(), _QUEUES[request.kind])(**options)


def _jobqueue() -> ModuleType:
    """The library for queues, which when it is imported takes Ctrl-C for itself."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        return importlib.import_module("dask_jobqueue")
    finally:
        signal.signal(signal.SIGINT, handler)


class LocalWorker(ProcessInterface):  # type: ignore[misc]
    """A worker with one thread, in a process that sees neither the user's program nor the Ctrl-C of its terminal."""

    def __init__(self, scheduler: str, **_: object) -> None:
        super().__init__(scheduler=scheduler)
        self.scheduler = scheduler
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; that the worker is there the scheduler will say."""
        command = ["dask", "worker", self.scheduler, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60"]
        quiet = {"DASK_LOGGING__DISTRIBUTED": "critical"}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *command, env=os.environ | quiet, start_new_session=True
        )
        await super().start()

    async def close(self) -> None:
        """End the process; its nanny ends the worker."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), 5)
            except TimeoutError:
                self._process.kill()
        await super().close()

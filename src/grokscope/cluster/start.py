"""Clusters that are started for a sweep and end with it: local processes, jobs of a queue, hosts by SSH.

with started(request) as place: ...     # place.address is that of the scheduler
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import dask
from distributed import Scheduler, Security, SpecCluster
from distributed.deploy.spec import ProcessInterface

from grokscope.cluster import calm
from grokscope.cluster.certificates import as_environment, security_of
from grokscope.cluster.queues import Jobs, queue_cluster
from grokscope.cluster.request import QUEUES, ClusterError, ClusterRequest
from grokscope.cluster.ssh import cores_of_hosts, ssh_cluster
from grokscope.errors import in_one_line


class Started(NamedTuple):
    """Where the scheduler is, and how to connect to it."""

    address: str
    security: Security | None  # None: as Dask itself is configured
    jobs: Jobs | None = None  # of a queue


@contextmanager
def started(request: ClusterRequest) -> Iterator[Started]:
    """A scheduler that is running. What was started for it ends with the context."""
    if request.kind == "address":
        yield Started(request.address, security_of(request))
        return
    with ExitStack() as ending:
        ending.enter_context(dask.config.set(calm.SETTINGS))  # for the scheduler; Dask passes it on by SSH
        try:
            cluster = _made(request)
            ending.callback(_close, cluster)
            jobs = Jobs(cluster, request.jobs) if request.kind in QUEUES else None
        except ClusterError:
            raise
        except Exception as error:  # of queues, hosts and their options anything may come
            raise ClusterError(f"cannot start {request}: {in_one_line(str(error) or type(error).__name__)}") from error
        yield Started(str(cluster.scheduler_address), cluster.security, jobs)


def _made(request: ClusterRequest) -> Any:
    if request.kind in QUEUES:
        return queue_cluster(request)
    if request.kind == "ssh":
        return ssh_cluster(request, cores_of_hosts(request), security_of(request))
    return _local_cluster(request.workers)


def _close(cluster: Any) -> None:
    with suppress(Exception):  # it ends with this process in any case
        cluster.close(timeout=10)


def _local_cluster(workers: int) -> Any:
    """No other machine can reach it. All users of this one can, so whoever connects needs a certificate made for it."""
    security = Security.temporary()
    options = {"host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options |= {"protocol": "tls://", "security": security}
    scheduler = {"cls": Scheduler, "options": options}
    specs = {place: {"cls": LocalWorker, "options": {"security": security}} for place in range(workers)}
    return SpecCluster(specs, scheduler, name="grokscope", silence_logs=False, security=security)


class LocalWorker(ProcessInterface):  # type: ignore[misc]
    """A worker with one thread, in a process that sees neither the user's program nor the Ctrl-C of its terminal."""

    def __init__(self, scheduler: str, security: Security, **_: object) -> None:
        super().__init__(scheduler=scheduler)
        self.scheduler, self.security = scheduler, security
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process; that the worker is there the scheduler will say."""
        here = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
        quiet = {"DASK_LOGGING__DISTRIBUTED": "critical", **calm.as_environment()}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dask", "worker", self.scheduler, "--nthreads", "1", "--death-timeout", "60", *here,
            env=os.environ | quiet | as_environment(self.security), start_new_session=True,
        )  # fmt: skip
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

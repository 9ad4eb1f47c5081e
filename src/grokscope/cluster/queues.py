"""Workers as jobs of a queue: SLURM, PBS, LSF, SGE.

with closing(queue_cluster(request)) as cluster:
    jobs = Jobs(cluster, request.jobs)
    jobs.renew()    # now and then: submits others in the place of those that have ended
"""

import importlib
import signal
import time
from types import ModuleType
from typing import Any

from distributed import Status

from grokscope.cluster import calm
from grokscope.cluster.calls import aside
from grokscope.cluster.certificates import security_of
from grokscope.cluster.request import ClusterRequest

# Port 0 is any that is free: the scheduler answers to HTTP even without its dashboard.
_NO_DASHBOARD = {"dashboard": False, "dashboard_address": ":0"}
GONE_SECONDS = 30.0  # without any of its workers, until a job is taken to have ended: a nanny starts a worker sooner

_CLASSES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster", "sge": "SGECluster"}


def queue_cluster(request: ClusterRequest) -> Any:
    """The cluster of a queue, with no job submitted yet; `job_script()` shows what a job will be."""
    options: dict[str, Any] = {"scheduler_options": _NO_DASHBOARD, **request.options}
    exports = [f"export {name}={value}" for name, value in calm.as_environment().items()]
    options["job_script_prologue"] = [*exports, *options.get("job_script_prologue", ())]
    if security := security_of(request):
        options |= {"security": security, "protocol": "tls://"}
    return getattr(_jobqueue(), _CLASSES[request.kind])(**options)


def _jobqueue() -> ModuleType:
    """The library for queues, which when it is imported takes Ctrl-C for itself."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        return importlib.import_module("dask_jobqueue")
    finally:
        signal.signal(signal.SIGINT, handler)


class Jobs:
    """Keeps up the number of jobs. A job ends when its wall time is over, long before a large sweep does."""

    def __init__(self, cluster: Any, jobs: int) -> None:
        self._cluster, self._jobs = cluster, jobs
        self._seen: dict[str, float] = {}  # jobs that have had workers, and when last
        self._renewed = time.monotonic()
        cluster.sync(self._submit)

    def renew(self) -> None:
        """Submit others for jobs whose workers have been gone for a while. A job that still waits is left alone."""
        now = time.monotonic()
        there = {str(worker["name"]) for worker in self._cluster.scheduler_info["workers"].values()}
        for job, spec in list(self._cluster.worker_spec.items()):
            if there & {f"{job}{suffix}" for suffix in spec.get("group", [""])}:
                self._seen[job] = now
        if now - self._renewed < GONE_SECONDS:
            return
        self._renewed = now
        ended = [job for job, seen in self._seen.items() if now - seen > GONE_SECONDS]
        ended += [job for job, made in list(self._cluster.workers.items()) if made.status is Status.failed]
        if ended:
            self._seen = {job: seen for job, seen in self._seen.items() if job not in ended}
            aside(lambda: self._cluster.sync(self._replace, ended))

    async def _replace(self, ended: list[str]) -> None:
        await self._cluster.scale_down(ended)
        await self._submit()

    async def _submit(self) -> None:
        self._cluster.scale(jobs=self._jobs)
        try:
            await self._cluster  # until all are submitted
        except Exception:
            for job in self._cluster.workers.values():
                if job.status is Status.created:  # Dask leaves those so that it could not start
                    job.status = Status.failed
            raise

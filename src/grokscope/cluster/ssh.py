"""Hosts that are reached by SSH: asked how many cores they have, then given a scheduler and workers.

cores = cores_of_hosts(request)             # {"node1": 16, "node2": 16}
cluster = ssh_cluster(request, cores)       # a worker for each core
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
from distributed import Security, SpecCluster
from distributed.deploy import ssh

from grokscope.cluster.certificates import as_settings
from grokscope.cluster.request import ClusterError, ClusterRequest
from grokscope.errors import in_one_line

ANSWER_SECONDS = 20.0  # that all hosts have, side by side
IDLE = "1 hour"  # after which a scheduler ends whose coordinator was killed

_COUNT_CORES = "env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc || getconf _NPROCESSORS_ONLN"  # nproc minds both


def cores_of_hosts(request: ClusterRequest) -> dict[str, int]:
    """Connect to all hosts at once; an error names those that do not answer, and says why."""
    with ThreadPoolExecutor(1) as aside:  # in a notebook this thread has an event loop already
        answers = aside.submit(asyncio.run, _ask_all(request)).result()
    if silent := {host: answer for host, answer in answers.items() if isinstance(answer, BaseException)}:
        reasons = "; ".join(f"{host} ({_reason(error)})" for host, error in silent.items())
        raise ClusterError(
            f"cannot reach {len(silent)} of {len(answers)} hosts: {reasons}; `ssh HOST` must work without a password"
        )
    return {host: answer for host, answer in answers.items() if isinstance(answer, int)}


async def _ask_all(request: ClusterRequest) -> dict[str, int | BaseException]:
    answers = await asyncio.gather(*(_ask(host, request) for host in request.hosts), return_exceptions=True)
    return dict(zip(request.hosts, answers, strict=True))


async def _ask(host: str, request: ClusterRequest) -> int:
    import asyncssh

    async with asyncio.timeout(ANSWER_SECONDS):
        async with asyncssh.connect(host, **request.options.get("connect_options", {})) as connection:
            answer = str((await connection.run(_COUNT_CORES)).stdout).strip()
    return int(answer) if answer.isdecimal() and int(answer) > 0 else 1


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {ANSWER_SECONDS:g} s"
    return in_one_line(str(error)) or type(error).__name__


def worker_options(request: ClusterRequest, cores: int) -> dict[str, Any]:
    """What the workers of a host are started with: one for each core, unless cluster.toml says otherwise."""
    return {"n_workers": cores, "nthreads": 1, **request.options.get("worker_options", {})}


def slots_of(request: ClusterRequest, cores: dict[str, int]) -> int:
    """How many orders the workers of all hosts work on at the same time."""
    options = [worker_options(request, n) for n in cores.values()]
    return sum(each["n_workers"] * each["nthreads"] for each in options)


def ssh_cluster(request: ClusterRequest, cores: dict[str, int], security: Security | None) -> Any:
    """A scheduler on the first host and workers on all. Dask passes its settings on to them, certificates included."""
    common = {
        "connect_options": request.options.get("connect_options", {}),
        "remote_python": request.options.get("remote_python"),
    }
    about_scheduler = {"dashboard": False, "idle_timeout": IDLE, **request.options.get("scheduler_options", {})}
    scheduler = {
        "cls": ssh.Scheduler,
        "options": {"address": request.hosts[0], "kwargs": about_scheduler, **common},
    }
    worker_class = request.options.get("worker_class", "distributed.Nanny")
    workers = {
        host: {
            "cls": ssh.Worker,
            "options": {"address": host, "kwargs": worker_options(request, n), "worker_class": worker_class, **common},
        }
        for host, n in cores.items()
    }
    with dask.config.set(as_settings(security) if security else {}):
        return SpecCluster(workers, scheduler, name="grokscope", silence_logs=False, security=security)

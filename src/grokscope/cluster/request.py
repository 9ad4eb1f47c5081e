"""Which cluster: what `--cluster`, `--cluster-config` and `--hosts` say.

>>> ClusterRequest.parse("local:4").workers
4
>>> ClusterRequest.parse("tcp://login:8786").address
'tcp://login:8786'
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from grokscope.documents import content_of_toml, text_of
from grokscope.errors import GrokscopeError, SpecError, did_you_mean, quoted

QUEUES = ("slurm", "pbs", "lsf", "sge")
PROTOCOLS = ("tcp://", "tls://", "ws://", "wss://", "ucx://")
ALLOWED = "an address such as tcp://host:8786, local:4, slurm, pbs, lsf, sge or ssh"
MOST_WORKERS = 10_000

_NUMBERS = ("jobs", "wait_seconds", "silent_seconds")
_TABLES = (*QUEUES, "ssh", "tls")
_TLS = ("ca", "cert", "key")
_SSH = {
    "connect_options": dict,
    "worker_options": dict,
    "scheduler_options": dict,
    "worker_class": str,
    "remote_python": str,
}


class ClusterError(GrokscopeError):
    """A cluster that cannot be had, or that went away."""


@dataclass(frozen=True)
class ClusterRequest:
    """A cluster that is wanted. Nothing is started or asked for it yet."""

    kind: str  # "address", "local", "ssh" or a queue
    address: str = ""
    jobs: int = 1  # for a queue
    workers: int = (
        0  # that were asked for; 0 where it shows only later: whoever is there, or as many as hosts have cores
    )
    hosts: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)  # for the queue, or for SSH
    tls: Mapping[str, str] = field(default_factory=dict)  # whole paths of files: ca, cert, key
    wait_seconds: float = 60.0  # for the first worker, or for a scheduler that went away
    silent_seconds: float = 120.0  # beyond its time, until a worker that does not answer is given up

    @classmethod
    def parse(cls, where: str, config: Path | str | None = None, hosts: Sequence[str] | str = ()) -> "ClusterRequest":
        """Read what the command line says; an error says what is wrong in one line."""
        given = tuple(hosts.split(",") if isinstance(hosts, str) else hosts)
        names = tuple(name.strip() for name in given if name.strip())
        numbers, tables = _read(Path(config)) if config is not None else ({}, {})
        kind = where if where in (*QUEUES, "ssh") else "local" if where.startswith("local:") else "address"
        if kind == "address" and not where.startswith(PROTOCOLS):
            known = (*QUEUES, "ssh", "local:4")
            raise SpecError(
                f"--cluster = {quoted(where)} is not allowed: must be {ALLOWED}{did_you_mean(where, known)}"
            )
        if names and kind != "ssh":
            raise SpecError(f"--hosts goes with --cluster ssh, not with {where}")
        if kind == "ssh" and not names:
            raise SpecError("--cluster ssh needs to know where: --hosts a,b,c")
        if kind in QUEUES and kind not in tables:
            file = f"{config} has no table [{kind}]" if config is not None else "name a file with --cluster-config"
            raise SpecError(
                f"--cluster {kind} needs a table [{kind}] with the queue, cores and memory of a job: {file}"
            )
        if "tls" in tables and (kind == "local" or (kind == "address" and not where.startswith(("tls://", "wss://")))):
            own = ", which makes its own" if kind == "local" else ""
            raise SpecError(f"the certificates of [tls] are for tls:// addresses, queues and ssh, not for {where}{own}")
        _need_extra()
        options = tables.get(kind, {})
        workers = _workers(kind, where, options, numbers.get("jobs", 1))
        address = where if kind == "address" else ""
        return cls(kind, address, workers=workers, hosts=names, options=options, tls=tables.get("tls", {}), **numbers)

    def __str__(self) -> str:
        if self.kind == "address":
            return f"the scheduler {self.address}"
        return f"the hosts {', '.join(self.hosts)}" if self.kind == "ssh" else f"the cluster {self.kind}"


def _count(where: str) -> int:
    digits = where.removeprefix("local:")
    if not (digits.isdecimal() and len(digits) <= 5 and 1 <= int(digits) <= MOST_WORKERS):
        raise SpecError(f"--cluster = {quoted(where)} is not allowed: local: and a number of workers, such as local:4")
    return int(digits)


def _workers(kind: str, where: str, options: Mapping[str, Any], jobs: int) -> int:
    if kind == "local":
        return _count(where)
    return jobs * _whole(options.get("cores", 1)) if kind in QUEUES else 0


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1


def _read(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    text = text_of(path, "cluster's settings")
    try:
        content = content_of_toml(text)
        for key, value in content.items():
            if key in _NUMBERS:
                whole = key == "jobs"
                if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not value > 0:
                    raise SpecError(f"{key} = {quoted(value)} is not allowed: must be a number above 0")
            elif key not in _TABLES:
                known = (*_NUMBERS, *_TABLES)
                raise SpecError(f"unknown key {key}: there are {', '.join(known)}{did_you_mean(key, known)}")
            elif not isinstance(value, dict):
                raise SpecError(f"{key} must be a table: [{key}]")
        tls = content.get("tls", {})
        if tls and (set(tls) != set(_TLS) or not all(isinstance(file, str) for file in tls.values())):
            raise SpecError(f"[tls] needs the files {', '.join(_TLS)}, and nothing else")
        if missing := next((file for file in tls.values() if not Path(file).expanduser().is_file()), None):
            raise SpecError(f"[tls] names {missing}, which is no file")
        tls.update({name: str(Path(file).expanduser().absolute()) for name, file in tls.items()})
        _check_ssh(content.get("ssh", {}))
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None
    numbers = {key: value for key, value in content.items() if key in _NUMBERS}
    return numbers, {key: value for key, value in content.items() if key in _TABLES}


def _check_ssh(options: dict[str, Any]) -> None:
    for key, value in options.items():
        if key not in _SSH:
            raise SpecError(f"unknown key {key} in [ssh]: there are {', '.join(_SSH)}{did_you_mean(key, _SSH)}")
        if not isinstance(value, _SSH[key]):
            raise SpecError(f"{key} in [ssh] must be a {'table' if _SSH[key] is dict else 'text'}")
    for key in ("n_workers", "nthreads"):
        value = options.get("worker_options", {}).get(key, 1)
        if _whole(value) != value or isinstance(value, bool):
            raise SpecError(f"{key} = {quoted(value)} in [ssh.worker_options] is not allowed: must be at least 1")


def _need_extra() -> None:
    missing = [name for name in ("distributed", "dask_jobqueue", "asyncssh") if find_spec(name) is None]
    if missing:
        raise ClusterError("--cluster needs Dask, which is not installed here: pip install 'grokscope[cluster]'")

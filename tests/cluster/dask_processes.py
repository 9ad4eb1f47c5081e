"""A Dask scheduler and its workers, as processes on 127.0.0.1."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from distributed import Security
from tests.integration.processes import children, wait_until

from grokscope import RunSpec, Store
from grokscope.cluster import ClusterRequest, DaskCluster
from grokscope.sweeps import Failed, Progress, Running, run_all

QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical", "OMP_NUM_THREADS": "1"}


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as listener:
        listener.bind((host, 0))
        return int(listener.getsockname()[1])


@dataclass
class DaskProcesses:
    """Started when they are asked for, and ended with the test, whatever it did to them."""

    directory: Path
    port: int = field(default_factory=free_port)
    protocol: str = "tcp"
    host: str = "127.0.0.1"
    options: tuple[str, ...] = ()  # of the scheduler and of all workers
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{self.protocol}://{self.host}:{self.port}"

    def start(self, workers: int = 0, *options: str) -> "DaskProcesses":
        where = ("--host", f"{self.protocol}://{self.host}", "--port", str(self.port))
        self.scheduler = self.process("scheduler", *where, "--no-dashboard", *self.options)
        wait_until(self.is_listening, "the scheduler listens")
        for _ in range(workers):
            self.add_worker(*options)
        return self

    def is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((self.host, self.port)) == 0

    def add_worker(self, *options: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        plain = () if "--nanny" in options else ("--no-nanny",)
        here = () if "--host" in options else ("--host", self.host)
        worker = self.process(
            "worker", self.address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(self.directory),
            *plain, *here, *self.options, *options, before=before,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def process(self, *command: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        self.directory.mkdir(exist_ok=True)
        return subprocess.Popen(
            [*before, sys.executable, "-m", "dask", *command],
            cwd=self.directory, env=os.environ | QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def preload(self, code: str) -> tuple[str, str]:
        """The option with which a worker runs this code before all else."""
        file = self.directory / f"preload{len(list(self.directory.glob('preload*')))}.py"
        self.directory.mkdir(exist_ok=True)
        file.write_text(code)
        return "--preload", str(file)

    def stop_scheduler(self) -> None:
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()

    def signal_scheduler(self, number: int) -> None:
        assert self.scheduler is not None
        with_signal(self.scheduler.pid, number)

    def end_workers(self) -> None:
        for worker in self.workers:
            _end(worker)
        self.workers.clear()

    def close(self) -> None:
        self.end_workers()
        if self.scheduler:
            _end(self.scheduler)

    @contextmanager
    def cluster(self, **changes: float) -> Iterator[DaskCluster]:
        """A connection to it."""
        with DaskCluster(ClusterRequest("address", self.address, **changes)) as cluster:  # type: ignore[arg-type]
            yield cluster


def certificates(directory: Path) -> str:
    """Files for a trial, as the table that names them."""
    made = Security.temporary()
    lines = ["[tls]"]
    for name, content in (("ca", made.tls_ca_file), ("cert", made.tls_client_cert), ("key", made.tls_client_key)):
        (directory / f"{name}.pem").write_text(content)
        lines.append(f'{name} = "{directory / name}.pem"')
    return "\n".join(lines) + "\n"


def _end(process: subprocess.Popen[bytes]) -> None:
    for pid in [*children(process.pid), process.pid]:
        with_signal(pid, signal.SIGKILL)
    process.wait()


def with_signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def do_all(specs: Sequence[RunSpec], store: Path, running: Running) -> list[Progress]:
    """Do runs, and see that none failed."""
    with closing(run_all(specs, store, running)) as events:
        seen = list(events)
    errors = [event.error for event in seen if isinstance(event, Failed)]
    assert not errors, errors
    return seen


def check_stored_once(specs: Sequence[RunSpec], store: Path, serial: Path) -> None:
    """Every run is there once, with the very bits of a sweep in one process, and nothing is left of the way there."""
    do_all(specs, serial, Running(workers=0))
    ours, theirs = Store(store), Store(serial)
    assert {run.run_id for run in ours.all()} == {spec.run_id for spec in specs}
    assert not ours.failures()
    assert not ours.checkpoints()
    assert not ours.leases()
    assert sum(1 for _ in (store / "runs").rglob("*.safetensors")) == len({spec.run_id for spec in specs})
    for spec in specs:
        mine, other = (opened.content(opened.resolve(spec.run_id)).arrays for opened in (ours, theirs))
        assert list(mine) == list(other)
        for name, array in mine.items():
            assert array.dtype == other[name].dtype
            assert np.array_equal(array.view(np.uint8), other[name].view(np.uint8)), name
        first, second = (opened.resolve(spec.run_id).record() for opened in (ours, theirs))
        for volatile in ("seconds", "finished_at"):
            del first[volatile], second[volatile]
        assert first == second

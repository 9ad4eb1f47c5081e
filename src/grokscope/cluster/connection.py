"""A Dask scheduler and the workers that have come to it.

cluster = DaskCluster(ClusterRequest.parse("tcp://login:8786"))
cluster.look()
cluster.workers         # by address: those that have this version of grokscope
"""

import logging
import re
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from grokscope.cluster.calls import aside, within
from grokscope.cluster.code import Traveller
from grokscope.cluster.remote import introduce, versions
from grokscope.cluster.request import QUEUES, ClusterError, ClusterRequest
from grokscope.errors import in_one_line
from grokscope.notes import note
from grokscope.spec import RunSpec
from grokscope.sweeps.executor import Executor

if TYPE_CHECKING:
    from grokscope.cluster.start import Started
    from grokscope.sweeps.running import Running

CONNECT_SECONDS = 10.0
IMPORT_SECONDS = 60.0  # in which a scheduler has to say its versions: it imports grokscope for that
LOOK_SECONDS = 1.0  # between two looks at who is there
SCHEDULER_SECONDS = 5.0  # in which a scheduler has to say that; otherwise it is asked again
PATIENT_SECONDS = 10.0  # that nobody comes before it is said that somebody is waited for


class ClusterWorker(NamedTuple):
    """A worker that runs can be given to."""

    address: str
    threads: int
    gpus: int

    @property
    def slots(self) -> int:
        """How many orders it works on at the same time."""
        return min(self.gpus, self.threads) if self.gpus else self.threads

    def has(self, device: str) -> bool:
        """Whether it can compute on this device. On "cpu" all can."""
        return device == "cpu" or self.gpus > 0


class DaskCluster:
    """A cluster that is asked for when it is needed first, and stays until it is closed."""

    def __init__(self, request: ClusterRequest) -> None:
        self.request = request
        self.traveller = Traveller()
        self.workers: dict[str, ClusterWorker] = {}
        self.client: Any = None  # None while there is no connection
        self.heard_since = -float("inf")  # since when the scheduler has answered each time that it was asked
        self._closing = ExitStack()
        self._started: Started | None = None
        self._looked = self._alone = self._lost = self._heard = -float("inf")  # when
        self._said: set[str] = set()  # of what is waited for
        self._answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._asked: dict[str, int] = {}  # workers that were asked who they are, and their threads
        self._shunned: set[str] = set()  # of another version, or silent for too long

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.client is not None:
            client, self.client = self.client, None
            with suppress(Exception):  # the connection may be broken already
                within(3, lambda: client.close(timeout=2))
        self._closing.close()

    # ---- what a sweep needs -------------------------------------------------------------------------------------

    def slots(self, device: str) -> int:
        """How many orders are worked on at the same time: as many as were asked for, or by those who are there."""
        if self.request.workers:
            return self.request.workers
        if self.request.kind == "ssh" and self._started is None:
            return self._slots_of_hosts
        self.connect()
        while not self.workers:
            self.look()
            time.sleep(0.05)
        self.check_device(device)
        return sum(worker.slots for worker in self.workers.values() if worker.has(device))

    def check_device(self, device: str) -> None:
        """Refuse a device that none of those has who are there."""
        if self.workers and not any(worker.has(device) for worker in self.workers.values()):
            raise ClusterError(
                f"no worker of {self.request} has a GPU, and --device is {device}: "
                "start some with `dask worker … --resources GPU=1`"
            )

    @cached_property
    def _slots_of_hosts(self) -> int:
        from grokscope.cluster.ssh import cores_of_hosts, slots_of

        return slots_of(self.request, cores_of_hosts(self.request))

    @property
    def slots_now(self) -> int:
        """How many orders all those work on who are there."""
        return sum(worker.slots for worker in self.workers.values())

    @property
    def connected(self) -> bool:
        """Whether orders can be given."""
        return self.client is not None and self.client.status == "running"

    def check(self, specs: Iterable[RunSpec]) -> None:
        """Refuse code of the user's that cannot travel to the workers."""
        for spec in specs:
            self.traveller.pack(spec)

    def executor(self, store: Path, running: "Running") -> Executor:
        """Does runs on the workers of this cluster."""
        from grokscope.cluster.dask_executor import DaskExecutor

        self.connect()
        return DaskExecutor(self, store, running)

    # ---- the connection -----------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Start what has to be started, and connect, if that was not done before."""
        if self._started is not None:
            return
        import dask
        from distributed import Client  # noqa: F401 (without it `dask.config` lacks its settings)

        from grokscope.cluster.start import started

        # A checkpoint is part of the order that goes on from it, and may be large.
        self._closing.enter_context(dask.config.set({"distributed.admin.large-graph-warning-threshold": "10GB"}))
        for logger in ("distributed", "tornado.application"):  # of what fails in Dask's event loop
            self._closing.enter_context(_silenced(logger))
        place = self._closing.enter_context(started(self.request))
        try:
            self._make_client(place, CONNECT_SECONDS)
        except OSError as error:
            raise ClusterError(f"cannot reach the scheduler {place.address}: {_reason(error)}") from error
        except (TypeError, ValueError, RuntimeError) as error:  # of an address, or of certificates that are not there
            raise ClusterError(
                f"cannot connect to the scheduler {place.address}: {in_one_line(str(error))}; certificates for tls:// "
                "are named in the table [tls] of the --cluster-config, or in Dask's own configuration"
            ) from error
        self._started = place

    def _make_client(self, place: "Started", timeout: float) -> None:
        from distributed import Client

        def connected() -> Any:
            return Client(place.address, security=place.security, timeout=timeout, set_as_default=False)

        # Dask's own timeout is for a scheduler that is not there: one that hangs it would wait for without an end.
        self.client = within(timeout + 1, connected, too_late=lambda client: client.close(timeout=2))
        self._check_scheduler(place)
        self._alone = self._heard = self.heard_since = time.monotonic()

    def _check_scheduler(self, place: "Started") -> None:
        """Orders pass through the scheduler, which looks into them: it needs the same grokscope as workers do."""
        client, answer = self.client, object()
        try:
            answer = within(IMPORT_SECONDS, lambda: client.run_on_scheduler(versions)), {}
        except OSError:
            raise
        except Exception as error:
            answer = error
        if reason := _why_not(answer):
            raise ClusterError(f"the scheduler {place.address} {reason}")

    def _drop_client(self) -> None:
        client, self.client = self.client, None
        self.workers, self._asked = {}, {}
        if client is not None:
            aside(lambda: client.close(timeout=2))

    def look(self) -> bool:
        """See who is there now, about once a second; whether there was time for it.

        An error if nobody has come for too long, if a first worker has another version of grokscope, or if the
        scheduler has gone away, or has not answered, for too long.
        """
        place = self._started
        now = time.monotonic()
        if place is None or now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        if self.client is not None and not self.connected:
            note(f"The connection to the scheduler {place.address} is lost: trying to have it back.")
            self._lost = now
            self._drop_client()
        if self.client is None:
            self._reconnect(place)
            return True
        try:
            threads = self.client.nthreads(callback_timeout=SCHEDULER_SECONDS)
        except OSError:  # among them timeouts; a broken connection shows in the client's status
            self._hear_nothing(place)
            return True
        self._heard = time.monotonic()
        self._meet(threads)
        if place.jobs is not None:
            place.jobs.renew()
        if self.workers:
            self._alone = now
            self._said.clear()
        elif now - self._alone > self.request.wait_seconds:
            raise ClusterError(self._nobody())
        elif now - self._alone > PATIENT_SECONDS:
            self._say_once(f"Waiting for a worker of {self.request}, {self.request.wait_seconds:g} s at most.")
        return True

    def _hear_nothing(self, place: "Started") -> None:
        """A scheduler may hang with its connection open. What workers have done meanwhile it does not pass on."""
        now, wait = time.monotonic(), self.request.wait_seconds
        self.heard_since = now
        if not self.connected:
            return  # it does not hang, but is lost: the next look sees to it
        waiting = f"The scheduler {place.address} does not answer: waiting for it, {wait:g} s at most."
        if not self._say_once(waiting) and now - self._heard > wait:
            raise ClusterError(
                f"the scheduler {place.address} has not answered for {now - self._heard:.0f} s, although the "
                "connection is open; nothing is lost, and the same command goes on"
            )

    def _say_once(self, message: str) -> bool:
        """Say what is waited for; False if that was said before."""
        if message in self._said:
            return False
        self._said.add(message)
        note(message)
        return True

    def _reconnect(self, place: "Started") -> None:
        try:
            self._make_client(place, SCHEDULER_SECONDS)
        except OSError as error:
            self._drop_client()
            if time.monotonic() - self._lost > self.request.wait_seconds:
                raise ClusterError(
                    f"the scheduler {place.address} went away and did not come back within "
                    f"{self.request.wait_seconds:g} s; nothing is lost, and the same command goes on"
                ) from error

    def _meet(self, threads: dict[str, int]) -> None:
        """Ask new workers who they are, take up those that have answered, and forget those that have gone."""
        for address in [*self.workers, *self._asked]:
            if address not in threads:
                self.workers.pop(address, None)
                self._asked.pop(address, None)
        new = [address for address in threads if address not in (self.workers | self._asked)]
        if new := [address for address in new if address not in self._shunned]:
            self._asked |= {address: threads[address] for address in new}
            client = self.client
            aside(lambda: self._answers.put(client.run(introduce, workers=new, on_error="return")))
        try:
            while True:
                self._take_up(self._answers.get_nowait())
        except Empty:
            pass

    def _take_up(self, answers: dict[str, Any]) -> None:
        first = not self.workers
        for address, answer in answers.items():
            threads = self._asked.pop(address, None)
            if threads is None or isinstance(answer, OSError):
                continue  # it has gone; if it is there after all, it is asked again
            if reason := _why_not(answer):
                self._shunned.add(address)
                if first:
                    raise ClusterError(f"the worker {address} {reason}")
                note(f"The worker {address} is not used: it {reason}")
                continue
            gpus = int(answer[1].get("GPU", 0))
            self.workers[address] = ClusterWorker(address, threads, gpus)

    def give_up(self, address: str) -> None:
        """Use a worker no more that does not answer; if it has a nanny, that starts another in its place."""
        self.workers.pop(address, None)
        self._shunned.add(address)
        client = self.client
        aside(lambda: client.restart_workers([address], timeout=30, raise_for_error=False))

    def forgive(self, address: str) -> None:
        """Ask a worker again that was given up."""
        self._shunned.discard(address)

    def tell(self, function: Callable[..., None], *arguments: object, workers: list[str]) -> None:
        """Call a function in worker processes, beside what they are at work on. Does not wait for it."""
        client = self.client
        if client is not None and workers:
            aside(lambda: client.run(function, *arguments, workers=workers, on_error="ignore"))

    def _nobody(self) -> str:
        request, seconds = self.request, f"{self.request.wait_seconds:g} s"
        if request.kind == "address":
            return (
                f"no worker that can be used came to {request} within {seconds}; one is started with: "
                f"dask worker {request.address} --nthreads 1"
            )
        longer = "; wait_seconds in the --cluster-config waits longer" if request.kind in QUEUES else ""
        return f"none of the workers of {request} came within {seconds}{longer}"


def _why_not(answer: object) -> str | None:
    """What keeps a worker from being used, as the end of a sentence; None if nothing does."""
    if isinstance(answer, Exception) and ("ModuleNotFound" in repr(answer) or "ImportError" in repr(answer)):
        here = versions()["grokscope"]
        return f"has no grokscope, or one without clusters, and here is {here}: {in_one_line(str(answer))}"
    if not (isinstance(answer, tuple) and len(answer) == 2 and all(isinstance(part, dict) for part in answer)):
        return f"says nothing that can be understood: {in_one_line(repr(answer))}"
    ours, theirs = versions(), answer[0]
    for what, version in ours.items():
        if theirs.get(what) != version:
            return f"has {what} {theirs.get(what)}, and here is {version}: both need the same"
    return None


class _silenced:  # noqa: N801 (used like a function)
    """While it lasts, Dask does not log to the terminal: what matters of it grokscope says itself."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def __enter__(self) -> None:
        self._before, self._logger.disabled = self._logger.level, False
        self._logger.setLevel(logging.CRITICAL + 1)

    def __exit__(self, *_: object) -> None:
        self._logger.setLevel(self._before)


def _reason(error: OSError) -> str:
    words = str(error.__cause__ or "") or str(error)
    words = re.sub(r"in <[^>]*>: ", "", words)  # the object of Dask's that met it says nothing
    return in_one_line(words) or "nothing answers there; one is started with: dask scheduler"

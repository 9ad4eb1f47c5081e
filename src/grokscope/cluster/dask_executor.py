"""Runs on the workers of a Dask cluster. Only the process that this is in opens the store.

A run is done in pieces: a worker gets its spec and its checkpoint, and answers after some seconds with the result or
with the next checkpoint, which is checked and stored here. Each piece is ordered from one worker, so it is known whose
fault it is that an answer does not come.
"""

import secrets
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from distributed import KilledWorker, as_completed

from grokscope.cluster import remote
from grokscope.cluster.calls import aside
from grokscope.cluster.connection import ClusterWorker, DaskCluster
from grokscope.cluster.parcels import Broken, Done, Order, Paused, RunOrder, Untouched, news_topic
from grokscope.cluster.validation import checked_checkpoint, checked_result, is_row
from grokscope.engines import stack_key
from grokscope.errors import StoreError, in_one_line
from grokscope.extension import ExtensionError, explained
from grokscope.measure import Row
from grokscope.spec import RunSpec
from grokscope.store import LeaseAnswer, Store
from grokscope.store.contents import Damaged, pack_checkpoint
from grokscope.sweeps.executor import Assignment, Choose
from grokscope.sweeps.messages import (
    Failed,
    Finished,
    Internal,
    Measured,
    Progress,
    Started,
    Stopped,
    StoreBroken,
    Waiting,
)
from grokscope.sweeps.running import MOST_STACKED, Running
from grokscope.sweeps.tracking import Tracker

PIECE_SECONDS = 10.0  # that a worker works on a run before it answers, in a small cluster
CHECKPOINTS_A_SECOND = 10.0  # that come to the coordinator at most: in a large cluster pieces are longer
SHORT_SECONDS = 2.0  # if runs are shorter, a worker is given its next order before it has answered,
BUNDLE_SECONDS = 1.0  # and an order has as many of them as take about this long,
MOST_BUNDLED = 16  # but no more than this
MOST_LOSSES = 3  # of workers with one run, one after another
RENEW_SECONDS = 20.0  # well within what a lease lasts
STOP_SECONDS = 20.0  # that workers have for their last checkpoints
GPU = "cuda"  # the device of a worker with a GPU, unless --device says otherwise


class Lane(NamedTuple):
    """How some of the workers do runs."""

    engine: str
    device: str
    at_once: int
    gpu: bool


@dataclass(eq=False)
class _Piece:
    """An order that was given to a worker."""

    tasks: list[Assignment]
    worker: ClusterWorker
    lane: Lane
    future: Any
    seconds: float  # in which it should be answered
    given: float
    since: float | None = None  # when the worker could begin with it


class DaskExecutor:
    """Gives orders to workers, stores what they answer, and goes on elsewhere when they do not."""

    def __init__(self, cluster: DaskCluster, store: Path, running: Running) -> None:
        self._cluster, self._running = cluster, running
        self._tracker = Tracker(running.track)  # workers never see the directory: rows come with their answers
        self._store = Store(store, create=False)
        self._session = secrets.token_hex(8)
        self._client: Any = None
        self._done: Any = None
        self._pieces: dict[str, _Piece] = {}
        self._queues: dict[str, list[_Piece]] = defaultdict(list)  # by the worker's address, in the order of orders
        self._back: dict[Lane, deque[Assignment]] = {}  # runs that are to be gone on with
        self._said: deque[Progress | Internal] = deque()
        self._leased: dict[int, RunSpec] = {}
        self._silent: dict[str, str] = {}  # orders that workers were given up with, and these workers' addresses
        self._news: deque[object] = deque()  # as Dask's own thread hears them
        self._losses: Counter[int] = Counter()  # of workers with a run, since it was heard of last
        self._typical = 2 * SHORT_SECONDS  # that a run takes, or a piece of it; until that is known
        self._renewed = time.monotonic()
        self._stop_by: float | None = None

    # ---- the executor -------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether runs are under way, or something is to be said about them."""
        return bool(self._pieces or self._said or any(self._back.values()))

    def prepare(self, pieces: int) -> None:
        """Nothing: whoever comes is given work."""

    def assign(self, choose: Choose) -> None:
        """Give orders to all workers that can take one: first one for each of their slots, then one in advance."""
        for ahead in (1, 2) if self._typical < SHORT_SECONDS else (1,):
            for worker in list(self._cluster.workers.values()):
                lane = self._lane(worker)
                while lane and self._cluster.connected and len(self._queues[worker.address]) < ahead * worker.slots:
                    if not (tasks := self._next(lane, choose)):
                        break
                    self._order(worker, lane, tasks)

    def messages(self, timeout: float) -> Iterator[Progress | Internal]:
        """What workers have answered, and what became of those that do not answer."""
        try:
            timeout = 0 if self._said else timeout
            while self._said:  # first: that a run was begun with comes before how it ended
                yield self._said.popleft()
            for future, answer in self._answers(timeout):
                yield from self._take(future, answer)
            yield from self._measured()
            if self._cluster.look():
                yield from self._look_after()
        except StoreError as error:
            self._forget_all()
            yield StoreBroken(str(error))

    def stop(self) -> None:
        """Ask for the last checkpoints."""
        if self._stop_by is None:
            self._stop_by = time.monotonic() + STOP_SECONDS
            self._tell_to_stop()
        for lane in self._back.values():
            while lane:
                self._give_back(lane.popleft())

    def close(self) -> None:
        """Take back all orders and leases."""
        self._tell_to_stop()
        self._forget_all()
        if self._client is not None:
            aside(lambda: self._client.unsubscribe_topic(news_topic(self._session)))
        with suppress(StoreError):  # there may be another on its way, which says more
            for spec in self._leased.values():
                self._store.release(spec.run_id)
        self._store.close()

    def _tell_to_stop(self) -> None:
        at_work = [address for address, queue in self._queues.items() if queue]
        self._cluster.tell(remote.stop, self._session, workers=at_work)

    # ---- orders -------------------------------------------------------------------------------------------------

    def _lane(self, worker: ClusterWorker) -> Lane | None:
        """How this worker does runs: by Dask's resource GPU. None if it has not the device that was asked for."""
        engine, device = self._running.engine, self._running.device
        if worker.gpus and (device != "cpu" or engine == "auto"):
            stacked = engine in ("auto", "stacked")
            device = GPU if device == "cpu" else device
            return Lane("stacked" if stacked else engine, device, MOST_STACKED if stacked else 1, gpu=True)
        if not worker.has(device):
            return None
        return Lane(engine, "cpu", self._running.at_once, gpu=False)

    def _next(self, lane: Lane, choose: Choose) -> list[Assignment]:
        """Runs for one order, those that were begun with first."""
        if lane.at_once > 1:
            return self._next_stack(lane, choose)
        tasks: list[Assignment] = []
        waiting, most = self._waiting(lane), min(MOST_BUNDLED, max(1, int(BUNDLE_SECONDS / self._typical)))
        while waiting and len(tasks) < most:
            if self._losses[waiting[0][0]]:  # a run whose worker was lost is alone with the next
                return tasks or [waiting.popleft()]
            tasks.append(waiting.popleft())
        while len(tasks) < most and (chosen := choose(1)):
            tasks += [task for task in chosen if self._lease(*task)]
        return tasks

    def _next_stack(self, lane: Lane, choose: Choose) -> list[Assignment]:
        """Runs that can advance together."""
        if waiting := self._waiting(lane):
            first = waiting.popleft()
            if self._losses[first[0]]:
                return [first]
            key = stack_key(first[1])
            near = [task for task in islice(waiting, 4 * lane.at_once) if not self._losses[task[0]]]
            others = [task for task in near if stack_key(task[1]) == key][: lane.at_once - 1]
            for task in others:
                waiting.remove(task)
            return [first, *others]
        while chosen := choose(lane.at_once):
            if leased := [task for task in chosen if self._lease(*task)]:
                return leased
        return []

    def _waiting(self, lane: Lane) -> deque[Assignment]:
        """The runs that are to be gone on with in this lane, and those of lanes whose workers have all gone."""
        waiting = self._back.setdefault(lane, deque())
        if any(others for other, others in self._back.items() if other != lane):
            there = {self._lane(worker) for worker in self._cluster.workers.values()}
            for other, others in self._back.items():
                if other != lane and other not in there:
                    waiting.extend(others)
                    others.clear()
        return waiting

    def _lease(self, index: int, spec: RunSpec) -> bool:
        """Ask the store for a run; if it cannot be had, say why."""
        running = self._running
        kept = running.snapshots_of(spec)
        match self._store.lease(spec.run_id, weights=running.weights, snapshots=kept, again=running.again):
            case LeaseAnswer.HELD:
                self._said.append(Waiting(index, self._store.holder(spec.run_id) or "another process"))
            case LeaseAnswer.DONE if run := self._store.find(spec.run_id):
                self._said.append(Finished(index, run.phase, run.seconds))
            case _:
                self._leased[index] = spec
                self._said.append(Started(index))
                return True
        return False

    def _order(self, worker: ClusterWorker, lane: Lane, tasks: list[Assignment]) -> None:
        try:
            code = {place: files for _, spec in tasks for place, files in self._cluster.traveller.pack(spec).items()}
        except ExtensionError as error:
            for index, spec in tasks:
                self._said.append(self._fail(index, spec, str(error), f"{error}\n"))
            return
        runs = tuple(RunOrder(spec.model_dump(mode="json"), self._checkpoint(spec)) for _, spec in tasks)
        seconds = max(PIECE_SECONDS, self._cluster.slots_now * len(tasks) / CHECKPOINTS_A_SECOND)
        running = self._running
        order = Order(self._session, runs, code, lane.engine, lane.device, running.weights, seconds, running.snapshots)
        future = self._cluster.client.submit(
            remote.advance,
            order,
            key=f"grokscope-{self._session}-{secrets.token_hex(8)}",
            workers=[worker.address],
            resources={"GPU": 1} if lane.gpu else None,
            pure=False,
        )
        piece = _Piece(tasks, worker, lane, future, seconds, time.monotonic())
        self._pieces[future.key] = piece
        self._queues[worker.address].append(piece)
        self._begin(worker)
        self._inbox().add(future)

    def _checkpoint(self, spec: RunSpec) -> bytes | None:
        if kept := self._running.snapshots_of(spec):  # they stay here: what travels does not grow from piece to piece
            start = self._store.load_checkpoint(spec)
            if start is None or not start.has_snapshots(kept):
                return None
            return pack_checkpoint(spec.run_id, replace(start, weights_at={})).content
        try:
            return self._store.checkpoint_bytes(spec.run_id)
        except Damaged:
            return None

    def _earlier(self, spec: RunSpec) -> dict[str, Any]:
        """Which snapshots are wanted, and those that earlier pieces have brought."""
        kept = self._running.snapshots_of(spec)
        start = self._store.load_checkpoint(spec) if kept else None
        return {"snapshots": kept, "earlier": start.weights_at if start else {}}

    def _begin(self, worker: ClusterWorker) -> None:
        """Note which orders the worker can be at work on now."""
        for piece in self._queues[worker.address][: worker.slots]:
            piece.since = piece.since or time.monotonic()

    # ---- answers ------------------------------------------------------------------------------------------------

    def _inbox(self) -> Any:
        """Collects answers; that of an earlier connection has none left."""
        if self._client is not self._cluster.client:
            self._client = self._cluster.client
            self._client.subscribe_topic(news_topic(self._session), self._news.append)
            self._done = as_completed(loop=self._client.loop, with_results=True, raise_errors=False)
        return self._done

    def _answers(self, timeout: float) -> list[tuple[Any, Any]]:
        if self._cluster.client is None:
            time.sleep(timeout)
            return []
        inbox = self._inbox()
        with inbox.thread_condition:
            if not inbox.has_ready():
                inbox.thread_condition.wait(timeout)
        return list(inbox.next_batch(block=False))

    def _take(self, future: Any, answer: Any) -> Iterator[Progress | Internal]:
        piece, status = self._remove(future.key), future.status
        future.release()
        if silent := self._silent.pop(future.key, None):
            self._cluster.forgive(silent)  # it has been heard of after all
        if piece is None:
            return  # it was taken back
        if status == "cancelled":  # with the connection to the scheduler, which is nobody's fault
            self._put_back(piece.tasks, piece.lane)
        elif status == "error" and isinstance(answer[1], KilledWorker):
            yield from self._lose(piece, "died, as happens when memory runs out")
        elif status == "error":
            reason = f"the worker {piece.worker.address} could not do it: {in_one_line(explained(answer[1]))}"
            for index, spec in piece.tasks:
                yield self._fail(index, spec, reason, f"{reason}\n")
        else:
            took = (time.monotonic() - (piece.since or piece.given)) / len(piece.tasks)
            self._typical += (took - self._typical) / 8
            yield from self._accept(piece, answer)

    def _measured(self) -> Iterator[Measured]:
        """What runs have measured on their way. News that are none are ignored."""
        places = {spec.run_id: index for index, spec in self._leased.items()} if self._news else {}
        while self._news:
            match self._news.popleft():
                case _, (str(run_id), dict(row)) if run_id in places and is_row(row):
                    yield Measured(places[run_id], Row(row))

    def _accept(self, piece: _Piece, answers: Any) -> Iterator[Progress | Internal]:
        """Store what a worker has answered, after it was checked."""
        whole = isinstance(answers, list) and len(answers) == len(piece.tasks)
        for place, (index, spec) in enumerate(piece.tasks):
            try:
                yield from self._accept_one(index, spec, answers[place] if whole else answers, piece.lane)
            except StoreError:
                raise
            except Exception as error:  # of what a worker answers anything may come
                why = error if isinstance(error, Damaged) else explained(error)
                reason = in_one_line(f"the worker {piece.worker.address} answered with no result of this run: {why}")
                yield self._fail(index, spec, reason, f"{reason}\n")

    def _accept_one(self, index: int, spec: RunSpec, answer: Any, lane: Lane) -> Iterator[Progress | Internal]:
        match answer:
            case Done(bytes(content)):
                result = checked_result(content, spec, weights=self._running.weights, **self._earlier(spec))
                self._store.save(result, weights=self._running.weights)
                self._tracker.write(spec, result.curve, result.status)
                self._end(index)
                yield Finished(index, result.phase, result.seconds)
            case Paused(bytes(content)):
                checkpoint = checked_checkpoint(content, spec, **self._earlier(spec))
                self._store.save_checkpoint(spec.run_id, checkpoint)
                self._tracker.write(spec, checkpoint.curve)
                self._losses.pop(index, None)
                if checkpoint.curve:
                    yield Measured(index, checkpoint.curve[-1])
                self._put_back([(index, spec)], lane)
            case Untouched():
                self._put_back([(index, spec)], lane)
            case Broken(str(reason), str(trace)):
                yield self._fail(index, spec, in_one_line(reason), trace)
            case _:
                raise Damaged(f"it is {in_one_line(repr(answer))}")

    def _remove(self, key: str) -> _Piece | None:
        piece = self._pieces.pop(key, None)
        if piece is not None:
            self._queues[piece.worker.address].remove(piece)
            self._begin(piece.worker)
        return piece

    def _fail(self, index: int, spec: RunSpec, reason: str, trace: str) -> Failed:
        self._store.save_failure(spec, reason, trace)
        self._end(index)
        return Failed(index, reason)

    def _end(self, index: int) -> None:
        self._leased.pop(index, None)
        self._losses.pop(index, None)

    def _put_back(self, tasks: list[Assignment], lane: Lane) -> None:
        if self._stop_by is None:
            self._back.setdefault(lane, deque()).extend(tasks)
        else:
            for task in tasks:
                self._give_back(task)

    def _give_back(self, task: Assignment) -> None:
        index, spec = task
        self._store.release(spec.run_id)
        self._end(index)
        self._said.append(Stopped(index))

    # ---- workers that do not answer -----------------------------------------------------------------------------

    def _look_after(self) -> Iterator[Progress | Internal]:
        """Go on elsewhere with what lost and silent workers had; keep the leases."""
        now, there = time.monotonic(), self._cluster.workers
        for address in [address for address, queue in self._queues.items() if queue]:
            if self._cluster.client is not self._client:  # the scheduler was lost, and all orders with it
                yield from self._take_all(address, None)
            elif address not in there:
                yield from self._take_all(address, "died, as happens when memory runs out")
            elif silent := self._silence(address, now):
                self._cluster.give_up(address)
                yield from self._take_all(address, f"gave no news for {silent:.0f} s", listening=True)
        if self._stop_by is not None and now > self._stop_by:
            for piece in list(self._pieces.values()):
                self._take_back(piece)
                self._put_back(piece.tasks, piece.lane)
        if now - self._renewed >= RENEW_SECONDS:
            self._store.renew(*(spec.run_id for spec in self._leased.values()))
            self._renewed = now
        self._cluster.check_device(self._running.device)

    def _silence(self, address: str, now: float) -> float:
        """For how long a worker has given no news, if that is too long; otherwise 0.

        News come through the scheduler: while it does not answer, no worker is to blame.
        """
        for piece in self._queues[address]:
            silent = now - max(piece.since or now, self._cluster.heard_since)
            if silent > piece.seconds + self._cluster.request.silent_seconds:
                return silent
        return 0.0

    def _take_all(self, address: str, fault: str | None, *, listening: bool = False) -> Iterator[Progress | Internal]:
        """Take back what a worker had. Those that it was at work on may be what was wrong with it."""
        pieces = list(self._queues[address])
        begun = [piece for piece in pieces if piece.since is not None]
        for piece in pieces:
            self._remove(piece.future.key)
            if listening and piece in begun:
                self._silent[piece.future.key] = address
            else:
                piece.future.release()
            if fault is not None and piece in begun:
                yield from self._lose(piece, fault)
            else:
                self._put_back(piece.tasks, piece.lane)

    def _take_back(self, piece: _Piece) -> None:
        self._remove(piece.future.key)
        piece.future.release()

    def _lose(self, piece: _Piece, fault: str) -> Iterator[Progress | Internal]:
        for index, spec in piece.tasks:
            self._losses[index] += 1
            if self._losses[index] < MOST_LOSSES:
                self._put_back([(index, spec)], piece.lane)
                continue
            reason = f"{MOST_LOSSES} workers in a row were lost with it: the last, {piece.worker.address}, {fault}"
            yield self._fail(index, spec, reason, f"{reason}\n")

    def _forget_all(self) -> None:
        for piece in list(self._pieces.values()):
            self._take_back(piece)
        self._back.clear()

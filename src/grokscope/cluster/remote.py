"""What workers do. Runs on other machines, which never see the store.

answers = advance(order)    # trains for `order.seconds`, and returns results or checkpoints

A worker does a piece of a run and answers. So a lost worker costs one piece, a run moves to any other worker, and what
a vanished coordinator has ordered ends by itself.
"""

import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grokscope
from grokscope.cluster.code import moved, unpack_code
from grokscope.cluster.parcels import Answer, Broken, Done, Order, Paused, RunOrder, Untouched, news_topic
from grokscope.engines import is_out_of_memory, runs_that_fit
from grokscope.errors import in_one_line
from grokscope.extension import explained
from grokscope.measure import Moment, Row
from grokscope.result import Checkpoint
from grokscope.snapshots import snapshot_steps
from grokscope.spec import SPEC_FORMAT, RunSpec
from grokscope.store.contents import checkpoint_from, pack_checkpoint, pack_run, unpack
from grokscope.store.opened import now
from grokscope.store.records import record_of
from grokscope.store.schema import SCHEMA_VERSION
from grokscope.training import Job, RunGroup

NEWS_A_PIECE = 10  # that a run gives at most before its answer

_STOPPED: set[str] = set()  # sessions whose coordinator was asked to stop
_IMPORTING = threading.Lock()  # two threads must not import one user's file at the same time


def versions() -> dict[str, str]:
    """What has to be the same on the coordinator and on every worker."""
    return {
        "grokscope": grokscope.__version__,
        "the format of specs": str(SPEC_FORMAT),
        "the format of stores": str(SCHEMA_VERSION),
    }


def introduce(dask_worker: Any) -> tuple[dict[str, str], dict[str, float]]:
    """What a new worker says of itself: its versions, and its resources as Dask counts them."""
    return versions(), dict(dask_worker.state.total_resources)


def stop(session: str) -> None:
    """Let the runs of a session answer at once, with checkpoints."""
    _STOPPED.add(session)


def advance(order: Order) -> list[Answer]:
    """Go on with some runs of an order for a while; an answer for each of them."""
    ends = time.monotonic() + order.seconds
    answers: list[Answer] = [Untouched()] * len(order.runs)
    jobs: dict[int, Job] = {}
    if order.session in _STOPPED:
        return answers
    with _IMPORTING:
        places = unpack_code(order.code, _directory()) if order.code else {}
        for place, run in enumerate(order.runs):
            try:
                jobs[place] = _job(run, order, places)
            except Exception as error:  # a user's code may raise anything
                answers[place] = _broken(error)
    orders = [jobs] if order.engine == "stacked" else [{place: job} for place, job in jobs.items()]

    def enough() -> bool:
        return order.session in _STOPPED or time.monotonic() >= ends

    for number, group in enumerate(orders):
        if number and enough():
            break
        for place, answer in _train(group, order, enough).items():
            answers[place] = answer
    return answers


def _job(run: RunOrder, order: Order, places: dict[str, str]) -> Job:
    spec = RunSpec.stored(moved(dict(run.spec), places)).resolved()
    kept = snapshot_steps(spec.training, order.snapshots)
    return Job(spec, _start(run.checkpoint, spec), _Reporter(spec.run_id, order), snapshots=kept)


class _Reporter:
    """Tells the coordinator what a run has measured, some times during a piece."""

    def __init__(self, run_id: str, order: Order) -> None:
        self._run_id, self._topic, self._every = run_id, news_topic(order.session), order.seconds / NEWS_A_PIECE
        self._told = time.monotonic()

    def __call__(self, row: Row, _: Moment) -> None:
        from distributed import get_worker

        if time.monotonic() - self._told >= self._every:
            self._told = time.monotonic()
            with suppress(ValueError):  # outside a worker nobody listens
                get_worker().log_event(self._topic, (self._run_id, dict(row)))


def _directory() -> Path:
    """Where users' files are written: Dask removes it with the worker."""
    from distributed import get_worker

    return Path(get_worker().local_directory) / "grokscope-code"


def _start(checkpoint: bytes | None, spec: RunSpec) -> Checkpoint | None:
    try:
        return checkpoint_from(unpack(checkpoint), spec) if checkpoint is not None else None
    except Exception:  # unusable: as in a store, the run starts from the beginning
        return None


def _train(jobs: dict[int, Job], order: Order, enough: Callable[[], bool]) -> dict[int, Answer]:
    """Train those that are least far, as many as there is memory for: together they have to be at the same step."""
    if not jobs:
        return {}
    least = min(_step(job) for job in jobs.values())
    chosen = [place for place, job in jobs.items() if len(jobs) == 1 or _step(job) == least]
    if len(chosen) > 1:
        chosen = chosen[: max(1, runs_that_fit(jobs[chosen[0]].spec, order.device))]
    try:
        return _train_together({place: jobs[place] for place in chosen}, order, enough)
    except Exception as error:
        if len(chosen) > 1 and is_out_of_memory(error):
            error.__traceback__ = None  # it holds on to the arrays of the stack
            return _train({place: jobs[place] for place in chosen[: len(chosen) // 2]}, order, enough)
        return {place: _broken(error) for place in chosen}


def _train_together(jobs: dict[int, Job], order: Order, enough: Callable[[], bool]) -> dict[int, Answer]:
    places, run_ids = list(jobs), [job.spec.run_id for job in jobs.values()]
    group = RunGroup(list(jobs.values()), engine=order.engine, device=order.device)
    for _ in group.train():
        if enough():
            checkpoints = group.checkpoints().items()
            return {places[i]: Paused(pack_checkpoint(run_ids[i], state).content) for i, state in checkpoints}
    answers: dict[int, Answer] = {}
    for place, result in zip(places, group.results(), strict=True):
        record = record_of(result, now(), weights=order.weights and result.weights is not None)
        answers[place] = Done(pack_run(result, record, weights=order.weights).content)
    return answers


def _step(job: Job) -> int:
    return job.start.state.step if job.start and job.start.engine == "stacked" else 0


def _broken(error: Exception) -> Broken:
    return Broken(in_one_line(explained(error)), "".join(traceback.format_exception(error)))

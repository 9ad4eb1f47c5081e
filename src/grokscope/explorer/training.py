"""Training from the page, one run after the other, each saved with its weights.

trainings = Trainings(Path("grokscope-runs"))
trainings.start(spec)
trainings.status(spec.run_id).curve["test_accuracy"]

It takes a lease like every other worker, so no run is trained twice at a time.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Literal

from pydantic import BaseModel

from grokscope.errors import GrokscopeError, SpecError, StoreError
from grokscope.explorer.models import Numbers
from grokscope.explorer.numbers import numbers
from grokscope.measure import Row
from grokscope.result import Checkpoint
from grokscope.spec import RunSpec
from grokscope.store import LeaseAnswer, Store
from grokscope.sweeps.estimate import relative_cost
from grokscope.training import execute

MOST_WAITING = 8
MOST_KEPT = 16  # finished trainings whose curves stay in memory
MOST_COST = 2e14  # multiplications: some ten minutes on one core
RENEW_SECONDS = 20.0
CLOSE_SECONDS = 30.0  # a run pauses several times a second, unless a single step takes longer
_CURVE = ("train_accuracy", "test_accuracy", "corrupted_accuracy", "recovered_accuracy", "mean_ipr")

# What the form of the page may set.
FIELDS = (
    "task.modulus",
    "task.data_fraction",
    "task.corruption",
    "optimizer.weight_decay",
    "optimizer.learning_rate",
    "model.dropout",
    "model.activation",
    "model.width",
    "training.steps",
    "training.seed",
)

State = Literal["waiting", "training", "stored", "stopped", "failed"]


class TrainingView(BaseModel):
    """A run that the page has asked for."""

    run_id: str
    state: State
    words: str
    step: int
    steps: int
    curve: dict[str, Numbers]


class TooManyError(GrokscopeError):
    """More runs were asked for than may wait."""


class _Stopped(Exception):  # noqa: N818 (not an error)
    """Raised inside a run that somebody has stopped."""


class Training:
    """A run on its way."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.state: State = "waiting"
        self.words = "waits for its turn"
        self.rows: list[Row] = []
        self.stopping = threading.Event()

    def view(self) -> TrainingView:
        """For the page."""
        rows = list(self.rows)
        curve = {name: numbers(row[name] for row in rows) for name in ("step", *_CURVE)}
        return TrainingView(
            run_id=self.spec.run_id,
            state=self.state,
            words=self.words,
            step=rows[-1].step if rows else 0,
            steps=self.spec.training.steps,
            curve=curve,
        )


class Trainings:
    """All runs that were asked for since the server started; one thread does them in turn."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: OrderedDict[str, Training] = OrderedDict()
        self._queue: Queue[Training | None] = Queue()  # None ends it
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, daemon=True, name="grokscope-training")
        self._thread.start()

    def close(self) -> None:
        """Stop everything; the run under way writes a checkpoint first."""
        with self._lock:
            for training in self._known.values():
                training.stopping.set()
        self._queue.put(None)
        self._thread.join(timeout=CLOSE_SECONDS)

    def start(self, spec: RunSpec) -> TrainingView:
        """Train a run as soon as those before it are done."""
        check_trainable(spec)
        with self._lock:
            before = self._known.get(spec.run_id)
            if before and before.state in ("waiting", "training"):
                return before.view()
            if sum(training.state in ("waiting", "training") for training in self._known.values()) >= MOST_WAITING:
                raise TooManyError(f"{MOST_WAITING} runs are waiting already; stop one, or wait")
            training = Training(spec)
            self._known[spec.run_id] = training
            self._known.move_to_end(spec.run_id)
            self._forget()
        self._queue.put(training)
        return training.view()

    def _forget(self) -> None:
        over = [key for key, known in self._known.items() if known.state not in ("waiting", "training")]
        for key in over[: max(0, len(self._known) - MOST_KEPT)]:
            del self._known[key]

    def stop(self, run_id: str) -> TrainingView:
        """Stop a run; a later training goes on from its checkpoint."""
        training = self._find(run_id)
        training.stopping.set()
        return training.view()

    def all(self) -> list[TrainingView]:
        """Newest first."""
        with self._lock:
            return [training.view() for training in reversed(self._known.values())]

    def status(self, run_id: str) -> TrainingView:
        """How far a run is."""
        return self._find(run_id).view()

    def _find(self, run_id: str) -> Training:
        with self._lock:
            if run_id not in self._known:
                raise StoreError(f"run {run_id} was not asked for here")
            return self._known[run_id]

    def _work(self) -> None:
        while (training := self._queue.get()) is not None:
            if training.stopping.is_set():
                training.state, training.words = "stopped", "stopped before it began"
                continue
            try:
                self._train(training)
            except _Stopped:
                training.state, training.words = "stopped", "stopped; training it again goes on from here"
            except Exception as error:  # whatever it is, the next run must go on
                training.state, training.words = "failed", f"{error}" or type(error).__name__

    def _train(self, training: Training) -> None:
        store, run_id = Store(self._path, create=True), training.spec.run_id
        try:
            if store.lease(run_id, again=True) is LeaseAnswer.HELD:
                raise GrokscopeError(f"run {run_id} is being trained by {store.holder(run_id) or 'another process'}")
            training.state, training.words = "training", "is being trained"
            try:
                start = store.load_checkpoint(training.spec)
                training.rows += start.curve if start else ()
                result = execute(
                    training.spec,
                    start=start,
                    on_measurement=lambda row, _: training.rows.append(row),
                    on_pause=self._keeping(store, training),
                )
                store.save(result, weights=True)
            finally:
                store.release(run_id)
            training.state, training.words = "stored", result.describe()
        finally:
            store.close()

    def _keeping(self, store: Store, training: Training) -> Callable[[Callable[[], Checkpoint]], None]:
        renewed = time.monotonic()

        def on_pause(checkpoint: Callable[[], Checkpoint]) -> None:
            nonlocal renewed
            if training.stopping.is_set():
                if store.find(training.spec.run_id) is None:  # a stored run that is trained again needs none
                    store.save_checkpoint(training.spec.run_id, checkpoint())
                raise _Stopped
            if time.monotonic() - renewed >= RENEW_SECONDS:
                store.renew(training.spec.run_id)
                renewed = time.monotonic()

        return on_pause


def check_trainable(spec: RunSpec) -> None:
    """Refuse what a page must not start: a user's own code, and runs that take very long."""
    if spec.code():
        raise GrokscopeError("a run with code of its own is trained from the command line: grokscope train")
    if relative_cost(spec) > MOST_COST:
        raise GrokscopeError("this run would take very long; train it from the command line: grokscope train")


def spec_from(fields: dict[str, str | int | float]) -> RunSpec:
    """The spec that the form of the page describes.

    >>> spec_from({"task.modulus": 31, "optimizer.weight_decay": 5}).task.modulus
    31
    """
    for path in fields:
        if path not in FIELDS:
            raise SpecError(f"{path!r} cannot be set here: must be one of {', '.join(FIELDS)}")
    return RunSpec().updated_from_text({path: str(value) for path, value in fields.items()})

"""Curves for TensorBoard, written while runs are trained: one directory for each run, named by its id.

tracker = Tracker(Path("grokscope-runs-tensorboard"))
tracker.begin(spec)
tracker.add(spec, row)
tracker.end(spec, "finished")

The event file of a run always has the curve of the run and nothing else. A run that goes on from a checkpoint gets a
new file with the rows that the checkpoint has, so no step is there twice, whatever was written before a crash. What
goes wrong here is said once, and never stops a run.
"""

import itertools
import math
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from grokscope.errors import GrokscopeError, did_you_mean, in_one_line, quoted
from grokscope.measure import Row
from grokscope.notes import note
from grokscope.spec import RunSpec
from grokscope.store import Store

TRACKERS = ("tensorboard",)
FLUSH_SECONDS = 1.0  # between two times at which somebody who looks on sees news

_EVENTS = "events.out.tfevents."  # what TensorBoard looks for
_numbers = itertools.count()  # so that two files of one second have different names


def track_directory(track: str | None, directory: str | Path | None, store: Path) -> Path | None:
    """Where to write event files; None if nothing is to be tracked, or cannot be, which is said.

    Without a directory it is one beside the store.
    """
    if track is None:
        if directory is not None:
            raise GrokscopeError("a directory to track in goes with a tracker: --track tensorboard")
        return None
    if track not in TRACKERS:
        raise GrokscopeError(
            f"track = {quoted(track)} is not allowed: must be {' or '.join(TRACKERS)}{did_you_mean(track, TRACKERS)}"
        )
    place = Path(directory) if directory is not None else store.with_name(f"{store.absolute().name}-tensorboard")
    if find_spec("tensorboard") is None:
        note("Nothing is tracked: TensorBoard is not installed; pip install 'grokscope[track]'")
        return None
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not os.access(place, os.W_OK):
            raise PermissionError(None, "this user may not write there")
    except OSError as error:
        note(f"Nothing is tracked: cannot write {place}: {error.strerror or error}")
        return None
    note(f"TensorBoard shows the curves with: tensorboard --logdir {place}")
    return place.absolute()


class Tracker:
    """Event files of the runs under way. Without a directory it does nothing."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._files: dict[str, _EventFile] = {}

    @property
    def works(self) -> bool:
        """Whether nothing has gone wrong so far."""
        return self._directory is not None

    def begin(self, spec: RunSpec, curve: Sequence[Row] = ()) -> None:
        """Begin the file of a run anew, with the rows that it has so far."""
        self._try(lambda directory: self._begin(directory, spec, curve))

    def add(self, spec: RunSpec, row: Row) -> None:
        """Write a row of a run that was begun."""
        self._try(lambda directory: self._add(directory, spec, row))

    def end(self, spec: RunSpec, status: str) -> None:
        """Close the file of a run that is finished, has diverged or has failed; to be called after it is stored."""
        self._try(lambda _: self._files.pop(spec.run_id).end(status) if spec.run_id in self._files else None)

    def write(self, spec: RunSpec, curve: Sequence[Row], status: str | None = None) -> None:
        """The whole file of a run; without a status it will be written again."""
        self.begin(spec, curve)
        if status is not None:
            self.end(spec, status)
        self.close()

    def close(self) -> None:
        """Close the files of runs that are to go on later."""
        self._try(self._close)
        self._files = {}

    def _begin(self, directory: Path, spec: RunSpec, curve: Sequence[Row]) -> None:
        if spec.run_id in self._files:
            self._files[spec.run_id].close()
        self._files[spec.run_id] = _EventFile(directory / spec.run_id, spec, curve)

    def _add(self, directory: Path, spec: RunSpec, row: Row) -> None:
        file = self._files[spec.run_id]
        if row.step <= file.last_step:  # it did not go on from the checkpoint after all
            self._begin(directory, spec, ())
        self._files[spec.run_id].add(row)

    def _close(self, _: Path) -> None:
        for file in self._files.values():
            file.close()

    def _try(self, action: Callable[[Path], object]) -> None:
        if self._directory is None:
            return
        try:
            action(self._directory)
        except Exception as error:
            self._directory = None
            for file in self._files.values():
                with suppress(Exception):
                    file.close()
            note(f"Nothing more is tracked, the runs go on: {in_one_line(str(error) or type(error).__name__)}")


class _EventFile:
    """The event file of one run. Files of the same run from before are removed."""

    def __init__(self, directory: Path, spec: RunSpec, curve: Iterable[Row]) -> None:
        from tensorboard.plugins.hparams import summary_v2
        from tensorboard.summary.writer.record_writer import RecordWriter

        directory.mkdir(parents=True, exist_ok=True)
        before = list(directory.glob(f"{_EVENTS}*"))
        name = f"{_EVENTS}{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self._writer = RecordWriter((directory / name).open("xb"))
        self._flushed, self.last_step = time.monotonic(), 0
        try:
            self._write(file_version="brain.Event:2")
            fields = {path: "none" if value is None else value for path, value in spec.settings().items()}
            self._write(summary=summary_v2.hparams_pb(fields, trial_id=spec.run_id))
            for row in curve:
                self._add(row)
            self._writer.flush()
        except BaseException:
            self._writer.close()
            raise
        for file in before:
            file.unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Write a row, and let others see it if it is time."""
        self._add(row)
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self._writer.flush()
            self._flushed = time.monotonic()

    def _add(self, row: Row) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        scalars = [
            Summary.Value(tag=tag(name), simple_value=value)
            for name, value in row.items()
            if name != "step" and not math.isnan(value)
        ]
        self._write(step=row.step, summary=Summary(value=scalars))
        self.last_step = row.step

    def end(self, status: str) -> None:
        """Say how the run ended, and close."""
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

        how = api_pb2.STATUS_SUCCESS if status == "finished" else api_pb2.STATUS_FAILURE
        info = plugin_data_pb2.SessionEndInfo(status=how, end_time_secs=time.time())
        about = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=info))
        value = Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=about, tensor=metadata.NULL_TENSOR)
        self._write(summary=Summary(value=[value]))
        self.close()

    def close(self) -> None:
        """Let others see all of it."""
        self._writer.close()

    def _write(self, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.write(Event(wall_time=time.time(), **content).SerializeToString())


def tag(column: str) -> str:
    """A column as TensorBoard shows it: together with those that belong to it.

    >>> tag("test_accuracy"), tag("norm_u"), tag("mean_ipr")
    ('accuracy/test_accuracy', 'norm/norm_u', 'other/mean_ipr')
    """
    for group in ("accuracy", "loss", "norm"):
        if group in column.split("_"):
            return f"{group}/{column}"
    return f"other/{column}"


def track_stored(store: Store, run_ids: Iterable[str], directory: Path | None) -> None:
    """Write what is missing of runs that are in the store: those that were trained before, or elsewhere."""
    if directory is None:
        return
    stored = store.entries(list(dict.fromkeys(run_ids)))
    missing = [run.run_id for run in stored if not _is_newer(directory / run.run_id, run.finished_at)]
    tracker = Tracker(directory)
    for result in store.load_all(itertools.takewhile(lambda _: tracker.works, missing)):
        tracker.write(result.spec, result.curve, result.status)


def _is_newer(directory: Path, finished_at: str) -> bool:
    """Whether an event file was closed after the run was stored: then it has all of the run."""
    times = [file.stat().st_mtime for file in directory.glob(f"{_EVENTS}*")]
    return bool(times) and max(times) >= datetime.fromisoformat(finished_at).timestamp()

"""What travels between the coordinator and its workers: orders there, answers back. Plain text and bytes only.

Arrays travel as the safetensors files that a store writes. News of a run under way are its id and the last row of its
curve, for the person who looks on: if they are lost, nothing is.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from grokscope.snapshots import Snapshots

Code = Mapping[str, Mapping[str, bytes]]  # by the place that a spec names: a user's file and what it imports, by path


class RunOrder(NamedTuple):
    """One run to do."""

    spec: Mapping[str, Any]  # as JSON has it
    checkpoint: bytes | None  # where to go on from, without snapshots: those of this piece are added to the others


class Order(NamedTuple):
    """Runs to do, with the stacked engine together, otherwise one after another, and how."""

    session: str  # whose order it is; `remote.stop` names it
    runs: tuple[RunOrder, ...]
    code: Code
    engine: str
    device: str
    weights: bool  # whether the networks are wanted too
    seconds: float  # how long to work on it before the answer
    snapshots: Snapshots = None  # and which of those on the way


def news_topic(session: str) -> str:
    """Under which name Dask passes on what workers measure before they answer."""
    return f"grokscope-{session}"


class Done(NamedTuple):
    """A run that has ended."""

    content: bytes  # the file of a run


class Paused(NamedTuple):
    """A run that is to be gone on with."""

    content: bytes  # the file of a checkpoint


class Untouched(NamedTuple):
    """A run that there was no time or memory for: it is where it was."""


class Broken(NamedTuple):
    """A run that ended with an exception."""

    reason: str
    traceback: str


Answer = Done | Paused | Untouched | Broken

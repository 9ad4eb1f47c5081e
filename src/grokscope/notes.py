"""Messages to the person at the terminal, who may want more of them, or none."""

import os
import sys
from contextlib import suppress
from enum import IntEnum


class Volume(IntEnum):
    """How much is said on standard error. Errors and results are always said."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_volume = Volume.NORMAL


def set_volume(volume: Volume) -> None:
    """For this process."""
    global _volume
    _volume = volume


def volume() -> Volume:
    """How much is to be said."""
    return _volume


def shows_bars() -> bool:
    """Whether somebody sees what moves on standard error. On a dumb terminal nothing can be drawn over."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and _volume > Volume.QUIET


def note(message: str, *, always: bool = False) -> None:
    """Say something on standard error; standard output is for results. `always` is for what went wrong."""
    if _volume == Volume.QUIET and not always:
        return
    with suppress(OSError):  # a terminal that was closed is no reason to lose the work
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

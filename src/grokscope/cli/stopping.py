"""Ctrl-C on long work: the first asks it to come to an end with nothing lost, the second ends it at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from grokscope.cli.options import note


@contextmanager
def stop_on_request() -> Iterator[Callable[[], bool]]:
    """Within this, SIGINT and SIGTERM make the function that it gives return True instead of ending the program."""
    requested = False

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if requested:
            raise KeyboardInterrupt
        requested = True
        note("Stopping: saving where the runs under way stand. Ctrl-C again stops at once.")

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Ctrl-C and the like on long work: the first asks it to stop with nothing lost, the second stops it at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from grokscope.notes import note

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, a scheduler, a terminal that was closed


@contextmanager
def stop_on_request() -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether to stop. Inside, STOPPING signals set it instead of ending the program.

    Python lets only the main thread handle signals; in another one the function always says no.
    """
    requested = False

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if requested:
            raise KeyboardInterrupt
        requested = True
        note("Stopping: saving where the runs under way stand. Ctrl-C again stops at once.")

    heard = STOPPING if threading.current_thread() is threading.main_thread() else ()
    # Under nohup the end of the terminal is to be ignored.
    deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    before = {number: signal.signal(number, request) for number in heard if not (deaf and number is signal.SIGHUP)}
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

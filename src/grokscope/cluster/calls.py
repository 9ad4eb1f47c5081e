"""Calls that may take long, or for ever: to schedulers and queues that hang.

aside(lambda: client.restart_workers([address]))
client = within(10, lambda: Client(address))
"""

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

T = TypeVar("T")


def aside(call: Callable[[], object]) -> None:
    """Do something that may take long, or for ever, and whose failure changes nothing."""

    def quietly() -> None:
        try:
            call()
        except Exception:
            logging.getLogger("distributed").debug("a call to the cluster failed", exc_info=True)

    threading.Thread(target=quietly, daemon=True).start()


def within(seconds: float, call: Callable[[], T], too_late: Callable[[T], object] = lambda _: None) -> T:
    """What a call returns or raises; a TimeoutError if it takes longer. What it returns after that `too_late` gets."""
    outcome: SimpleQueue[tuple[T | None, Exception | None]] = SimpleQueue()
    given_up = threading.Event()

    def calling() -> None:
        try:
            result = call()
        except Exception as error:
            outcome.put((None, error))
        else:
            outcome.put((result, None))
            if given_up.is_set():
                too_late(result)

    aside(calling)
    try:
        result, error = outcome.get(timeout=seconds)
    except Empty:
        given_up.set()
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return cast(T, result)

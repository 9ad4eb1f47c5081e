"""Messages to the person at the terminal."""

import sys
from contextlib import suppress


def note(message: str) -> None:
    """Say something on standard error; standard output is for results."""
    with suppress(OSError):  # a terminal that was closed is no reason to lose the work
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

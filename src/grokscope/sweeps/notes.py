"""Messages to the person who looks on."""

import sys


def note(message: str) -> None:
    """Say something on standard error; standard output is for results."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()

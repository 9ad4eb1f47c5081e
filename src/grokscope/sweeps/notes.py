"""Messages to the person at the terminal."""

import sys


def note(message: str) -> None:
    """Say something on standard error; standard output is for results."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()

"""The errors that grokscope raises on purpose. Each message is one line that says what to do."""

import difflib
from collections.abc import Iterable

MOST_CHARACTERS = 480  # of a message: what a user gave may be megabytes long
MOST_QUOTED = 80  # of a value in it


class GrokscopeError(Exception):
    """Anything the user can act on; the command line prints it without a traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(in_one_line(message))


class SpecError(GrokscopeError):
    """A specification that describes no possible run."""


class StoreError(GrokscopeError):
    """A store that cannot be opened, written or read, or a run that is not in it."""


class DamagedError(StoreError):
    """A run whose file or whose entry in the index is not what was written."""


class DamageWarning(UserWarning):
    """Something in a store is damaged, and the work goes on without it."""


class EngineError(GrokscopeError):
    """An engine or a device that does not exist here, or cannot run this specification."""


class FailedRunsError(GrokscopeError):
    """What was asked for could not be made because runs failed. The store has their tracebacks."""


def in_one_line(text: str) -> str:
    """A message without line breaks and control characters and, if it is too long, without its middle.

    >>> in_one_line("first\\n  second"), len(in_one_line("x" * 10**6))
    ('first second', 480)
    """
    short = _cut(" ".join(text.split()), MOST_CHARACTERS)
    shown = "".join(character if character.isprintable() else repr(character)[1:-1] for character in short)
    return _cut(shown, MOST_CHARACTERS)


def quoted(value: object) -> str:
    """A value that a user gave, for a message: as Python writes it, but short.

    >>> quoted("mlp"), len(quoted("x" * 10**6)), quoted(10**5000)
    ("'mlp'", 80, 'a value of type int')
    """
    try:
        return _cut(repr(value), MOST_QUOTED)
    except (ValueError, RecursionError):  # a number of too many digits, or lists in lists without end
        return f"a value of type {type(value).__name__}"


def _cut(text: str, most: int) -> str:
    """The beginning and the end: the one has what is wrong, the other what is allowed."""
    if len(text) <= most:
        return text
    head = 2 * most // 3
    return f"{text[:head]}…{text[head + 1 - most :]}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the known spelling nearest to `word`, or nothing.

    >>> did_you_mean("modulo", ["modulus", "operation"])
    "; did you mean 'modulus'?"
    >>> did_you_mean("name", ["base", "axes"])
    ''
    """
    if len(word) > MOST_QUOTED:
        return ""  # nobody means a name by it, and comparing takes long
    spellings = {spelling.lower(): spelling for spelling in known}
    nearest = difflib.get_close_matches(word.lower(), list(spellings), n=1, cutoff=0.6)
    return f"; did you mean {spellings[nearest[0]]!r}?" if nearest else ""

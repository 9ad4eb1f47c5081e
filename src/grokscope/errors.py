"""The errors that grokscope raises on purpose. Each message is one line that says what to do."""

import difflib
from collections.abc import Iterable


class GrokscopeError(Exception):
    """Anything the user can act on; the command line prints it without a traceback."""


class SpecError(GrokscopeError):
    """A specification that describes no possible run."""


class StoreError(GrokscopeError):
    """A store that cannot be opened, written or read, or a run that is not in it."""


class EngineError(GrokscopeError):
    """An engine or a device that does not exist here, or cannot run this specification."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the known spelling nearest to `word`, or nothing.

    >>> did_you_mean("modulo", ["modulus", "operation"])
    "; did you mean 'modulus'?"
    >>> did_you_mean("name", ["base", "axes"])
    ''
    """
    spellings = {spelling.lower(): spelling for spelling in known}
    nearest = difflib.get_close_matches(word.lower(), list(spellings), n=1, cutoff=0.6)
    return f"; did you mean {spellings[nearest[0]]!r}?" if nearest else ""

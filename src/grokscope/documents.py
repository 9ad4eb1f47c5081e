"""TOML and JSON that somebody wrote, read with one line for everything that can be wrong with them.

>>> content_of_toml("modulus = 31")
{'modulus': 31}
"""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grokscope.errors import SpecError


def text_of(path: Path, what: str) -> str:
    """The text of a file; `what` says in an error what it should have been."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # the bytes, or the name, may be no text
        raise SpecError(f"cannot read the {what} {path}: {getattr(error, 'strerror', None) or error}") from None


def content_of_toml(text: str) -> dict[str, Any]:
    """The table that a TOML text describes."""
    with _one_line_for("TOML"):
        return tomllib.loads(text)


def content_of_json(text: str) -> object:
    """The value that a JSON text describes."""
    with _one_line_for("JSON"):
        return json.loads(text)


@contextmanager
def _one_line_for(language: str) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise SpecError(f"not valid {language}: it is nested too deeply") from None
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise SpecError(f"not valid {language}: {error}") from None
    except ValueError:  # all else that these readers refuse
        raise SpecError(f"not valid {language}: a number has too many digits") from None

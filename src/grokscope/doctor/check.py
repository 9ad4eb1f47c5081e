"""What a check finds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from grokscope.errors import in_one_line


class State(Enum):
    """How it is."""

    OK = "ok"
    ABSENT = "absent"  # a part that not everyone needs
    NOTE = "note"  # it works, but it could be better
    BROKEN = "broken"  # something that is needed does not work


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    says: str
    state: State = State.OK
    advice: str | None = None  # what to do about it
    numbers: dict[str, float] = field(default_factory=dict)  # what was measured, for programs


def guarded(name: str, check: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """What a check finds. An error that it did not expect is a finding too."""
    try:
        yield from check()
    except Exception as error:
        words = in_one_line(f"{type(error).__name__}: {error}")
        advice = "if this is no fault of the environment, please report it with this line"
        yield Check(name, f"this could not be looked at: {words}", State.BROKEN, advice)

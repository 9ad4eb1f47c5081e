"""The values of an axis: a list, a range, or a list with ranges in it.

>>> axis_values("optimizer.weight_decay", [0, {"from": 0.1, "to": 100, "count": 4, "log": True}])
[0, 0.1, 1.0, 10.0, 100.0]
>>> axis_values("model.width", {"from": 100, "to": 400, "step": 150}, whole=True)
[100, 250, 400]
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from grokscope.errors import SpecError, did_you_mean
from grokscope.spec import SECTIONS

MOST_RUNS = 150_000  # the paper's largest sweep with 100 seeds; planned in seconds, and in less than 500 MB
MOST_DIGITS = 18
_KEYS = ("from", "to", "count", "step", "log")


def axis_values(path: str, values: object, *, whole: bool = False) -> list[object]:
    """The values that a field takes; with `whole` those of a range are whole numbers."""
    check_key(path, values)
    if isinstance(values, Mapping):
        return _range(path, values, whole=whole)
    if not isinstance(values, list | tuple):
        raise SpecError(f"the axis {path} must be a list, or a range such as {{ from = 0, to = 1, count = 5 }}")
    found: list[object] = []
    for value in values:
        found += _range(path, value, whole=whole) if isinstance(value, Mapping) else [plain(value)]
    return found


def check_key(path: str, value: object) -> None:
    """Refuse `task.corruption = …` without quotes, which TOML reads as a table `task`."""
    if path in SECTIONS and isinstance(value, Mapping):
        field = next((key for key in value if key not in _KEYS), "…")
        raise SpecError(f'quote the key: "{path}.{field}" = …, since TOML takes {path}.{field} for a table')


def _range(path: str, content: Mapping[str, Any], *, whole: bool) -> list[object]:
    """Evenly spaced values, or with `log` evenly spaced logarithms, both ends included."""
    unknown = next((key for key in content if key not in _KEYS), None)
    if unknown:
        known = ", ".join(_KEYS)
        raise SpecError(
            f"the axis {path} has the unknown key {unknown}: a range has {known}{did_you_mean(unknown, _KEYS)}"
        )
    low, high, count, step, log = (content.get(key) for key in _KEYS)
    if log not in (None, True, False):
        raise SpecError(f"the axis {path} has log = {log!r}: must be true or false")
    if not is_number(low) or not is_number(high) or (count is None) == (step is None):
        raise SpecError(f"the axis {path} needs numbers from, to, and either count or step")
    if log and (step is not None or low <= 0 or high <= 0):
        raise SpecError(f"the axis {path} is logarithmic: it needs from and to above 0, and a count")
    if step is not None:
        if not is_number(step) or step <= 0 or high < low:
            raise SpecError(f"the axis {path} needs a step above 0, and to ≥ from")
        if high - low > step * MOST_RUNS:
            raise SpecError(f"the axis {path} has more than {MOST_RUNS:,} values; that many are allowed")
        count = math.floor((high - low) / step + 1e-9) + 1
    elif not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < 1e300:
        raise SpecError(f"the axis {path} needs a count of at least 1")
    if count > MOST_RUNS:
        raise SpecError(f"the axis {path} has {count:,} values; at most {MOST_RUNS:,} are allowed")
    spaced = _logarithmic(low, high, count) if log else _even(low, high, count, step)
    values = [float(f"{value:.10g}") for value in spaced]  # so that 0.15 is 0.15 however it was reached
    if whole and log:
        return [round(value) for value in values]
    return [int(value) if whole and value == int(value) else value for value in values]


def _even(low: float, high: float, count: int, step: float | None) -> Sequence[float]:
    gap = step if step is not None else (high - low) / max(count - 1, 1)
    nothing = 1e-9 * max(abs(low), abs(high))  # what rounding leaves of a zero between the ends
    values = [low + i * gap for i in range(count)]
    return [0.0 if abs(value) < nothing else value for value in values]


def _logarithmic(low: float, high: float, count: int) -> Sequence[float]:
    first, last = math.log10(low), math.log10(high)
    return [low, *(10 ** (first + i * (last - first) / (count - 1)) for i in range(1, count - 1)), high][:count]


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that can be calculated with."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def plain(value: object) -> object:
    """Lists, which cannot be compared as axis points, as tuples, and numbers of numpy as those of Python."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(value) if isinstance(value, list) else value


def whole_number(text: str) -> int | None:
    """What the digits stand for; None if they are none, or more than anything is counted with.

    >>> whole_number("17"), whole_number("-1"), whole_number("1" + "0" * 5000)
    (17, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None

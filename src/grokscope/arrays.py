"""The arrays that everything is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
BoolArray = npt.NDArray[np.bool_]

_SHORT = 40  # characters of a value that is shown as it is


def short_repr(record: object) -> str:
    """A dataclass in one line, for people: its class, and of each field the shape, the number or the names.

    >>> from dataclasses import make_dataclass
    >>> short_repr(make_dataclass("Curve", ["name", "steps", "rows"])("test", np.zeros((3, 2)), range(1000)))
    "<Curve: name 'test', steps [3, 2], rows range(0, 1000)>"
    """
    shown = ((field.name, getattr(record, field.name)) for field in fields(record))  # type: ignore[arg-type]
    return f"<{type(record).__name__}: {', '.join(f'{name} {_short(value)}' for name, value in shown)}>"


def _short(value: object) -> str:
    if isinstance(value, np.ndarray):
        return str(list(value.shape))
    if isinstance(value, Mapping):
        return "{" + ", ".join(map(str, value)) + "}"
    text = repr(value)
    if len(text) > _SHORT and isinstance(value, Sequence):
        return f"({len(value)})"
    return text if len(text) <= _SHORT or text.startswith("<") else f"<{type(value).__name__}>"

"""The axes of a sweep: the fields that change, and their values.

>>> Axis.over("model.dropout", (0, 0.3)).at(1)
{'model.dropout': 0.3}
>>> axis_of_values(RunSpec(), "task.corruption", {"from": 0, "to": 0.4, "count": 3}).points
((0.0,), (0.2,), (0.4,))
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grokscope.errors import SpecError, quoted
from grokscope.extension import pinned
from grokscope.spec import REFERENCES, RunSpec
from grokscope.sweeps.values import axis_values, check_key, plain


@dataclass(frozen=True)
class Axis:
    """Some fields, usually one, and the values they take together."""

    fields: tuple[str, ...]
    points: tuple[tuple[object, ...], ...]  # one value for each field

    @classmethod
    def over(cls, path: str, values: Iterable[object]) -> "Axis":
        """One field and its values.

        >>> Axis.over("model.dropout", (0, 0.3)).points
        ((0,), (0.3,))
        """
        return cls((path,), tuple((value,) for value in values))

    def __len__(self) -> int:
        return len(self.points)

    def at(self, index: int) -> dict[str, object]:
        """The fields and their values at one point."""
        return dict(zip(self.fields, self.points[index], strict=True))

    def pinned(self) -> "Axis":
        """With the hash of its source behind every name of a user's code: an edited file makes another axis."""
        if not any(path in REFERENCES for path in self.fields):
            return self
        points = (
            tuple(
                pinned(value) if path in REFERENCES and isinstance(value, str) else value
                for path, value in zip(self.fields, point, strict=True)
            )
            for point in self.points
        )
        return replace(self, points=tuple(points))

    def thinned(self, count: int) -> "Axis":
        """`count` of the points, evenly spaced, both ends included.

        >>> Axis.over("training.seed", range(17)).thinned(5).points
        ((0,), (4,), (8,), (12,), (16,))
        """
        if count == 1:
            return replace(self, points=self.points[:1])
        last = len(self.points) - 1
        return replace(self, points=tuple(self.points[round(i * last / (count - 1))] for i in range(count)))


def axis_of_values(base: RunSpec, fields: object, values: object) -> Axis:
    """An axis as Python code gives it: a field and its values, or a tuple of fields and tuples of values."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SpecError(f"the axis {fields} must be a list of values, not {quoted(values)}")
    if isinstance(fields, str):
        return Axis(
            (fields,), _points(base, fields, values if isinstance(values, Mapping | list | tuple) else [*values])
        )
    if not isinstance(fields, tuple) or not all(isinstance(path, str) for path in fields):
        raise SpecError(f"{quoted(fields)} is no axis: must be a field such as task.corruption, or a tuple of fields")
    points = []
    for point in values:
        if not isinstance(point, tuple | list) or len(point) != len(fields):
            raise SpecError(
                f"the axis {', '.join(fields)} needs {len(fields)} values at every point, not {quoted(point)}"
            )
        points.append(tuple(map(plain, point)))
    return Axis(fields, tuple(points))


def axes_of_document(base: RunSpec, content: Mapping[str, Any]) -> tuple[Axis, ...]:
    """What a file says under axes, zip and cases."""
    axes = [Axis((path,), _points(base, path, values)) for path, values in content.get("axes", {}).items()]
    for together in content.get("zip", []):
        if not isinstance(together, dict) or not together:
            raise SpecError("each [[zip]] is a table of fields, each with a list of values")
        columns = [_points(base, path, values) for path, values in together.items()]
        if len({len(column) for column in columns}) > 1:
            lengths = ", ".join(f"{path} {len(column)}" for path, column in zip(together, columns, strict=True))
            raise SpecError(f"fields in one [[zip]] need equally many values: {lengths}")
        axes.append(Axis(tuple(together), tuple(tuple(v for (v,) in row) for row in zip(*columns, strict=True))))
    if content.get("cases"):
        axes.append(_cases_axis(base, content["cases"]))
    return tuple(axes)


def _points(base: RunSpec, path: str, values: object) -> tuple[tuple[object, ...], ...]:
    return tuple((value,) for value in axis_values(path, values, whole=_takes_whole_numbers(base, path)))


def _cases_axis(base: RunSpec, cases: list[Any]) -> Axis:
    """One axis whose points each set fields of their own. What a point does not name is None there."""
    if not all(isinstance(case, dict) and case for case in cases):
        raise SpecError("each [[cases]] is a table of fields, each with a value")
    for case in cases:
        for path, value in case.items():
            check_key(path, value)
            if isinstance(value, dict):
                raise SpecError(f"{path} in [[cases]] must be a value, not a table")
    fields = tuple(dict.fromkeys(path for case in cases for path in case))
    return Axis(fields, tuple(_case(base, case, fields) for case in cases))


def _case(base: RunSpec, case: Mapping[str, object], fields: Sequence[str]) -> tuple[object, ...]:
    based = base.updated({path: value for path, value in case.items() if path.endswith(".kind")})

    def value(path: str) -> object:
        if path in case:
            return plain(case[path])
        # Of a field that may be None, None would be its value: it has to have that of the base.
        can_be_none = based.has(path) and based.field_of(path).default is None
        return plain(based.value_of(path)) if can_be_none else None

    return tuple(map(value, fields))


def _takes_whole_numbers(base: RunSpec, path: str) -> bool:
    try:
        return base.field_of(path).kind == "whole number"
    except SpecError:
        return False  # a field of a kind that another axis brings; Plan refuses it if there is none

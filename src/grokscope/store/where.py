"""Conditions on runs, as text: `optimizer.weight_decay>=5`, `phase=coexistence`.

>>> Condition.from_text("task.corruption >= 0.3")
Condition(field='task.corruption', comparison='>=', value=0.3)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from grokscope.errors import SpecError, did_you_mean
from grokscope.phases import Phase
from grokscope.spec import RunSpec, field_of, value_from_text

_COLUMNS: dict[str, tuple[str, ...]] = {
    "phase": tuple(phase.value for phase in Phase),
    "status": ("finished", "diverged"),
    "engine": (),
}


@dataclass(frozen=True)
class Condition:
    """`field comparison value`, where the field is a path of a spec, or phase, status or engine."""

    field: str
    comparison: str  # =, !=, <, <=, > or >=
    value: object

    @classmethod
    def from_text(cls, text: str) -> "Condition":
        """Read a condition; what no run can meet is refused."""
        match = re.fullmatch(r"\s*([\w.]+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", text)
        if match is None:
            raise SpecError(f"where = {text!r} is not allowed: must be such as task.corruption=0.2 or phase=confusion")
        field, comparison, value = match.groups()
        textual = field in _COLUMNS or field_of(field).kind in ("choice", "true or false")
        if textual and comparison not in ("=", "!="):
            raise SpecError(f"where = {text!r} is not allowed: {field} is compared with = or !=")
        if field in _COLUMNS:
            allowed = _COLUMNS[field]
            if allowed and value not in allowed:
                nearest = did_you_mean(value, allowed)
                raise SpecError(f"{field} = {value!r} is not allowed: must be one of {', '.join(allowed)}{nearest}")
            return cls(field, comparison, value)
        if field_of(field).kind == "list of whole numbers":
            raise SpecError(f"where cannot compare {field}, which is a list")
        wanted = None if value == "none" and field_of(field).default is None else value_from_text(field, value)
        if isinstance(wanted, str) and field_of(field).kind != "choice":
            kind = field_of(field).kind
            article = "" if kind == "true or false" else "a "
            raise SpecError(f"where = {text!r} is not allowed: {field} is {article}{kind}")
        if isinstance(wanted, str):  # as a spec has it, or refused as a spec would
            section, _, name = field.partition(".")
            wanted = getattr(getattr(RunSpec().updated({field: wanted}), section), name)
        if isinstance(wanted, int) and abs(wanted) >= 2**63:
            raise SpecError(f"where = {text!r} is not allowed: no {field} is as large")
        return cls(field, comparison, wanted)


def where_clause(where: Sequence[str | Condition]) -> tuple[str, list[object]]:
    """SQL that selects the runs that meet all conditions, and the values of its question marks."""
    clauses: list[str] = []
    values: list[object] = []
    for given in [where] if isinstance(where, str) else where:
        condition = Condition.from_text(given) if isinstance(given, str) else given
        if condition.field in _COLUMNS:
            column = condition.field
        else:
            # A run stored before a field was there has the field's default.
            column = f"coalesce(json_extract(spec, '$.{condition.field}'), ?)"
            values.append(field_of(condition.field).default)
        comparison = {"=": "IS", "!=": "IS NOT"}.get(condition.comparison, condition.comparison)
        clauses.append(f"{column} {comparison} ?")
        values.append(condition.value)
    return ("WHERE " + " AND ".join(clauses) if clauses else ""), values

"""Conditions on runs, as text: `optimizer.weight_decay>=5`, `phase=coexistence`, `test_accuracy>0.9`, `tag=good`.

>>> Condition.from_text("task.corruption >= 0.3")
Condition(field='task.corruption', comparison='>=', value=0.3)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from grokscope.errors import SpecError, did_you_mean
from grokscope.extension import is_reference
from grokscope.measure import COLUMNS
from grokscope.phases import Phase
from grokscope.spec import FAMILIES, REFERENCES, RunSpec, field_of, field_paths, unknown_key, value_from_text

_COLUMNS: dict[str, tuple[str, ...]] = {
    "phase": tuple(phase.value for phase in Phase),
    "status": ("finished", "diverged"),
    "engine": (),
}
_REMARKS = ("tag", "name")  # what people say about a run
SPEC = "spec"
SOUND_SPEC = "iif(json_valid(spec), spec, '{}')"  # slower, but one damaged row does not fail the others


@dataclass(frozen=True)
class Condition:
    """`field comparison value`.

    The field is a path of a spec, phase, status, engine, tag, name, or a column of the last row.
    """

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
        if field in _REMARKS:
            if comparison not in ("=", "!="):
                raise SpecError(f"where = {text!r} is not allowed: {field} is compared with = or !=")
            return cls(field, comparison, value)
        if _is_of_a_users_own(field):
            return cls(field, comparison, _guessed(value))
        if is_measured(field):
            return cls(field, comparison, _number(text, field, value))
        if field in REFERENCES and (is_reference(value) or field_of(field).kind == "text"):
            if comparison not in ("=", "!="):
                raise SpecError(f"where = {text!r} is not allowed: {field} is compared with = or !=")
            return cls(field, comparison, value.replace("_", "-") if not is_reference(value) else value)
        textual = field in _COLUMNS or field_of(field).kind in ("choice", "true or false")
        if textual and comparison not in ("=", "!="):
            raise SpecError(f"where = {text!r} is not allowed: {field} is compared with = or !=")
        if field in _COLUMNS:
            allowed = _COLUMNS[field]
            if allowed and value not in allowed:
                nearest = did_you_mean(value, allowed)
                raise SpecError(f"{field} = {value!r} is not allowed: must be one of {', '.join(allowed)}{nearest}")
            return cls(field, comparison, value)
        if field_of(field).kind.startswith("list"):
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


def is_measured(field: str) -> bool:
    """Whether it may be a number that was measured: it has no section. A user's measurements have names of their own.

    >>> is_measured("test_accuracy"), is_measured("phase"), is_measured("task.modulus")
    (True, False, False)
    """
    return field not in _COLUMNS and field not in _REMARKS and field.isidentifier()


def _number(condition: str, field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        wrong = f"{field} is a number" if field in COLUMNS else unknown_field(field)
        raise SpecError(f"where = {condition!r} is not allowed: {wrong}") from None


def _is_of_a_users_own(field: str) -> bool:
    """Whether it may be a field of a user's class: of a section that comes in kinds, and of no built-in one.

    >>> _is_of_a_users_own("task.bits"), _is_of_a_users_own("task.modulus"), _is_of_a_users_own("tsk.bits")
    (True, False, False)
    """
    section, _, name = field.partition(".")
    return section in FAMILIES and bool(name) and field not in field_paths()


def _guessed(text: str) -> object:
    """A number if it reads as one: what the field takes only its code knows."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": 1, "false": 0}.get(text.lower(), text)


def _conditions(where: Sequence[str | Condition]) -> list[Condition]:
    given = [where] if isinstance(where, str) else where
    return [Condition.from_text(each) if isinstance(each, str) else each for each in given]


def fields_of_users_own(where: Sequence[str | Condition]) -> list[str]:
    """The fields in some conditions that no built-in kind has, and columns that are not measured always."""
    fields = [condition.field for condition in _conditions(where)]
    return [each for each in fields if _is_of_a_users_own(each) or (is_measured(each) and each not in COLUMNS)]


def unknown_field(field: str) -> str:
    """What to say of a field that no run has."""
    if not is_measured(field) or field in {path.partition(".")[2] for path in field_paths()}:
        return unknown_key(field)
    return (
        "must be a field such as task.corruption, a measured number such as test_accuracy, or "
        f"{', '.join([*_COLUMNS, *_REMARKS])}{did_you_mean(field, [*COLUMNS, *_COLUMNS, *_REMARKS])}"
    )


def known_somewhere(field: str) -> str:
    """SQL that is not NULL for a run that has this field, or this column in its last row."""
    return column_of(field)[0] if is_measured(field) else f"json_extract({SOUND_SPEC}, '$.{field}')"


def column_of(field: str, spec: str = SPEC) -> tuple[str, list[object]]:
    """SQL for the value of a field, and the values of its question marks."""
    if field in _COLUMNS:
        return field, []
    if field == "name":
        return "(SELECT remarks.name FROM remarks WHERE remarks.run_id = runs.run_id)", []
    if field == "tag":
        raise SpecError("runs cannot be sorted by tag: a run may have several")
    if is_measured(field):
        return f"json_extract(iif(json_valid(final), final, '{{}}'), '$.{field}')", []
    # A run stored before a field was there has the field's default.
    column = f"coalesce(json_extract({spec}, '$.{field}'), ?)"
    default = None if _is_of_a_users_own(field) else field_of(field).default
    section = field.partition(".")[0]
    if section in FAMILIES:  # but a user's kind has only the fields that it says
        column = (
            f"iif(instr(coalesce(json_extract({spec}, '$.{section}.kind'), ''), ':'), "
            f"json_extract({spec}, '$.{field}'), {column})"
        )
    return column, [default]


_TAGGED = (
    "EXISTS (SELECT 1 FROM remarks, json_each(iif(json_valid(remarks.tags), remarks.tags, '[]')) "
    "WHERE remarks.run_id = runs.run_id AND json_each.value = ?)"
)


def where_clause(where: Sequence[str | Condition], spec: str = SPEC) -> tuple[str, list[object]]:
    """SQL that selects the runs that meet all conditions, and the values of its question marks."""
    clauses: list[str] = []
    values: list[object] = []
    for condition in _conditions(where):
        if condition.field == "tag":
            clauses.append(f"{'' if condition.comparison == '=' else 'NOT '}{_TAGGED}")
            values.append(condition.value)
            continue
        column, defaults = column_of(condition.field, spec)
        if condition.field in REFERENCES and "@" not in str(condition.value):
            # A name without a hash means all versions of the code.
            column = f"iif(instr({column}, '@'), substr({column}, 1, instr({column}, '@') - 1), {column})"
            defaults *= column.count("?")
        comparison = {"=": "IS", "!=": "IS NOT"}.get(condition.comparison, condition.comparison)
        clauses.append(f"{column} {comparison} ?")
        values += [*defaults, condition.value]
    return ("WHERE " + " AND ".join(clauses) if clauses else ""), values

"""One part of a spec: checked when it is made, and owner of its fields.

`Task`, `Network`, `Optimizer` and `Regularizer` are sections, and so is `Training`. The first four come in kinds: each
kind is a class, the built-in ones in a list, a user's own in a file.

    make_section(Network, {"kind": "transformer", "heads": 2})
    make_section(Task, {"kind": "my_rules.py:Parity", "bits": 12})
"""

import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import annotated_types
from pydantic import BaseModel, ConfigDict, ValidationError, model_serializer
from pydantic.functional_serializers import SerializerFunctionWrapHandler

from grokscope.errors import SpecError, did_you_mean
from grokscope.extension import ExtensionError, Reference, is_reference, load_class, reference_to, source_hash


class Section(BaseModel):
    """Frozen fields. Errors come out as SpecError, one line each, with the section's name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    section: ClassVar[str] = ""

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise SpecError(_explain(type(self), error)) from None

    @classmethod
    def path_of(cls, field: str) -> str:
        """The field as users write it: `task.modulus`."""
        return f"{cls.section}.{field}" if cls.section else field

    def refuse(self, field: str, reason: str) -> SpecError:
        """The error for a value that is wrong because of another one."""
        return SpecError(f"{self.path_of(field)} = {getattr(self, field)!r} is not allowed: {reason}")

    def identity(self) -> dict[str, Any]:
        """What a run's id is made of: the fields that differ from their defaults, as JSON has them."""
        values = self.model_dump(mode="json")
        return {name: values[name] for name, info in type(self).model_fields.items() if self._differs(name, info)}

    def _differs(self, name: str, info: Any) -> bool:
        return bool(getattr(self, name) != info.default)


class KindSection(Section):
    """A section that comes in kinds. A subclass that a user writes is a kind of its own.

    `kind` of a user's class is where it was found, and `source` the hash of that file.
    """

    built_in: ClassVar[tuple[type["KindSection"], ...]] = ()  # of the whole family, the default first
    # Where a kind has another default than the run ids were made with.
    identity_defaults: ClassVar[Mapping[str, Any]] = {}

    kind: str = ""
    source: str = ""

    def __init__(self, /, **fields: Any) -> None:
        if not self.is_built_in():
            fields = {"kind": reference_to(type(self)), **fields}
            own = source_hash(Reference.parse(fields["kind"]).place)
            if fields.get("source") not in (None, "", own):
                raise ExtensionError(
                    f"{fields['kind']} has changed since: its source was {fields['source']} and is now {own}; "
                    f"put it back, or leave out {self.path_of('source')} for a new run"
                )
            fields["source"] = own
        super().__init__(**fields)

    @classmethod
    def is_built_in(cls) -> bool:
        """Whether it comes with grokscope."""
        return cls.__module__.split(".")[0] == "grokscope"

    def identity(self) -> dict[str, Any]:
        """Of a user's class all fields, its name and the hash of its source; where the file lies does not matter."""
        if not self.source:
            return super().identity()
        return self.model_dump(mode="json") | {"kind": Reference.parse(self.kind).name}

    def _differs(self, name: str, info: Any) -> bool:
        if name == "kind":
            return bool(self.kind != self.built_in[0].model_fields["kind"].default)
        return bool(getattr(self, name) != self.identity_defaults.get(name, info.default))

    @model_serializer(mode="wrap")
    def _without_empty_source(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if name != "source" or value}

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes make it anew from its fields: they find a user's class by its name."""
        return make_section, (_family_of(type(self)), self.model_dump(), isinstance(self, Unresolved))

    def resolved(self) -> Self:
        """This section with its code imported, if that is a user's and has not been."""
        return self

    def describe(self) -> str:
        """In a few words, for tables and titles."""
        own = [f"{name} {getattr(self, name)}" for name in type(self).model_fields if name not in KindSection.model_fields]
        return ", ".join([Reference.parse(self.kind).name if self.source else self.kind, *own])

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Fields of a kind: whoever asks for one knows which kind it is."""


class Unresolved(KindSection):
    """A section whose code was not imported: what a stored run says about it, and nothing that it can do."""

    model_config = ConfigDict(extra="allow")

    def __init__(self, /, **fields: Any) -> None:
        Section.__init__(self, **fields)

    def resolved(self) -> Self:
        """Import the code. Its source must be the one that the run was made with."""
        found: Self = make_section(_family_of(type(self)), self.model_dump())
        return found

    def describe(self) -> str:
        """In a few words, for tables and titles."""
        return ", ".join(
            [Reference.parse(self.kind).name, *(f"{name} {value}" for name, value in (self.model_extra or {}).items())]
        )

    def needed(self) -> ExtensionError:
        """The error for asking it to do something."""
        return ExtensionError(f"this needs {self.kind} (source {self.source}), which was not imported")


F = TypeVar("F", bound=KindSection)


def make_section(family: type[F], fields: Mapping[str, Any], unresolved: bool = False) -> F:
    """The section of the kind that the fields name. With `unresolved` a user's code is not imported for it."""
    default = family.built_in[0].model_fields["kind"].default
    kind = fields.get("kind", default)
    if not isinstance(kind, str) or (not is_reference(kind) and kind not in kinds_of(family)):
        known = kinds_of(family)
        hint = did_you_mean(kind, known) if isinstance(kind, str) else ""
        raise SpecError(
            f"{family.section}.kind = {kind!r} is not allowed: must be one of {', '.join(known)}, or your own as "
            f"file.py:Class{hint}"
        )
    if is_reference(kind):
        if unresolved:
            return _unresolved(family)(**fields)  # type: ignore[return-value]
        return load_class(kind, family)(**fields)
    cls: Any = next(member for member in family.built_in if member.model_fields["kind"].default == kind)
    found: F = cls(**_without_those_of_other_kinds(cls, family, fields))
    return found


def _without_those_of_other_kinds(cls: type[KindSection], family: type[F], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Older files name every field of every kind: those of other kinds say nothing at their defaults, and are refused
    at any other value."""
    kept = {}
    for name, value in fields.items():
        others = [other for other in family.built_in if name in other.model_fields]
        if name in cls.model_fields or not others:
            kept[name] = value
        elif all(value != other.model_fields[name].default for other in others):
            raise means_nothing(cls, name, value)
    return kept


def means_nothing(cls: type[KindSection], field: str, value: object) -> SpecError:
    """The error for a field of another kind."""
    kind = cls.model_fields["kind"].default
    return SpecError(
        f"{cls.path_of(field)} = {value!r} is not allowed: it means nothing for {cls.path_of('kind')} = {kind!r}; "
        "leave it out"
    )


def kinds_of(family: type[KindSection]) -> tuple[str, ...]:
    """The names of the built-in kinds."""
    return tuple(member.model_fields["kind"].default for member in family.built_in)


def _family_of(cls: type[KindSection]) -> type[KindSection]:
    """Task, Network, Optimizer or Regularizer: the class next to KindSection."""
    return next(base for base in reversed(cls.__mro__) if issubclass(base, KindSection) and base.section)


def _unresolved(family: type[F]) -> type[Unresolved]:
    return next(cls for cls in Unresolved.__subclasses__() if issubclass(cls, family))


class FieldInfo(NamedTuple):
    """What a field takes."""

    kind: Literal[
        "whole number",
        "finite number",
        "list of whole numbers",
        "list of names",
        "choice",
        "true or false",
        "text",
        "table of fields",
    ]
    choices: tuple[str, ...]
    default: Any


def field_info(cls: type[Section], field: str) -> FieldInfo:
    """What a field of a section takes, from its type."""
    info = cls.model_fields[field]
    if field == "kind" and issubclass(cls, KindSection) and cls.built_in:
        return FieldInfo("choice", kinds_of(cls), cls.built_in[0].model_fields["kind"].default)
    annotation: object = info.annotation
    if isinstance(annotation, types.UnionType):
        annotation = next(option for option in typing.get_args(annotation) if option is not types.NoneType)
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return FieldInfo("choice", typing.get_args(annotation), info.default)
    if origin is tuple:
        names = typing.get_args(annotation)[0] is str
        return FieldInfo("list of names" if names else "list of whole numbers", (), info.default)
    plain = {bool: "true or false", int: "whole number", float: "finite number", str: "text"}
    kind = plain.get(annotation, "table of fields")  # type: ignore[call-overload]
    return FieldInfo(kind, (), info.default)


def value_from_text(info: FieldInfo, text: str) -> object:
    """The value that `text` stands for in such a field; the text itself where it stands for none, to be refused."""
    try:
        match info.kind:
            case "whole number":
                return int(text)
            case "finite number":
                return float(text)
            case "list of whole numbers":
                return [int(item) for item in text.split(",")]
            case "list of names":
                return [item.strip() for item in text.split(",")]
            case "true or false":
                return {"true": True, "false": False}.get(text.lower(), text)
    except ValueError:
        pass
    return text


def _explain(cls: type[Section], error: ValidationError) -> str:
    """The first problem that pydantic found, as one line: field, value, what is allowed, nearest spelling."""
    problem = error.errors()[0]
    field = str(problem["loc"][0]) if problem["loc"] else ""
    if problem["type"] == "extra_forbidden":
        return unknown_field(cls, field)
    if field not in cls.model_fields:
        return " ".join(problem["msg"].split())
    value = problem["input"]
    hint = did_you_mean(value, field_info(cls, field).choices) if isinstance(value, str) else ""
    return f"{cls.path_of(field)} = {value!r} is not allowed: must be {_allowed(cls, field)}{hint}"


def unknown_field(cls: type[Section], field: str) -> str:
    """The error for a field that a section does not have."""
    known = [name for name in cls.model_fields if name != "source"]
    section = cls.section or "a spec"
    return f"unknown key {cls.path_of(field)}: {section} has {', '.join(known)}{did_you_mean(field, known)}"


def _allowed(cls: type[Section], field: str) -> str:
    """What a field takes, in words, from its type and bounds."""
    kind, choices, _ = field_info(cls, field)
    if choices:
        return "one of " + ", ".join(choices)
    bounds = []
    for bound in cls.model_fields[field].metadata:
        match bound:
            case annotated_types.Ge(ge=limit):
                bounds.append(f"at least {limit}")
            case annotated_types.Gt(gt=limit):
                bounds.append(f"greater than {limit}")
            case annotated_types.Le(le=limit):
                bounds.append(f"at most {limit}")
            case annotated_types.Lt(lt=limit):
                bounds.append(f"less than {limit}")
    if kind in ("true or false", "text"):
        return kind
    return f"a {kind} {' and '.join(bounds)}".strip()

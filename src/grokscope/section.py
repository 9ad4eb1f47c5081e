"""One part of a spec: checked when it is made, and owner of its fields.

`Task`, `Network`, `Optimizer` and `Regularizer` are sections, and so is `TrainingSpec`. The first four come in kinds:
each kind is a class, the built-in ones in a list, a user's own in a file.

    make_section(Network, {"kind": "transformer", "heads": 2})
    make_section(Task, {"kind": "my_rules.py:Parity", "bits": 12})
"""

import types
import typing
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import annotated_types
from pydantic import BaseModel, ConfigDict, ValidationError

from grokscope.errors import SpecError, did_you_mean, quoted
from grokscope.extension import (
    ExtensionError,
    Reference,
    is_reference,
    is_reference_to,
    load_class,
    own_reference,
    public_name,
    reference_to,
    remember_source,
    short_name,
)


class Section(BaseModel):
    """Frozen fields. Errors come out as SpecError, one line each, with the section's name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    section: ClassVar[str] = ""
    references: ClassVar[frozenset[str]] = frozenset()  # fields that may name a user's code

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**{name: self._as_field(name, value) for name, value in fields.items()})
        except ValidationError as error:
            raise SpecError(_explain(type(self), error)) from None

    @classmethod
    def _as_field(cls, name: str, value: Any) -> Any:
        """The lists of JSON and TOML as tuples, where the field is one."""
        if isinstance(value, list) and name in cls.model_fields and field_info(cls, name).kind.startswith("list"):
            return tuple(value)
        return value

    @classmethod
    def path_of(cls, field: str) -> str:
        """The field as users write it: `task.modulus`."""
        return f"{cls.section}.{field}" if cls.section else field

    def refuse(self, field: str, reason: str) -> SpecError:
        """The error for a value that is wrong because of another one."""
        return SpecError(f"{self.path_of(field)} = {quoted(getattr(self, field))} is not allowed: {reason}")

    @cached_property  # the runs of a sweep share their sections
    def identity(self) -> dict[str, Any]:
        """What a run's id is made of: the fields that differ from their defaults, as JSON has them."""
        values = self.model_dump(mode="json")
        return {name: self._identity(name, value) for name, value in values.items() if self._differs(name)}

    def _identity(self, name: str, value: Any) -> Any:
        """A user's code by its name and source, wherever its file lies; −0.0 + 0.0 is 0.0: equal specs are one run."""
        if isinstance(value, list):
            return [self._identity(name, item) for item in value]
        if name in self.references and is_reference(value):
            return Reference.parse(value).identity
        return value + 0.0 if isinstance(value, float) else value

    def _differs(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).model_fields[name].default)


class KindSection(Section):
    """A section that comes in kinds. A subclass that a user writes is a kind of its own: `file.py:Class@hash`."""

    references: ClassVar[frozenset[str]] = frozenset({"kind"})
    built_in: ClassVar[tuple[type["KindSection"], ...]] = ()  # of the whole family, the default first
    # Where a kind has another default than the run ids were made with.
    identity_defaults: ClassVar[Mapping[str, Any]] = {}

    kind: str = ""

    def __init__(self, /, **fields: Any) -> None:
        own = type(self).model_fields["kind"].default if self.is_built_in() else reference_to(type(self))
        kind = fields.get("kind", own)
        if kind != own if self.is_built_in() else not is_reference_to(type(self), kind):
            this = own or "no kind of its own"
            raise SpecError(f"{self.path_of('kind')} = {quoted(kind)} is not allowed: this is {this}")
        if not own:
            raise SpecError(f"{public_name(type(self))} is not a kind by itself: write a subclass of it")
        super().__init__(**fields | {"kind": kind if self.is_built_in() else str(own_reference(type(self), kind))})
        try:
            hash(self)
        except TypeError:
            raise ExtensionError(f"{self.kind}: fields are numbers, texts and tuples of them, not lists") from None

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """Remember the source that the class was made from: its file may be edited while it is in use."""
        remember_source(cls)

    @classmethod
    def is_built_in(cls) -> bool:
        """Whether it comes with grokscope."""
        return cls.__module__.split(".")[0] == "grokscope"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Of a user's class all fields: what their defaults are is known only to the code."""
        if not is_reference(self.kind):
            return super().identity
        return {name: self._identity(name, value) for name, value in self.model_dump(mode="json").items()}

    def _differs(self, name: str) -> bool:
        if name == "kind":
            return self.kind != kinds_of(type(self))[0]
        default = self.identity_defaults.get(name, type(self).model_fields[name].default)
        return bool(getattr(self, name) != default)

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes make it anew from its fields, and import a user's class when they need it.

        Of a user's class they get all fields: without its code nobody knows its defaults. Of a built-in they get those
        that were set, so that the others can still follow from them.
        """
        own = is_reference(self.kind)
        return make_section, (_family_of(type(self)), self.model_dump(exclude_unset=not own), own)

    def resolved(self) -> Self:
        """This section with its code imported, if that is a user's and has not been."""
        return self

    def describe(self) -> str:
        """In a few words, for tables and titles."""
        family = _family_of(type(self)).model_fields
        own = [f"{name} {getattr(self, name)}" for name in type(self).model_fields if name not in family]
        return ", ".join([short_name(self.kind), *own])

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Fields of a kind: whoever asks for one knows which kind it is."""


UNRESOLVED_CONFIG = ConfigDict(extra="allow")  # of every class below Unresolved: pydantic would take the other base's


class Unresolved(KindSection):
    """A section whose code was not imported: what a stored run says about it, and nothing that it can do."""

    model_config = UNRESOLVED_CONFIG

    def __init__(self, /, **fields: Any) -> None:
        Section.__init__(self, **fields)

    def resolved(self) -> Self:
        """Import the code. Its source must be the one that the run was made with."""
        return make_section(_family_of(type(self)), self.model_dump())  # type: ignore[return-value]

    def describe(self) -> str:
        """In a few words, for tables and titles."""
        return ", ".join(
            [short_name(self.kind), *(f"{name} {value}" for name, value in (self.model_extra or {}).items())]
        )

    def needed(self) -> ExtensionError:
        """The error for asking it to do something."""
        return ExtensionError(f"this needs {self.kind}, which was not imported: resolved() of a run or spec imports it")


F = TypeVar("F", bound=KindSection)


def make_section(family: type[F], fields: Mapping[str, Any], unresolved: bool = False) -> F:
    """The section of the kind that the fields name. With `unresolved` a user's code is not imported for it."""
    default = family.built_in[0].model_fields["kind"].default
    kind = fields.get("kind", default)
    if not isinstance(kind, str) or (not is_reference(kind) and kind not in kinds_of(family)):
        known = kinds_of(family)
        hint = did_you_mean(kind, known) if isinstance(kind, str) else ""
        raise SpecError(
            f"{family.section}.kind = {quoted(kind)} is not allowed: must be one of {', '.join(known)}, or your own as "
            f"file.py:Class{hint}"
        )
    if is_reference(kind):
        if unresolved:
            return _unresolved(family)(**fields)  # type: ignore[return-value]
        own = load_class(kind, family)
        return own(**_without_those_of_other_kinds(own, family, fields))
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
            raise means_nothing(cls, name, value, fields.get("kind"))
    return kept


def means_nothing(cls: type[KindSection], field: str, value: object, kind: str | None = None) -> SpecError:
    """The error for a field of another kind."""
    kind = kind or cls.model_fields["kind"].default
    return SpecError(
        f"{cls.path_of(field)} = {quoted(value)} is not allowed: it means nothing for {cls.path_of('kind')} = "
        f"{quoted(kind)}; leave it out"
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
    return f"{cls.path_of(field)} = {quoted(value)} is not allowed: must be {_allowed(cls, field)}{hint}"


def unknown_field(cls: type[Section], field: str) -> str:
    """The error for a field that a section does not have."""
    known = list(cls.model_fields)
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

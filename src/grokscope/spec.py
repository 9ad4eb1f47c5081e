"""Specifications: everything that decides what a run computes, and nothing else.

    >>> spec = RunSpec(task=TaskSpec(corruption=0.35), optimizer=OptimizerSpec(weight_decay=5))
    >>> spec.optimizer.weight_decay, spec.training.steps, spec.run_id
    (5.0, 2000, 'bd8d83b4009566d3')

A spec is frozen and checked when it is made; `SpecError` says what is wrong, what is allowed and the nearest
right spelling. Its `run_id` is a hash of the fields that differ from their defaults. Two rules keep it stable across
releases: a default never changes, and a new field's default means what happened before the field was there.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

import tomli_w
from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from grokscope.documents import content_of_json, content_of_toml, text_of
from grokscope.errors import SpecError, did_you_mean, quoted
from grokscope.extension import is_reference, named, pinned, reading_a_store
from grokscope.models import Loss, Network
from grokscope.optimizers import Optimizer
from grokscope.regularizers import Regularizer
from grokscope.section import (
    FieldInfo,
    KindSection,
    Section,
    Unresolved,
    field_info,
    make_section,
    means_nothing,
    unknown_field,
)
from grokscope.section import value_from_text as parse
from grokscope.tables import Value, plain
from grokscope.tasks import Dataset, Seeding, Task

PAPER_BATCH = 256  # the batch size at which the paper's number of steps and learning rate hold unscaled

# The sections that come in kinds.
FAMILIES: dict[str, type[KindSection]] = {
    "task": Task,
    "model": Network,
    "optimizer": Optimizer,
    "regularizer": Regularizer,
}


SECTIONS = ("task", "model", "optimizer", "training", "regularizer")


@cache
def _fields(section: str) -> list[str]:
    """The fields of all built-in kinds of a section, each once, the kind last."""
    names = dict.fromkeys(name for cls in _classes(section) for name in cls.model_fields if name != "kind")
    return [*names, *(["kind"] if section in FAMILIES else [])]


def _classes(section: str) -> tuple[type[Section], ...]:
    return FAMILIES[section].built_in if section in FAMILIES else (TrainingSpec,)


SPEC_FORMAT = 1  # what the fields of a spec mean; part of every run id
# The fields that hold one kind, which may be a user's code.
REFERENCES = frozenset({"task.corruption_kind", *(f"{section}.kind" for section in FAMILIES)})
F = TypeVar("F", bound=KindSection)


def _made(family: type[F], fields: Mapping[str, Any]) -> F:
    """The section of the kind that the fields name; a field that no kind has is refused with the nearest that is."""
    kind = fields.get("kind")
    if not (isinstance(kind, str) and is_reference(kind)):
        for field in fields:
            if field not in _fields(family.section):
                raise SpecError(unknown_key(family.path_of(field)))
    return make_section(family, fields)


def TaskSpec(**fields: Any) -> Task:
    """A task by its kind: modular arithmetic unless another one is named.

    >>> TaskSpec(modulus=31).describe()
    'add mod 31'
    """
    return _made(Task, fields)  # type: ignore[type-abstract]


def ModelSpec(**fields: Any) -> Network:
    """A network by its kind: an MLP unless another one is named.

    >>> ModelSpec(depth=3).describe(), ModelSpec(kind="transformer").activation
    ('3-layer relu 500', 'relu')
    """
    return _made(Network, fields)  # type: ignore[type-abstract]


def OptimizerSpec(**fields: Any) -> Optimizer:
    """An optimiser by its kind: AdamW unless another one is named.

    >>> OptimizerSpec(kind="sgd", momentum=0.9).momentum
    0.9
    """
    return _made(Optimizer, fields)  # type: ignore[type-abstract]


def RegularizerSpec(**fields: Any) -> Regularizer:
    """A regulariser by its kind: none unless one is named."""
    return _made(Regularizer, fields)


def _hyphenated(value: object) -> object:
    """Accept cross_entropy for cross-entropy."""
    return value.replace("_", "-") if isinstance(value, str) else value


def _measurements(value: object) -> object:
    """Accept the lists of JSON and TOML, one name, and classes."""
    names = (value,) if isinstance(value, str | type) else value
    names = tuple(map(named, names)) if isinstance(names, list | tuple) else names
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return value
    for name in names:
        if not is_reference(name):
            raise SpecError(f"training.measurements = {quoted(name)} is not allowed: name your own as file.py:Class")
    return tuple(dict.fromkeys(map(pinned, names)))


class TrainingSpec(Section):
    """The loss, how long, on which batches, from which seed, and what to measure when."""

    section: ClassVar[str] = "training"
    references: ClassVar[frozenset[str]] = frozenset({"measurements"})

    loss: Annotated[Loss, BeforeValidator(_hyphenated)] = "mse"
    steps: Annotated[int, Field(ge=1, lt=2**32)] = 2000
    batch_size: Annotated[int | None, Field(ge=1)] = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    seeding: Seeding = "independent"
    measure_every: Annotated[int, Field(ge=1)] = 50
    # Measure also at so many steps from 10 to 100, as many from 100 to 1000, and so on, evenly spaced in the logarithm.
    measure_per_decade: Annotated[int, Field(ge=0, le=1000)] = 0
    # What to measure beside what every run measures: a user's own, as file.py:Class.
    measurements: Annotated[tuple[str, ...], BeforeValidator(_measurements)] = ()
    # Stop once the phase has been the same, and clear, for so many steps (settling.py); 0 is never.
    settle: Annotated[int, Field(ge=0, lt=2**32)] = 0

    def measured_steps(self) -> list[int]:
        """Steps 1 to 10, then every `measure_every`-th and `measure_per_decade` in a decade, and the last.

        >>> TrainingSpec(steps=120).measured_steps()
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50, 100, 120]
        >>> TrainingSpec(steps=120, measure_per_decade=4).measured_steps()[9:]
        [10, 18, 32, 50, 56, 100, 120]
        """
        first = range(1, min(10, self.steps) + 1)
        regular = range(self.measure_every, self.steps + 1, self.measure_every)
        return sorted({*first, *regular, *self._log_spaced(), self.steps})

    def _log_spaced(self) -> Iterator[int]:
        for place in count(self.measure_per_decade) if self.measure_per_decade else ():
            step = round(10 ** (place / self.measure_per_decade))
            if step > self.steps:
                return
            yield step

    def describe_measuring(self) -> str:
        """When it is measured, in words.

        >>> TrainingSpec().describe_measuring()
        'at steps 1 to 10, then every 50'
        """
        also = f" and at {self.measure_per_decade} in each decade" if self.measure_per_decade else ""
        return f"at steps 1 to 10, then every {self.measure_every}{also}"


def _of_kind(family: type[KindSection], value: object) -> object:
    if isinstance(value, type) and issubclass(value, family):
        return value()
    return _made(family, value) if isinstance(value, dict) else value


class RunSpec(Section):
    """One run: train one network on one dataset and measure it."""

    task: Annotated[SerializeAsAny[Task], BeforeValidator(partial(_of_kind, Task))] = TaskSpec()
    model: Annotated[SerializeAsAny[Network], BeforeValidator(partial(_of_kind, Network))] = ModelSpec()
    optimizer: Annotated[SerializeAsAny[Optimizer], BeforeValidator(partial(_of_kind, Optimizer))] = OptimizerSpec()
    training: TrainingSpec = TrainingSpec()
    regularizer: Annotated[SerializeAsAny[Regularizer], BeforeValidator(partial(_of_kind, Regularizer))] = (
        RegularizerSpec()
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.unresolved:
            return self  # it was checked when it was trained
        self.task.check()
        self.model.check(self.task)
        examples, batch = self.task.training_size, self.training.batch_size
        if batch is not None and batch > examples:
            raise self.training.refuse("batch_size", f"the training set has {examples} examples; at most {examples}")
        if batch is not None and batch < self.model.least_batch:
            raise self.training.refuse("batch_size", "BatchNorm (model.norm = 'batch') needs at least 2 examples")
        if examples < self.model.least_batch:
            raise self.task.refuse("data_fraction", "it leaves one training example, and BatchNorm needs at least 2")
        if not self.model.embeddings and not self.optimizer.decay_embeddings:
            raise self.optimizer.refuse(
                "decay_embeddings", f"it means nothing for model.kind = {self.model.kind!r}; leave it out"
            )
        if self.training.seeding == "reference":
            self._check_reference()
        return self

    def _check_reference(self) -> None:
        if reason := self.model.why_no_reference() or self.task.why_no_reference():
            raise self.training.refuse("seeding", reason)

    @cached_property
    def run_id(self) -> str:
        """A name for what this run computes: 16 hexadecimal digits."""
        sections = {name: getattr(self, name).identity for name in type(self).model_fields}
        content = {name: fields for name, fields in sections.items() if fields}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(f"grokscope run {SPEC_FORMAT}:{canonical}".encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        """In one line; `to_toml()` has every field."""
        optimizer = self.optimizer
        parts = (
            self.task.describe(),
            f"α {self.task.data_fraction:g}",
            f"ξ {self.task.corruption:g}",
            ", ".join([self.model.describe(), *self.model.details()]),
            f"{optimizer.describe()} {optimizer.learning_rate:g} wd {optimizer.weight_decay:g}",
            f"{self.training.steps} steps",
            f"seed {self.training.seed}",
        )
        return f"<RunSpec {self.run_id}: {', '.join(parts)}>"

    __str__ = __repr__

    def dataset(self) -> Dataset:
        """The data that the network is trained on."""
        return self.resolved().task.dataset(self.training.seed, self.training.seeding)

    # ---- a user's own code --------------------------------------------------------------------------------------

    @property
    def unresolved(self) -> bool:
        """Whether some of its code was not imported: so it is with stored runs that use a user's own."""
        return any(isinstance(getattr(self, name), Unresolved) for name in FAMILIES)

    def resolved(self) -> "RunSpec":
        """The same spec with all its code imported; an error if that cannot be had, or has changed."""
        if not self.unresolved:
            return self
        return RunSpec(training=self.training, **{name: getattr(self, name).resolved() for name in FAMILIES})

    @classmethod
    def stored(cls, content: Mapping[str, Any]) -> "RunSpec":
        """A spec from a store, which may be anybody's: code that it names is not imported."""
        with reading_a_store():
            sections: dict[str, Any] = {
                name: make_section(family, content.get(name, {}), unresolved=True) for name, family in FAMILIES.items()
            }
            return cls(training=TrainingSpec(**content.get("training", {})), **sections)

    def code(self) -> list[str]:
        """The user's own code that it needs, by name and source."""
        kinds = [getattr(self, name).kind for name in FAMILIES]
        return [kind for kind in (*kinds, self.task.corruption_kind, *self.training.measurements) if is_reference(kind)]

    # ---- changed copies -----------------------------------------------------------------------------------------

    def updated(self, fields: Mapping[str, object]) -> "RunSpec":
        """A copy with some fields replaced, each named by its path.

        >>> RunSpec().updated({"task.modulus": 31, "optimizer.weight_decay": 5}).task.modulus
        31
        """
        changed: dict[str, dict[str, object]] = {}
        for path, value in fields.items():
            section, _, field = path.partition(".")
            if section not in type(self).model_fields or not field:
                raise SpecError(unknown_key(path))
            changed.setdefault(section, {})[field] = value
        return self.with_sections(
            {name: self.section_with(name, changed[name]) for name in SECTIONS if name in changed}
        )

    def section_with(self, name: str, fields: Mapping[str, object]) -> Section:
        """One of its sections with some fields replaced, checked by itself but not against the other sections."""
        # Only what was said: what was not may depend on what is replaced, as the activation does on the depth.
        content = getattr(self, name).model_dump(exclude_unset=True) | fields
        return _made(FAMILIES[name], content) if name in FAMILIES else TrainingSpec(**content)

    def with_sections(self, sections: Mapping[str, Section]) -> "RunSpec":
        """A copy with some sections replaced. The others are kept as they are: no code is imported for them again."""
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        return RunSpec(**kept | dict(sections))

    def updated_from_text(self, fields: Mapping[str, str]) -> "RunSpec":
        """A copy with some fields replaced by what a command line says, each named by its path.

        >>> RunSpec().updated_from_text({"task.modulus": "31", "task.corrupted_operands": "3,4"}).task.modulus
        31
        """
        # Kinds first: they decide which fields there are, and so how a text is read.
        kinds = {path: text for path, text in fields.items() if path.endswith(".kind")}
        based = self.updated(kinds) if kinds else self
        changed = based.updated({path: parse(based.field_of(path), text) for path, text in fields.items()})
        # What somebody writes should do something, so a field that means nothing is refused even at its default.
        for path in fields:
            section, _, field = path.partition(".")
            own = type(getattr(changed, section))
            if field not in own.model_fields:
                raise means_nothing(own, field, parse(field_of(path), fields[path]))
        return changed

    def field_of(self, path: str) -> FieldInfo:
        """What the field at a path takes, for the kinds of this spec."""
        section, _, field = path.partition(".")
        own = getattr(self, section, None)
        if isinstance(own, Section) and field in type(own).model_fields:
            return field_info(type(own), field)
        if isinstance(own, Unresolved) and field in (own.model_extra or {}):
            return FieldInfo("text", (), None)  # what it takes only the code knows
        if isinstance(own, KindSection) and is_reference(own.kind):
            raise SpecError(unknown_field(type(own), field))
        return field_of(path)

    def has(self, path: str) -> bool:
        """Whether its kinds have the field at a path.

        >>> RunSpec().has("model.width"), RunSpec().has("model.heads")
        (True, False)
        """
        section, _, field = path.partition(".")
        return section in SECTIONS and field in type(getattr(self, section)).model_fields

    def value_of(self, path: str) -> object:
        """The value of the field at a path.

        >>> RunSpec().value_of("task.modulus")
        97
        """
        section, _, field = path.partition(".")
        try:
            return getattr(getattr(self, section), field)
        except AttributeError:
            raise SpecError(f"{path} means nothing here: {section} has no such field") from None

    def with_batches_of(self, size: int) -> "RunSpec":
        """The paper's mini-batches: steps · 256/B at a learning rate · √(B/256), so every B sees as much data.

        >>> scaled = RunSpec().with_batches_of(64)
        >>> scaled.training.steps, scaled.optimizer.learning_rate
        (8000, 0.005)
        """
        return self.updated({"training.batch_size": size}).updated(
            {
                "training.steps": round(self.training.steps * PAPER_BATCH / size),
                "optimizer.learning_rate": self.optimizer.learning_rate * math.sqrt(size / PAPER_BATCH),
            }
        )

    def settings(self) -> dict[str, Value]:
        """Every field by its path, as a value that a table can have.

        >>> RunSpec().settings()["task.modulus"], RunSpec().settings()["training.batch_size"]
        (97, None)
        """
        sections = self.model_dump(mode="json")
        return {f"{name}.{field}": plain(value) for name, own in sections.items() for field, value in own.items()}

    # ---- in files -----------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Every field, defaults included."""
        return self.model_dump_json(indent=2)

    def to_toml(self) -> str:
        """Every field but the empty ones, which TOML cannot write."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    @classmethod
    def from_json(cls, text: str) -> "RunSpec":
        """The spec that `to_json` wrote, or one that a person wrote with only some of the fields."""
        return cls.from_dict(content_of_json(text))

    @classmethod
    def from_toml(cls, text: str) -> "RunSpec":
        """The spec in a TOML text with sections [task], [model], [optimizer], [training] and [regularizer]."""
        return cls.from_dict(content_of_toml(text))

    @classmethod
    def from_file(cls, path: str | Path) -> "RunSpec":
        """Read a .toml or .json file."""
        path = Path(path)
        text = text_of(path, "spec")
        try:
            return cls.from_json(text) if path.suffix == ".json" else cls.from_toml(text)
        except SpecError as error:
            raise SpecError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, content: object) -> "RunSpec":
        """The spec in nested dictionaries, as JSON or TOML gives them; fields left out have their defaults.

        >>> RunSpec.from_dict({"task": {"modulus": 11}}).task.modulus
        11
        """
        if not isinstance(content, dict):
            raise SpecError(f"a spec is a table with the sections {', '.join(cls.model_fields)}")
        return cls(**content)


def field_paths() -> list[str]:
    """Every field of every built-in kind by its path, in order.

    >>> field_paths()[:2]
    ['task.data_fraction', 'task.corruption']
    """
    return [f"{section}.{field}" for section in SECTIONS for field in _fields(section)]


def field_of(path: str) -> FieldInfo:
    """What the field at a path takes, in the first built-in kind that has it.

    >>> field_of("task.modulus")
    FieldInfo(kind='whole number', choices=(), default=97)
    """
    section, _, field = path.partition(".")
    for cls in _classes(section) if section in SECTIONS else ():
        if field in cls.model_fields:
            return field_info(cls, field)
    raise SpecError(unknown_key(path))


def value_from_text(path: str, text: str) -> object:
    """The value that `text` stands for in this field; the text itself where it stands for none, to be refused."""
    return parse(field_of(path), text)


def unknown_key(path: str) -> str:
    """The error for a path that is no field of a built-in kind."""
    known = field_paths()
    section, _, field = path.rpartition(".")
    by_field = {known_path.partition(".")[2]: known_path for known_path in reversed(known)}
    if path in SECTIONS:
        return f"{path} is a section: name one of its fields, such as {next(k for k in known if k.startswith(path))}"
    if field in by_field:
        return f"unknown key {path}; did you mean {by_field[field]!r}?"
    if section not in SECTIONS:
        return f"unknown key {path}: a spec has the sections {', '.join(SECTIONS)}" + did_you_mean(
            section or field, SECTIONS
        )
    here = _fields(section)
    return f"unknown key {path}: {section} has {', '.join(here)}" + did_you_mean(field, here)

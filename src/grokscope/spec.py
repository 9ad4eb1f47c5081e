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
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import annotated_types
import tomli_w
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from grokscope.errors import SpecError, did_you_mean

Operation = Literal["add", "subtract", "multiply", "divide", "x2+y2", "x2+xy+y2"]
CorruptionKind = Literal["symmetric", "symmetric-wrong", "asymmetric"]
Activation = Literal["quadratic", "relu", "gelu"]
Norm = Literal["none", "batch", "layer"]
ModelKind = Literal["mlp", "transformer"]
Parameterization = Literal["paper", "standard", "lazy"]
Scaling = Literal["d", "sqrt-d"]
OptimizerKind = Literal["adamw", "adam", "sgd"]
Loss = Literal["mse", "cross-entropy"]
Seeding = Literal["independent", "reference"]

PAPER_BATCH = 256  # the batch size at which the paper's number of steps and learning rate hold unscaled


class _Section(BaseModel):
    """One section of a spec. Errors come out as SpecError, one line each, with the section's name."""

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

    def unused(self) -> dict[str, str]:
        """Fields that mean nothing because of another one, each with that one."""
        return {}

    def refuse_unused(self, fields: Iterable[str]) -> None:
        """Raise if one of these fields means nothing."""
        for field, cause in self.unused().items():
            if field in fields:
                raise self.refuse(field, f"it means nothing for {cause}; leave it out")

    def changed(self) -> set[str]:
        """Fields that do not have their default values."""
        return {name for name, info in type(self).model_fields.items() if getattr(self, name) != info.default}


def _hyphenated(value: object) -> object:
    """Accept cross_entropy for cross-entropy."""
    return value.replace("_", "-") if isinstance(value, str) else value


def _list_to_sorted_tuple(value: object) -> object:
    """Accept the lists of JSON and TOML; one set of operands is one spec, in whatever order it is written."""
    if isinstance(value, list | tuple) and all(type(item) is int for item in value):
        return tuple(sorted(set(value)))
    return value


class TaskSpec(_Section):
    """The pairs, their labels, and what is wrong with the labels."""

    section: ClassVar[str] = "task"

    operation: Operation = "add"
    modulus: Annotated[int, Field(ge=2, lt=65536)] = 97
    data_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.5
    corruption: Annotated[float, Field(ge=0, le=1)] = 0.35
    corruption_kind: Annotated[CorruptionKind, BeforeValidator(_hyphenated)] = "symmetric"
    corrupted_operands: Annotated[tuple[int, ...] | None, BeforeValidator(_list_to_sorted_tuple)] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.operation == "divide" and not is_prime(self.modulus):
            raise self.refuse("modulus", f"operation 'divide' needs a prime, such as {_next_prime(self.modulus)}")
        if self.training_size == 0:
            raise self.refuse(
                "data_fraction",
                f"of {self.pair_count} pairs it leaves no training example; at least {_round_up(1 / self.pair_count)}",
            )
        if self.corrupted_operands is not None:
            if not self.corrupted_operands:
                raise self.refuse("corrupted_operands", "name at least one value of m, or leave it out")
            if not 0 <= self.corrupted_operands[0] <= self.corrupted_operands[-1] < self.modulus:
                raise self.refuse("corrupted_operands", f"values of m are 0 … {self.modulus - 1}")
        return self

    @property
    def pair_count(self) -> int:
        """How many pairs (m, n) have an answer: nothing can be divided by 0."""
        return self.modulus * (self.modulus - (self.operation == "divide"))

    @property
    def training_size(self) -> int:
        """The number of training examples."""
        return int(self.data_fraction * self.pair_count)


class ModelSpec(_Section):
    """A network: the two-layer one of Equations 1 and 5, f(m, n) = W · norm(φ(dropout(U eₘ + V eₙ))), or one that
    the paper compares it with, a deeper MLP or a Transformer.

    >>> ModelSpec().activation, ModelSpec(depth=3).activation, ModelSpec(kind="transformer").activation
    ('quadratic', 'relu', 'relu')

    An activation that is not named is the paper's for the network: quadratic for two layers, ReLU for all others.
    """

    section: ClassVar[str] = "model"

    width: Annotated[int, Field(ge=1, lt=2**24)] = 500
    activation: Activation = "quadratic"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    norm: Norm = "none"
    parameterization: Parameterization = "paper"
    kind: ModelKind = "mlp"
    depth: Annotated[int, Field(ge=2, le=64)] = 2  # layers of weights of an MLP
    embed: Annotated[int, Field(ge=1, lt=2**16)] = 128  # this and all below: of a Transformer
    heads: Annotated[int, Field(ge=1)] = 4
    layers: Annotated[int, Field(ge=1, le=64)] = 1
    tie_weights: bool = False
    scaling: Annotated[Scaling, BeforeValidator(_hyphenated)] = "d"

    @model_validator(mode="before")
    @classmethod
    def _name_the_activation(cls, fields: object) -> object:
        if not isinstance(fields, dict) or "activation" in fields:
            return fields
        if fields.get("kind") == "transformer" or fields.get("depth", 2) != 2:
            return {**fields, "activation": "relu"}
        return fields

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.refuse_unused(self.changed())
        if self.kind == "transformer":
            if self.embed % self.heads:
                raise self.refuse("heads", f"it must divide model.embed = {self.embed}")
            if self.norm == "batch":
                raise self.refuse("norm", "a Transformer has none or layer")
        return self

    def unused(self) -> dict[str, str]:
        """Fields of the other kind of network."""
        others = _TRANSFORMER_FIELDS if self.kind == "mlp" else _MLP_FIELDS
        return dict.fromkeys(others, f"model.kind = {self.kind!r}")

    @property
    def two_layer(self) -> bool:
        """Whether it is the network of Equations 1 and 5."""
        return self.kind == "mlp" and self.depth == 2

    def describe(self) -> str:
        """Kind and size in a few words.

        >>> ModelSpec().describe(), ModelSpec(depth=3).describe(), ModelSpec(kind="transformer", layers=2).describe()
        ('quadratic 500', '3-layer relu 500', '2-layer transformer 128, 4 heads')
        """
        if self.kind == "transformer":
            words = f"{self.layers}-layer transformer {self.embed}, {self.heads} heads"
            return words + (", tied" if self.tie_weights else "") + (", sqrt-d" if self.scaling == "sqrt-d" else "")
        words = f"{'' if self.depth == 2 else f'{self.depth}-layer '}{self.activation} {self.width}"
        return words + (f" {self.parameterization}" if self.parameterization != "paper" else "")

    @property
    def neurons(self) -> int:
        """How many input neurons there are to tell apart: hidden ones of the first layer, or embedding dimensions."""
        return self.width if self.kind == "mlp" else self.embed


_MLP_FIELDS = ("width", "depth", "parameterization")
_TRANSFORMER_FIELDS = ("embed", "heads", "layers", "tie_weights", "scaling")


class OptimizerSpec(_Section):
    """How gradients become steps."""

    section: ClassVar[str] = "optimizer"

    kind: OptimizerKind = "adamw"
    learning_rate: Annotated[float, Field(gt=0)] = 0.01
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.98
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    decay_embeddings: bool = True  # whether weight decay acts on a Transformer's embeddings of tokens and positions

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.refuse_unused(self.changed())
        return self

    def unused(self) -> dict[str, str]:
        """Fields of the other optimisers."""
        others = ("beta1", "beta2", "epsilon") if self.kind == "sgd" else ("momentum",)
        return dict.fromkeys(others, f"optimizer.kind = {self.kind!r}")


class TrainingSpec(_Section):
    """The loss, how long, on which batches, from which seed, and when to measure."""

    section: ClassVar[str] = "training"

    loss: Annotated[Loss, BeforeValidator(_hyphenated)] = "mse"
    steps: Annotated[int, Field(ge=1, lt=2**32)] = 2000
    batch_size: Annotated[int | None, Field(ge=1)] = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    seeding: Seeding = "independent"
    measure_every: Annotated[int, Field(ge=1)] = 50

    def measured_steps(self) -> list[int]:
        """Steps 1 to 10, then every `measure_every`-th, and the last.

        >>> TrainingSpec(steps=120).measured_steps()
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50, 100, 120]
        """
        first = range(1, min(10, self.steps) + 1)
        regular = range(self.measure_every, self.steps + 1, self.measure_every)
        return sorted({*first, *regular, self.steps})


class RunSpec(_Section):
    """One run: train one network on one dataset and measure it."""

    task: TaskSpec = TaskSpec()
    model: ModelSpec = ModelSpec()
    optimizer: OptimizerSpec = OptimizerSpec()
    training: TrainingSpec = TrainingSpec()

    @model_validator(mode="after")
    def _check(self) -> Self:
        examples, batch = self.task.training_size, self.training.batch_size
        if batch is not None and batch > examples:
            raise self.training.refuse("batch_size", f"the training set has {examples} examples; at most {examples}")
        if self.model.norm == "batch" and batch == 1:
            raise self.training.refuse("batch_size", "BatchNorm (model.norm = 'batch') needs at least 2 examples")
        if self.model.norm == "batch" and examples == 1:
            raise self.task.refuse("data_fraction", "it leaves one training example, and BatchNorm needs at least 2")
        if self.model.kind == "mlp" and not self.optimizer.decay_embeddings:
            raise self.optimizer.refuse("decay_embeddings", "it means nothing for model.kind = 'mlp'; leave it out")
        if self.training.seeding == "reference" and not self.model.two_layer:
            raise self.training.refuse("seeding", "the authors' initial weights exist only for two-layer networks")
        if self.training.seeding == "reference" and (
            self.task.corruption_kind != "symmetric" or self.task.corrupted_operands is not None
        ):
            raise self.training.refuse(
                "seeding",
                "the authors' labels exist only for task.corruption_kind = 'symmetric' on all operands",
            )
        return self

    @cached_property
    def run_id(self) -> str:
        """A name for what this run computes: 16 hexadecimal digits."""
        content = {
            section: {field: value + 0.0 if isinstance(value, float) else value for field, value in fields.items()}
            for section, fields in self.model_dump(mode="json", exclude_defaults=True).items()
        }  # −0.0 + 0.0 is 0.0: specs that are equal are one run
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(f"grokscope run 1:{canonical}".encode()).hexdigest()[:16]

    def updated(self, fields: Mapping[str, object]) -> "RunSpec":
        """A copy with some fields replaced, each named by its path.

        >>> RunSpec().updated({"optimizer.weight_decay": 15}).optimizer.weight_decay
        15.0
        """
        # Only what was said: what was not may depend on what is replaced, as the activation does on the depth.
        content = self.model_dump(exclude_unset=True)
        for path, value in fields.items():
            section, _, field = path.partition(".")
            if field not in _FIELDS.get(section, ()):
                raise SpecError(_unknown_key(path))
            content.setdefault(section, {})[field] = value
        return RunSpec(**content)

    def updated_from_text(self, fields: Mapping[str, str]) -> "RunSpec":
        """A copy with some fields replaced by what a command line says, each named by its path.

        >>> RunSpec().updated_from_text({"task.modulus": "31", "task.corrupted_operands": "3,4"}).task.modulus
        31
        """
        changed = self.updated({path: value_from_text(path, text) for path, text in fields.items()})
        # What somebody writes should do something, so a field that means nothing is refused even at its default.
        for section in (changed.model, changed.optimizer):
            section.refuse_unused({path.partition(".")[2] for path in fields if path.startswith(f"{section.section}.")})
        return changed

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

    def to_json(self) -> str:
        """Every field, defaults included."""
        return self.model_dump_json(indent=2)

    def to_toml(self) -> str:
        """Every field but the empty ones, which TOML cannot write."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    @classmethod
    def from_json(cls, text: str) -> "RunSpec":
        """The spec that `to_json` wrote, or one that a person wrote with only some of the fields."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise SpecError(f"not valid JSON: {error}") from None
        return cls.from_dict(content)

    @classmethod
    def from_toml(cls, text: str) -> "RunSpec":
        """The spec in a TOML text with sections [task], [model], [optimizer] and [training]."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SpecError(f"not valid TOML: {error}") from None
        return cls.from_dict(content)

    @classmethod
    def from_file(cls, path: str | Path) -> "RunSpec":
        """Read a .toml or .json file."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(f"cannot read the spec {path}: {getattr(error, 'strerror', None) or error}") from None
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
    """Every field of a RunSpec by its path, in order.

    >>> field_paths()[:2]
    ['task.operation', 'task.modulus']
    """
    return [section.path_of(field) for section in _SECTIONS for field in section.model_fields]


_SECTIONS: tuple[type[_Section], ...] = (TaskSpec, ModelSpec, OptimizerSpec, TrainingSpec)
_FIELDS = {section.section: tuple(section.model_fields) for section in _SECTIONS}


def is_prime(number: int) -> bool:
    """Whether `number` is a prime, by trial division."""
    return number >= 2 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def _next_prime(number: int) -> int:
    while not is_prime(number):
        number += 1
    return number


def _round_up(number: float) -> float:
    """To four decimals, so that the suggested number is allowed."""
    return math.ceil(number * 1e4) / 1e4


class FieldInfo(NamedTuple):
    """What a field takes."""

    kind: Literal[
        "whole number", "finite number", "list of whole numbers", "choice", "true or false", "table of fields"
    ]
    choices: tuple[str, ...]
    default: Any


def field_of(path: str) -> FieldInfo:
    """The field of a RunSpec at this path.

    >>> field_of("task.modulus")
    FieldInfo(kind='whole number', choices=(), default=97)
    """
    for section in _SECTIONS:
        for field in section.model_fields:
            if section.path_of(field) == path:
                return _field_info(section, field)
    raise SpecError(_unknown_key(path))


def _field_info(cls: type[_Section], field: str) -> FieldInfo:
    info = cls.model_fields[field]
    annotation: object = info.annotation
    if isinstance(annotation, types.UnionType):
        annotation = next(option for option in typing.get_args(annotation) if option is not types.NoneType)
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return FieldInfo("choice", typing.get_args(annotation), info.default)
    if annotation is bool:
        return FieldInfo("true or false", (), info.default)
    if annotation is int:
        return FieldInfo("whole number", (), info.default)
    if annotation is float:
        return FieldInfo("finite number", (), info.default)
    return FieldInfo("list of whole numbers" if origin is tuple else "table of fields", (), info.default)


def value_from_text(path: str, text: str) -> object:
    """The value that `text` stands for in this field; the text itself where it stands for none, to be refused."""
    try:
        match field_of(path).kind:
            case "whole number":
                return int(text)
            case "finite number":
                return float(text)
            case "list of whole numbers":
                return [int(item) for item in text.split(",")]
            case "true or false":
                return {"true": True, "false": False}.get(text.lower(), text)
    except ValueError:
        pass
    return text


def _explain(cls: type[_Section], error: ValidationError) -> str:
    """The first problem that pydantic found, as one line: field, value, what is allowed, nearest spelling."""
    problem = error.errors()[0]
    field = str(problem["loc"][0])
    if problem["type"] == "extra_forbidden":
        return _unknown_key(cls.path_of(field))
    value = problem["input"]
    hint = did_you_mean(value, _field_info(cls, field).choices) if isinstance(value, str) else ""
    return f"{cls.path_of(field)} = {value!r} is not allowed: must be {_allowed(cls, field)}{hint}"


def _unknown_key(path: str) -> str:
    known = field_paths()
    section, _, field = path.rpartition(".")
    by_field = {known_path.partition(".")[2]: known_path for known_path in known}
    if path in RunSpec.model_fields:
        return f"{path} is a section: name one of its fields, such as {next(k for k in known if k.startswith(path))}"
    if field in by_field:
        return f"unknown key {path}; did you mean {by_field[field]!r}?"
    if section not in RunSpec.model_fields:
        return f"unknown key {path}: a spec has the sections {', '.join(RunSpec.model_fields)}" + did_you_mean(
            section or field, RunSpec.model_fields
        )
    here = _FIELDS[section]
    return f"unknown key {path}: {section} has {', '.join(here)}" + did_you_mean(field, here)


def _allowed(cls: type[_Section], field: str) -> str:
    """What a field takes, in words, from its type and bounds."""
    kind, choices, _ = _field_info(cls, field)
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
    if kind == "true or false":
        return kind
    return f"a {kind} {' and '.join(bounds)}".strip()

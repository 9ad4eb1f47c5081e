"""What a sweep runs: a base spec and axes along which its fields change.

    [base.task]
    modulus = 31

    [axes]
    "task.data_fraction" = { from = 0.1, to = 0.9, count = 17 }
    "task.corruption" = [0, 0.2, 0.4]

    [[zip]]                        # fields that change together: one axis
    "optimizer.weight_decay" = [0, 5]
    "training.steps" = [1000, 2000]

    [[cases]]                      # one axis, each point with fields of its own
    "model.kind" = "mlp"
    "model.width" = 200

    [[cases]]
    "model.kind" = "transformer"
    "model.embed" = 64

    [derived]                      # computed from the other fields of each run
    "optimizer.learning_rate" = "0.01 * sqrt(training.batch_size / 256)"

The first axis is the horizontal one of a phase diagram, the second the vertical one; each point of the others is a
panel. Seeds are an axis of their own.
"""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from grokscope.documents import content_of_toml, text_of
from grokscope.errors import SpecError, StoreError, did_you_mean, quoted
from grokscope.section import FieldInfo, Section, value_from_text
from grokscope.spec import SECTIONS, RunSpec
from grokscope.sweeps.axes import Axis, axes_of_document, axis_of_values
from grokscope.sweeps.cells import spec_of_cell
from grokscope.sweeps.formula import Formula
from grokscope.sweeps.values import MOST_RUNS, check_key, is_number, plain, whole_number

MOST_SECTIONS = 4096  # that are kept while cells are made
SEED = "training.seed"
T = TypeVar("T")
GRID = ("task.data_fraction", "task.corruption")  # the fields that --grid thins


def check_sweep_name(name: str) -> None:
    """Files are called after a sweep, so its name must not lead elsewhere."""
    if not re.fullmatch(r"\w[\w.+-]*", name):
        raise SpecError(f"a sweep cannot be called {quoted(name)}: a name has letters, digits, and _ . + - between")


@dataclass(frozen=True)
class Plan:
    """A sweep. A cell has a place: its index in the product of the axes, the first axis running fastest."""

    name: str
    base: RunSpec = field(default_factory=RunSpec)
    axes: tuple[Axis, ...] = ()
    derived: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        axes = " × ".join(f"{len(axis)} {' and '.join(axis.fields)}" for axis in self.axes)
        return f"<Plan {self.name}: {self.size:,} runs, {axes}>"

    def __post_init__(self) -> None:
        """Refuse what expands to no runs, to too many, or to contradictions."""
        if not isinstance(self.name, str) or not all(isinstance(axis, Axis) for axis in self.axes):
            raise SpecError(
                "a Plan has a name and a tuple of Axis; Plan.over({field: values}, base=…) makes one of a dict"
            )
        check_sweep_name(self.name)
        if not self.axes:
            raise SpecError(f"the sweep {self.name} has no axes; a single run is `grokscope train`")
        object.__setattr__(self, "axes", tuple(axis.pinned() for axis in self.axes))
        paths = [path for axis in self.axes for path in axis.fields] + list(self.derived)
        for path in paths:
            self.field_of(path)
        if (twice := _first_twice(paths)) is not None:
            raise SpecError(f"the sweep {self.name} has {twice} twice among its axes, zip and derived fields")
        for path, text in self.derived.items():
            for used in Formula(text, path, self.field_of).fields & self.derived.keys():
                raise SpecError(f"derived {path} uses {used}, which is derived itself: write its formula out")
        if self.size > MOST_RUNS:
            raise SpecError(
                f"the sweep {self.name} has {self.size:,} runs ({' × '.join(str(len(axis)) for axis in self.axes)}); "
                f"at most {MOST_RUNS:,} are allowed: thin an axis, or divide the sweep into several"
            )
        for axis in self.axes:
            if not axis.points:
                raise SpecError(f"the axis {', '.join(axis.fields)} is empty")
            for value in itertools.chain.from_iterable(axis.points):
                if not _is_value(value):
                    raise SpecError(f"the axis {', '.join(axis.fields)} has {quoted(value)}, which no field takes")
            if (repeated := _first_twice(axis.points)) is not None:
                raise SpecError(f"the axis {', '.join(axis.fields)} has {', '.join(map(quoted, repeated))} twice")

    @classmethod
    def over(
        cls,
        axes: Mapping[Any, Iterable[object]],  # by a field, or a tuple of fields
        base: RunSpec | None = None,
        name: str | None = None,
    ) -> "Plan":
        """Every combination of some values, or ranges as in a file; a tuple of fields takes a tuple at each point.

        >>> plan = Plan.over({"model.dropout": [0, 0.3], ("model.width", "training.steps"): [(100, 500), (200, 900)]})
        >>> [(spec.model.dropout, spec.model.width, spec.training.steps) for spec in plan.specs()]
        [(0.0, 100, 500), (0.3, 100, 500), (0.0, 200, 900), (0.3, 200, 900)]

        >>> Plan.over({"optimizer.weight_decay": [0, {"from": 0.1, "to": 10, "count": 3, "log": True}]}).axes[0].points
        ((0,), (0.1,), (1.0,), (10.0,))

        Without a name it gets one that the same axes and base always get.
        """
        base = base or RunSpec()
        made = tuple(axis_of_values(base, fields, values) for fields, values in axes.items())
        plan = cls(name or "unnamed", base, made)
        return plan if name else replace(plan, name=f"sweep-{plan.content_hash}")

    @property
    def content_hash(self) -> str:
        """The same for the same runs, whatever the plan is called."""
        content = {key: value for key, value in self.to_dict().items() if key != "said"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def size(self) -> int:
        """How many cells there are."""
        return math.prod(len(axis) for axis in self.axes)

    def specs(self) -> Iterator[RunSpec]:
        """The run of every cell, in the order of the places."""
        formulas = {path: Formula(text, path, self.field_of) for path, text in self.derived.items()}
        paths = [*(path for axis in self.axes for path in axis.fields), *formulas]
        changing = {name: [path for path in paths if path.startswith(f"{name}.")] for name in SECTIONS}
        never_none = {path for path in paths if self.field_of(path).default is not None}

        @lru_cache(maxsize=MOST_SECTIONS)  # cells share sections: of 100 seeds with 100 weight decays there are 200
        def section(name: str, values: tuple[object, ...]) -> Section:
            chosen = zip(changing[name], values, strict=True)
            said = ((path, value) for path, value in chosen if value is not None or path not in never_none)
            return self.base.section_with(name, {path.partition(".")[2]: value for path, value in said})

        for points in itertools.product(*(range(len(axis)) for axis in reversed(self.axes))):
            values: dict[str, object] = {}
            for axis, index in zip(reversed(self.axes), points, strict=True):
                values |= axis.at(index)
            # From the axes and the base only, so the order of the formulas does not matter.
            derived = {
                path: formula.value(partial(self._value, values), self.field_of(path).kind)
                for path, formula in formulas.items()
            }
            values |= derived
            changed = {
                name: section(name, tuple(values[path] for path in own)) for name, own in changing.items() if own
            }
            yield spec_of_cell(self.base, changed)

    def field_of(self, path: str) -> FieldInfo:
        """What a field takes: in the kinds of the base, or in one that an axis brings."""
        try:
            return self.base.field_of(path)
        except SpecError:
            kind = f"{path.partition('.')[0]}.kind"
            for axis in self.axes:
                for value in (axis.at(i)[kind] for i in range(len(axis)) if kind in axis.fields):
                    other = self.base.updated({kind: value})
                    if other.has(path):
                        return other.field_of(path)
            raise

    def _value(self, chosen: Mapping[str, object], path: str) -> object:
        return chosen[path] if path in chosen else self.base.value_of(path)

    def indices(self, place: int) -> tuple[int, ...]:
        """Where a cell lies on each axis."""
        found = []
        for axis in self.axes:
            place, index = divmod(place, len(axis))
            found.append(index)
        return tuple(found)

    @property
    def seed_axis(self) -> int | None:
        """Which axis is the seeds, if there is one."""
        return next((i for i, axis in enumerate(self.axes) if axis.fields == (SEED,)), None)

    @property
    def seed_count(self) -> int:
        """How many seeds every cell has."""
        return 1 if self.seed_axis is None else len(self.axes[self.seed_axis])

    # ---- changes ------------------------------------------------------------------------------------------------

    def changed(self, *, name: str | None = None, grid: str | None = None, seeds: int | None = None) -> "Plan":
        """Under another name, with a coarser grid, with other seeds; what is None stays."""
        plan = self if name is None else replace(self, name=name)
        plan = plan if grid is None else plan.with_grid(grid)
        return plan if seeds is None else plan.with_seeds(seeds)

    def with_fields(self, texts: Mapping[str, str]) -> "Plan":
        """Some fields set for all runs. A field that was an axis is one no longer."""
        values = {path: value_from_text(self.field_of(path), text) for path, text in texts.items()}
        axes = list(self.axes)
        for place, axis in enumerate(self.axes):
            for path in values.keys() & set(axis.fields):
                if len(axis.fields) > 1:
                    together = ", ".join(other for other in axis.fields if other != path)
                    raise SpecError(f"{path} changes together with {together} in this sweep")
                axes[place] = Axis((path,), ((plain(values.pop(path)),),))
        return replace(
            self,
            base=self.base.updated(values),
            axes=tuple(axes),
            derived={path: rule for path, rule in self.derived.items() if path not in texts},
        )

    def with_grid(self, text: str) -> "Plan":
        """The axes of data fraction and corruption thinned to "17x19"."""
        axes = list(self.axes)
        for path, count in zip(GRID, parse_grid(text), strict=True):
            place = next((i for i, axis in enumerate(axes) if axis.fields == (path,)), None)
            if place is None:
                raise SpecError(f"--grid needs the axes {' and '.join(GRID)}; the sweep {self.name} has no {path}")
            if count > len(axes[place]):
                raise SpecError(f"--grid = {quoted(text)} is not allowed: {path} has {len(axes[place])} values")
            axes[place] = axes[place].thinned(count)
        return replace(self, axes=tuple(axes))

    def with_seeds(self, count: int) -> "Plan":
        """Every cell with `count` seeds, from the base's seed on."""
        if count > MOST_RUNS:
            raise SpecError(f"--seeds = {quoted(count)} is not allowed: at most {MOST_RUNS:,} runs are allowed")
        first = self.axes[self.seed_axis].points[0][0] if self.seed_axis is not None else self.base.training.seed
        if not isinstance(first, int):
            raise SpecError(f"{SEED} = {quoted(first)} is not allowed: must be a whole number")
        seeds = Axis.over(SEED, range(first, first + count))
        return replace(self, axes=(*(axis for axis in self.axes if axis.fields != (SEED,)), seeds))

    # ---- in files and in the store ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        content: dict[str, Any] = {
            "base": self.base.model_dump(mode="json"),
            "axes": [
                {
                    "fields": list(axis.fields),
                    "points": [[list(v) if isinstance(v, tuple) else v for v in point] for point in axis.points],
                }
                for axis in self.axes
            ],
            "derived": dict(self.derived),
        }
        if any(path.endswith(".kind") or path == "model.depth" for axis in self.axes for path in axis.fields):
            # The defaults of other fields depend on these, so it matters which fields of the base were said.
            content["said"] = self.base.model_dump(mode="json", exclude_unset=True)
        return content

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any]) -> "Plan":
        """What `to_dict` wrote, or a dict in the form of a TOML file.

        >>> Plan.from_dict("mine", {"axes": {"task.corruption": [0, 0.3]}, "seeds": 2}).size
        4
        """
        if isinstance(content, Mapping) and isinstance(content.get("axes"), list):
            return cls.stored(name, content)
        if not isinstance(content, Mapping):
            raise SpecError(f"a plan is made of a dict, not of {quoted(content)}")
        return _plan_from_toml(name, content)

    @classmethod
    def stored(cls, name: str, content: Mapping[str, Any]) -> "Plan":
        """What `to_dict` wrote into a store. Not checked again, and no code is imported: a store may be anybody's."""
        plan = object.__new__(cls)
        try:
            axes = tuple(
                Axis(tuple(axis["fields"]), tuple(tuple(map(plain, point)) for point in axis["points"]))
                for axis in content["axes"]
            )
            base, derived = RunSpec.stored(content.get("said", content["base"])), dict(content["derived"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise StoreError(
                f"the sweep {name} is damaged in the store: start it again, which keeps its runs"
            ) from None
        fields = {"name": name, "base": base, "axes": axes, "derived": derived}
        for field_name, value in fields.items():
            object.__setattr__(plan, field_name, value)
        return plan

    @classmethod
    def from_file(cls, path: Path) -> "Plan":
        """Read a TOML file in the form that this module's first lines show."""
        text = text_of(path, "sweep")
        try:
            name = re.sub(r"[^\w.+-]+", "-", path.stem).strip(".+-") or "sweep"
            return _plan_from_toml(name, content_of_toml(text))
        except SpecError as error:
            raise SpecError(f"{path}: {error}") from None


def _first_twice(values: Iterable[T]) -> T | None:
    """A value that comes again, as it was the first time.

    >>> _first_twice([0, 5, 0.0, 5])
    0
    """
    seen: dict[T, T] = {}
    for value in values:
        if value in seen:
            return seen[value]
        seen[value] = value
    return None


def parse_grid(text: str, least: int = 1) -> tuple[int, int]:
    """How many data fractions and corruption fractions.

    >>> parse_grid("17x19")
    (17, 19)
    """
    counts = text.lower().replace("×", "x").split("x")
    if len(counts) != 2 or not all((number := whole_number(count)) and number >= least for count in counts):
        minimum = f" above {least - 1}," if least > 1 else ""
        raise SpecError(f"--grid = {quoted(text)} is not allowed: must be two numbers{minimum} such as 5x5")
    return int(counts[0]), int(counts[1])


_KEYS: dict[str, type] = {"base": dict, "axes": dict, "zip": list, "cases": list, "derived": dict, "seeds": int}


def _plan_from_toml(name: str, content: Mapping[str, Any]) -> Plan:
    for key, value in content.items():
        if key not in _KEYS:
            raise SpecError(f"unknown key {key}: a sweep has {', '.join(_KEYS)}{did_you_mean(key, _KEYS)}")
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):
            kind = {dict: f"a table: [{key}]", list: f"an array of tables: [[{key}]]", int: "a whole number"}[
                _KEYS[key]
            ]
            raise SpecError(f"{key} must be {kind}")
    base = RunSpec.from_dict(content.get("base", {}))
    axes = axes_of_document(base, content)
    for path, rule in content.get("derived", {}).items():
        check_key(path, rule)
    plan = Plan(name, base, axes, content.get("derived", {}))
    if "seeds" in content:
        if content["seeds"] < 1:
            raise SpecError("seeds must be at least 1")
        plan = plan.with_seeds(content["seeds"])
    return plan


def _is_value(value: object) -> bool:
    """Whether a field may take it; which ones, the field says itself."""
    items = value if isinstance(value, tuple) else (value,)
    return all(item is None or isinstance(item, str | bool) or is_number(item) for item in items)

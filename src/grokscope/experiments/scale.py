"""How much of the paper to run: its own numbers, a coarse version for an hour, or a toy to try the commands.

>>> QUICK.diagram(Plan("fig3a", axes=(Axis(("task.data_fraction",), tuple((i / 20,) for i in range(2, 19))),))).name
'fig3a-quick'
>>> SCALES["tiny"].network(RunSpec()).task.modulus
23
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from grokscope.errors import GrokscopeError
from grokscope.spec import RunSpec
from grokscope.sweep.plan import GRID, SEED, Axis, Plan

PAPER_WIDTH = 500


@dataclass(frozen=True)
class Size:
    """What networks are reduced to; they are never made larger."""

    modulus: int
    width: int  # that the paper's 500 become; other widths in proportion
    steps: int | None = None  # at most
    batch_divisor: int = 1
    embed: int = 128
    decay: float = 1.0  # times the weight decay: with fewer examples it takes more to generalise

    def reduced(self, path: str, value: object) -> object:
        """The value of a field at this size."""
        match path, value:
            case "task.modulus", int():
                return min(value, self.modulus)
            case "model.width", int():
                return max(8, min(value, round(value * self.width / PAPER_WIDTH)))
            case "training.steps", int() if self.steps is not None:
                return min(value, self.steps)
            case "training.batch_size", int():
                return max(2, value // self.batch_divisor)
            case "model.embed", int():
                return min(value, self.embed)
            case "optimizer.weight_decay", int() | float() if self.decay != 1:
                return value * self.decay
            case "task.corrupted_operands", tuple():
                return tuple(operand for operand in value if operand < self.modulus)
        return value

    def spec(self, spec: RunSpec) -> RunSpec:
        """A run with all its fields reduced."""
        width = "model.embed" if spec.model.kind == "transformer" else "model.width"
        sizes = (
            "task.modulus",
            "task.corrupted_operands",
            "training.steps",
            "training.batch_size",
            "optimizer.weight_decay",
            width,
        )
        values = {path: getattr(getattr(spec, path.partition(".")[0]), path.partition(".")[2]) for path in sizes}
        reduced = {path: self.reduced(path, value) for path, value in values.items()}
        return spec.updated({path: value for path, value in reduced.items() if value != values[path]})

    def axis(self, axis: Axis) -> Axis:
        """An axis with every value reduced; points that become the same are one."""
        points = (
            tuple(self.reduced(path, value) for path, value in zip(axis.fields, point, strict=True))
            for point in axis.points
        )
        return replace(axis, points=tuple(dict.fromkeys(points)))


@dataclass(frozen=True)
class Scale:
    """How networks, diagrams and numbers of seeds of the paper are reduced. None: not at all."""

    name: str
    networks: Size | None = None  # single ones
    diagrams: Size | None = None  # those of phase diagrams
    deep: Size | None = None  # Transformers and deep MLPs in full batches, single or not: some thirty times the work
    grid: tuple[int, int] | None = None  # data fractions × corruption fractions of a diagram, at most
    seeds: int | None = None  # at most

    @property
    def full(self) -> bool:
        """Whether it is the paper's own; figures that vary sizes themselves vary them less if not."""
        return self.networks is None and self.seeds is None

    def network(self, spec: RunSpec, seed: int = 0) -> RunSpec:
        """A single network of the paper at this scale."""
        size = self._size(spec, self.networks)
        reduced = size.spec(spec) if size else spec
        return reduced.updated({SEED: reduced.training.seed + seed}) if seed else reduced

    def diagram(self, plan: Plan) -> Plan:
        """A phase diagram of the paper at this scale, under a name of its own."""
        axes, base = plan.axes, plan.base
        if size := self._size(base, self.diagrams):
            axes, base = tuple(map(size.axis, axes)), size.spec(base)
        axes = tuple(self._thinned(axis) for axis in axes)
        name = plan.name if self.name == "paper" else f"{plan.name}-{self.name}"
        if self.name == "paper" and axes != plan.axes:  # a grid that was asked for
            name += f"-{'x'.join(str(len(axis)) for axis in axes if axis.fields[0] in GRID)}"
        return replace(plan, name=name, base=base, axes=axes)

    def _size(self, spec: RunSpec, usual: Size | None) -> Size | None:
        costly = not spec.model.two_layer and spec.training.batch_size is None
        return self.deep or usual if costly else usual

    def _thinned(self, axis: Axis) -> Axis:
        most = len(axis)
        if axis.fields == (SEED,):
            return replace(axis, points=axis.points[: self.seeds])
        if self.grid and axis.fields[0] in GRID:
            most = self.grid[GRID.index(axis.fields[0])]
        return axis.thinned(most) if most < len(axis) else axis

    def flags(self) -> str:
        """What a command line needs to say for it.

        >>> scale_of("paper", grid="9x10").flags()
        ' --scale paper --grid 9x10'
        """
        own = SCALES[self.name]
        grid = f" --grid {self.grid[0]}x{self.grid[1]}" if self.grid and self.grid != own.grid else ""
        return f" --scale {self.name}{grid}{f' --seeds {self.seeds}' if self.seeds != own.seeds else ''}"

    def seed_count(self, wanted: int) -> int:
        """How many seeds to use where the paper, or a claim, wants so many."""
        return wanted if self.seeds is None else min(wanted, self.seeds)


TINY = Scale(
    "tiny",
    networks=Size(modulus=23, width=48, steps=150, batch_divisor=8, embed=16),
    diagrams=Size(modulus=23, width=32, steps=60, batch_divisor=8, embed=16),
    grid=(3, 3),
    seeds=1,
)
# The factor of the weight decay was chosen by looking, at α = .8, ξ = .2: unchanged, neither a Transformer nor a deep
# MLP of this size generalises within the steps; of the Transformer's 2, 3.5 and 5 only the last passed 90 % (91 %).
QUICK = Scale(
    "quick",
    diagrams=Size(modulus=47, width=240, batch_divisor=2, embed=64),
    deep=Size(modulus=47, width=160, steps=2000, embed=64, decay=2.5),
    grid=(5, 5),
    seeds=1,
)
PAPER = Scale("paper")
SCALES: Mapping[str, Scale] = {scale.name: scale for scale in (TINY, QUICK, PAPER)}


def scale_of(name: str, *, grid: str | None = None, seeds: int | None = None) -> Scale:
    """The scale of this name, with another grid or number of seeds if they are given.

    >>> scale_of("paper", grid="9x10").grid
    (9, 10)
    """
    if name not in SCALES:
        raise GrokscopeError(f"--scale = {name!r} is not allowed: must be one of {', '.join(SCALES)}")
    scale = SCALES[name]
    if grid is not None:
        counts = grid.lower().replace("×", "x").split("x")
        if len(counts) != 2 or not all(count.isdecimal() and int(count) > 1 for count in counts):
            raise GrokscopeError(f"--grid = {grid!r} is not allowed: must be two numbers above 1, such as 5x5")
        scale = replace(scale, grid=(int(counts[0]), int(counts[1])))
    return scale if seeds is None else replace(scale, seeds=seeds)

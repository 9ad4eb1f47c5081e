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
from grokscope.sweeps.axes import Axis
from grokscope.sweeps.plan import GRID, SEED, Plan, parse_grid

PAPER_MODULUS, PAPER_WIDTH = 97, 500
_SIZES = (  # the fields that a smaller scale reduces, where a spec has them
    "task.modulus",
    "task.corrupted_operands",
    "task.group",
    "training.steps",
    "training.batch_size",
    "optimizer.weight_decay",
    "model.width",
    "model.embed",
)


@dataclass(frozen=True)
class Size:
    """The size that networks are reduced to; they are never enlarged."""

    modulus: int
    width: int  # that the paper's 500 become; other widths in proportion
    steps: int | None = None  # at most
    batch_divisor: int = 1
    embed: int = 128
    most_width: int | None = None  # the widest networks would take longer than all others together
    decay: float = 1.0  # times the weight decay: with fewer examples it takes more to generalise

    def reduced(self, path: str, value: object) -> object:
        """The value of a field at this size."""
        match path, value:
            case "task.modulus", int():
                return min(value, self.modulus)
            case "task.group", str() if not value.startswith("S"):
                # A polygon's group has two elements for each corner; between S4 and S5 there is nothing.
                corners = self.modulus // 2 if value.startswith("D") else self.modulus
                return f"{value[0]}{min(int(value[1:]), corners)}"
            case "model.width", int():
                return max(8, min(value, round(value * self.width / PAPER_WIDTH), self.most_width or value))
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
        values = {path: spec.value_of(path) for path in _SIZES if spec.has(path)}
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
    """How the paper's networks, diagrams and numbers of seeds are reduced. None: not at all."""

    name: str
    networks: Size | None = None  # single ones
    diagrams: Size | None = None  # those of phase diagrams
    # Transformers and deep MLPs in full batches, some thirty times the work; None: as the others.
    deep_networks: Size | None = None
    deep_diagrams: Size | None = None
    grid: tuple[int, int] | None = None  # data fractions × corruption fractions of a diagram, at most
    seeds: int | None = None  # at most
    # A line through a diagram with many seeds shows probabilities: one seed, or a few points of it, would show nothing.
    line_points: int | None = None  # at most
    line_seeds: int | None = None  # at most

    @property
    def full(self) -> bool:
        """Whether networks and panels are the paper's own, perhaps with fewer cells or seeds.

        At other scales, figures that compare sizes compare fewer of them.
        """
        return self.name == "paper"

    def network(self, spec: RunSpec, seed: int = 0) -> RunSpec:
        """A single network of the paper at this scale."""
        size = self.deep_networks or self.networks if _costly(spec) else self.networks
        reduced = size.spec(spec) if size else spec
        return reduced.updated({SEED: reduced.training.seed + seed}) if seed else reduced

    def diagram(self, plan: Plan) -> Plan:
        """A phase diagram of the paper at this scale, under a name of its own."""
        axes, base = plan.axes, plan.base
        if size := self.deep_diagrams or self.diagrams if _costly(base) else self.diagrams:
            axes, base = tuple(map(size.axis, axes)), size.spec(base)
        thinned, usual = (_thinned(axes, scale.most_points(plan)) for scale in (self, SCALES[self.name]))
        parts = [plan.name] if self.full else [plan.name, self.name]
        # Stored sweeps are told apart by name, so it says what was asked for instead of the scale's own.
        for word, fields in (("", GRID), ("seeds", (SEED,))):
            own = [axis for axis in thinned if axis.fields[0] in fields]
            if own != [axis for axis in usual if axis.fields[0] in fields]:
                parts.append(word + "x".join(str(len(axis)) for axis in own))
        return replace(plan, name="-".join(parts), base=base, axes=thinned)

    def most_points(self, plan: Plan) -> dict[str, int | None]:
        """How many points the axes of data fraction, corruption and seeds may have."""
        alpha, xi = GRID
        fields = [axis.fields for axis in plan.axes]
        if (SEED,) in fields and ((alpha,) in fields) != ((xi,) in fields):  # a line
            return {alpha: self.line_points, xi: self.line_points, SEED: self.line_seeds}
        columns, rows = self.grid or (None, None)
        return {alpha: columns, xi: rows, SEED: self.seeds}

    @property
    def other_grid(self) -> tuple[int, int] | None:
        """The grid, if another one was asked for than that of the scale of this name.

        >>> PAPER.other_grid, scales_of("paper", grid="9x10")[0].other_grid, QUICK.other_grid
        (None, (9, 10), None)
        """
        return self.grid if self.grid != SCALES[self.name].grid else None

    def flags(self) -> str:
        """The command-line flags that mean this scale.

        >>> scales_of("paper", grid="9x10")[0].flags()
        ' --scale paper --grid 9x10'
        """
        own = SCALES[self.name]
        grid = " --grid {}x{}".format(*self.other_grid) if self.other_grid else ""
        same_seeds = (self.seeds, self.line_seeds) == (own.seeds, own.line_seeds)
        return f" --scale {self.name}{grid}{'' if same_seeds else f' --seeds {self.seeds}'}"

    def seed_count(self, wanted: int) -> int:
        """How many seeds to use where the paper or a claim wants this many."""
        return wanted if self.seeds is None else min(wanted, self.seeds)


def _costly(spec: RunSpec) -> bool:
    return spec.model.deep and spec.training.batch_size is None


def _thinned(axes: tuple[Axis, ...], most_points: Mapping[str, int | None]) -> tuple[Axis, ...]:
    """Axes with at most this many points: evenly spaced ones, except that the first seeds are kept."""
    thinned = []
    for axis in axes:
        most = most_points.get(axis.fields[0])
        if most is None or most >= len(axis):
            thinned.append(axis)
        else:
            first = replace(axis, points=axis.points[:most])
            thinned.append(first if axis.fields == (SEED,) else axis.thinned(most))
    return tuple(thinned)


TINY = Scale(
    "tiny",
    networks=Size(modulus=23, width=48, steps=150, batch_divisor=8, embed=16),
    diagrams=Size(modulus=23, width=32, steps=60, batch_divisor=8, embed=16),
    grid=(3, 3),
    seeds=1,
    line_points=4,
    line_seeds=2,
)
# The factor of the weight decay was chosen by looking, at α = .8, ξ = .2: unchanged, neither a Transformer nor a deep
# MLP of this size generalises within the steps; of the Transformer's 2, 3.5 and 5 only the last passed 90 % (91 %).
_SMALL = Size(modulus=47, width=160, steps=2000, embed=64, decay=2.5)
QUICK = Scale(
    "quick",
    # With p = 47 and N = 240 weight decay 15 already forgets; from p = 59 on the phases lie as in the paper.
    diagrams=Size(modulus=59, width=300, embed=64, most_width=900),
    deep_networks=_SMALL,
    deep_diagrams=_SMALL,
    grid=(5, 5),
    seeds=1,
    line_points=9,
    line_seeds=4,
)
MIXED = replace(QUICK, name="mixed", deep_networks=None)
PAPER = Scale("paper")
SCALES: Mapping[str, Scale] = {scale.name: scale for scale in (TINY, QUICK, MIXED, PAPER)}


BEST = "best"
USUAL = QUICK.name  # where no scale is said
AS_WRITTEN = PAPER.name  # the same for a user's own figure, whose file says what to train


def scales_of(name: str, *, grid: str | None = None, seeds: int | None = None) -> list[Scale]:
    """The scale of this name, with another grid or number of seeds if they are given.

    "best" stands for several: the paper's own, then paper, mixed and quick with this grid and these seeds. The first
    that is complete in the store is used, or else the last.

    >>> [(scale.name, scale.grid) for scale in scales_of("best", grid="9x10")]
    [('paper', None), ('paper', (9, 10)), ('mixed', (9, 10)), ('quick', (9, 10))]
    """
    if name not in (*SCALES, BEST):
        raise GrokscopeError(f"--scale = {name!r} is not allowed: must be one of {', '.join((*SCALES, BEST))}")
    if name != BEST:
        return [_changed(SCALES[name], grid, seeds)]
    asked = (_changed(scale, grid, seeds) for scale in (PAPER, MIXED, QUICK))
    return list(dict.fromkeys((PAPER, *asked)))


def _changed(scale: Scale, grid: str | None, seeds: int | None) -> Scale:
    if seeds is not None and seeds < 1:
        raise GrokscopeError(f"--seeds = {seeds} is not allowed: must be at least 1")
    if grid is not None:
        scale = replace(scale, grid=parse_grid(grid, least=2))
    return scale if seeds is None else replace(scale, seeds=seeds, line_seeds=seeds)


@dataclass(frozen=True)
class Amount:
    """How much to run, as a user says it: a scale by name, and what should differ from it.

    >>> [scale.name for own in (False, True) for scale in Amount().scales(own=own)]
    ['quick', 'paper']
    """

    scale: str | None = None  # not said: what is usual, and a user's own figure as its file has it
    grid: str | None = None  # such as 5x5
    seeds: int | None = None
    refine: bool = False  # of diagrams run only cells near a boundary, and infer the others

    @property
    def best(self) -> bool:
        """Whether each figure and claim gets the largest scale that is complete in the store."""
        return self.scale == BEST

    def scales(self, *, own: bool = False) -> list[Scale]:
        """The scales that this can mean for the paper's figures or a user's own, the best first."""
        return scales_of(self.scale or (AS_WRITTEN if own else USUAL), grid=self.grid, seeds=self.seeds)

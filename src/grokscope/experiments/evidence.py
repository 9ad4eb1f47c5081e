"""The runs that figures and claims need, and what a store has of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from grokscope.errors import GrokscopeError
from grokscope.experiments.scale import Scale
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.store import CellOutcome, Store
from grokscope.sweeps.diagram import PhaseDiagram, assemble, wanted_places
from grokscope.sweeps.plan import Plan

_KEPT = 24  # networks that are read once and used by several panels


class DivergedError(GrokscopeError):
    """A network that a figure or a claim needs came to nothing."""


@dataclass(frozen=True)
class Needs:
    """Runs in the paper's own terms, which a scale then reduces."""

    networks: tuple[RunSpec, ...] = ()  # single ones; their weights are kept
    seeds: int = 1  # that the single ones are wanted with
    diagrams: tuple[Plan, ...] = ()

    def specs(self, scale: Scale) -> list[RunSpec]:
        """The single networks at a scale, with all their seeds; those that become the same are one."""
        seeds = range(scale.seed_count(self.seeds))
        scaled = (scale.network(spec, seed) for spec in self.networks for seed in seeds)
        return list({spec.run_id: spec for spec in scaled}.values())

    def plans(self, scale: Scale) -> list[Plan]:
        """The diagrams at a scale."""
        return [scale.diagram(plan) for plan in self.diagrams]


def together(wanted: Iterable[tuple[Needs, Scale]]) -> tuple[list[RunSpec], list[Plan]]:
    """The networks and the diagrams that any of them needs, each once."""
    specs: dict[str, RunSpec] = {}
    plans: dict[str, Plan] = {}
    for need, scale in wanted:
        specs |= {spec.run_id: spec for spec in need.specs(scale)}
        plans |= {plan.name: plan for plan in need.plans(scale)}
    return list(specs.values()), list(plans.values())


class Evidence:
    """What a store has, asked for in the paper's own terms; everything at one scale, and for one seed of several."""

    def __init__(self, store: Store, scale: Scale, seed: int = 0) -> None:
        self.store, self.scale, self.seed = store, scale, seed
        self._load = lru_cache(maxsize=_KEPT)(store.load)

    def network(self, spec: RunSpec) -> RunResult:
        """A single network of the paper, with its weights."""
        result = self._load(self.scale.network(spec, self.seed).run_id)
        if result.status == "diverged":
            raise DivergedError(f"run {result.run_id} diverged at step {result.diverged_step}: it left no network")
        return result

    def networks(self, specs: Iterable[RunSpec]) -> list[RunResult]:
        """Several of them."""
        return [self.network(spec) for spec in specs]

    def diagram(self, plan: Plan) -> PhaseDiagram:
        """A phase diagram of the paper. Cells that were left out because all around them agree are inferred."""
        scaled = self.scale.diagram(plan)
        return assemble(scaled, known_cells(self.store, scaled), refined=True)

    def at_seed(self, seed: int) -> "Evidence":
        """The same for another seed of the single networks."""
        return Evidence(self.store, self.scale, seed)

    def missing(self, needs: Needs) -> int:
        """How many runs are still to be done, failed ones too; of a diagram only those that cannot be inferred."""
        return len(missing_networks(self.store, needs.specs(self.scale))) + sum(
            len(missing_places(self.store, plan)) for plan in needs.plans(self.scale)
        )


def best_scale(needs: Callable[[Scale], Needs], scales: Sequence[Scale], store: Store | None) -> Scale:
    """The first of the scales at which nothing is missing, or the last: also if a reduced one means the same runs."""
    *better, last = scales
    for scale in better:
        wanted = needs(scale)
        if store is None or Evidence(store, scale).missing(wanted):
            continue
        if scale.full or _runs(wanted, scale) != _runs(needs(last), last):
            return scale
    return last


def _runs(needs: Needs, scale: Scale) -> set[str]:
    specs = [*needs.specs(scale), *(spec for plan in needs.plans(scale) for spec in plan.specs())]
    return {spec.run_id for spec in specs}


def missing_networks(store: Store, specs: Iterable[RunSpec]) -> list[RunSpec]:
    """Those that are not in the store, or without their weights."""
    wanted = {spec.run_id: spec for spec in specs}
    return [wanted[run_id] for run_id in store.without_weights(wanted)]


def missing_places(store: Store, plan: Plan) -> list[int]:
    """The cells of a diagram that have to be run next so that all others can be run or inferred."""
    return wanted_places(plan, known_cells(store, plan))


def cells_to_run(store: Store, plan: Plan, *, inferring: bool) -> list[RunSpec]:
    """The runs of a diagram that are to be done, each once. If cells may be inferred these are at most the ones that
    will be run, and none if all can be.
    """
    if inferring and not missing_places(store, plan):
        return []
    cells = zip(plan.specs(), known_cells(store, plan), strict=True)
    return list({spec.run_id: spec for spec, cell in cells if cell.outcome is None}.values())


def known_cells(store: Store, plan: Plan) -> list[CellOutcome]:
    """What became of every cell of a diagram. A failure says nothing about the network, so its cell is to be run."""
    cells = store.outcomes(spec.run_id for spec in plan.specs())
    return [cell._replace(outcome=None) if cell.outcome == "failed" else cell for cell in cells]

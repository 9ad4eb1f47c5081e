"""The runs that figures and claims look at, and what a store has of them.

evidence = Evidence(store, TINY)
evidence.network(COEXISTENCE).final.test_accuracy
evidence.diagram(WEIGHT_DECAY).panels
evidence.look(View(COEXISTENCE, pruning_curves))     # computed once, however many claims look at it
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from grokscope.errors import GrokscopeError
from grokscope.experiments.scale import Scale
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.store import CellOutcome, Store
from grokscope.sweeps.diagram import PhaseDiagram, assemble, wanted_places
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.recorded import NOTHING_RECORDED, Recorded, completed

_KEPT = 32  # networks, and what was computed from them: several panels and claims look at the same ones
_KEPT_DIAGRAMS = 8


class DivergedError(GrokscopeError):
    """A network that a figure or a claim needs has diverged."""


@dataclass(frozen=True)
class View:
    """What is computed from a network or a diagram: its pruning curves, or one of its panels."""

    source: RunSpec | Plan
    compute: Callable[[Any], Any]  # of the RunResult or the PhaseDiagram


@dataclass(frozen=True)
class Untrained:
    """The settings that a network has at a scale, for claims about theory: nothing is trained for it."""

    spec: RunSpec


Subject = RunSpec | Plan | View | Untrained  # in the paper's own terms, which a scale then reduces
Subjects = Subject | Sequence[Subject] | Callable[[Scale], Sequence[Subject]]


def subjects_at(subjects: Subjects, scale: Scale) -> tuple[Subject, ...]:
    """One subject, several, or some that depend on the scale, as a tuple."""
    if isinstance(subjects, RunSpec | Plan | View | Untrained):
        return (subjects,)
    return tuple(subjects(scale) if callable(subjects) else subjects)


@dataclass(frozen=True)
class Needs:
    """Runs in the paper's own terms, which a scale then reduces."""

    networks: tuple[RunSpec, ...] = ()  # single ones; their weights are kept
    seeds: int = 1  # that the single ones are wanted with
    diagrams: tuple[Plan, ...] = ()

    @classmethod
    def of(cls, subjects: Iterable[Subject], seeds: int) -> "Needs":
        """The runs behind what is looked at, each once."""
        sources = [subject.source if isinstance(subject, View) else subject for subject in subjects]
        networks = {spec.run_id: spec for spec in sources if isinstance(spec, RunSpec)}
        diagrams = {plan.name: plan for plan in sources if isinstance(plan, Plan)}
        return cls(tuple(networks.values()), seeds if networks else 1, tuple(diagrams.values()))

    def specs(self, scale: Scale) -> list[RunSpec]:
        """The single networks at a scale, with all their seeds; those that the scale makes equal stand once."""
        seeds = range(scale.seed_count(self.seeds))
        scaled = (scale.network(spec, seed) for spec in self.networks for seed in seeds)
        return list({spec.run_id: spec for spec in scaled}.values())

    def plans(self, scale: Scale) -> list[Plan]:
        """The diagrams at a scale."""
        return [scale.diagram(plan) for plan in self.diagrams]

    def reduced(self, scale: Scale) -> bool:
        """Whether the scale changes a network or a diagram; fewer seeds of the same networks are no change."""
        if any(scale.network(spec).run_id != spec.run_id for spec in self.networks):
            return True
        scaled = zip(self.diagrams, self.plans(scale), strict=True)
        return any((plan.axes, plan.base) != (own.axes, own.base) for plan, own in scaled)


def together(wanted: Iterable[tuple[Needs, Scale]]) -> tuple[list[RunSpec], list[Plan]]:
    """All networks and diagrams that are needed, each once."""
    specs: dict[str, RunSpec] = {}
    plans: dict[str, Plan] = {}
    for need, scale in wanted:
        specs |= {spec.run_id: spec for spec in need.specs(scale)}
        plans |= {plan.name: plan for plan in need.plans(scale)}
    return list(specs.values()), list(plans.values())


class Evidence:
    """What a store has at one scale, asked for in the paper's own terms; of single networks, for one seed.

    Figures and claims at one scale share one, so that everything is read and computed once. Cells of diagrams that the
    store lacks may be known from tables (`sweeps/recorded.py`).
    """

    def __init__(self, store: Store, scale: Scale, recorded: Recorded = NOTHING_RECORDED) -> None:
        self.store, self.scale, self.seed, self._recorded = store, scale, 0, recorded
        self._load = load = lru_cache(maxsize=_KEPT)(lambda run_id: store.load(run_id).resolved())
        self._computed = lru_cache(maxsize=_KEPT)(lambda compute, run_id: compute(load(run_id)))
        self._diagrams: dict[str, PhaseDiagram] = {}

    def at_seed(self, seed: int) -> "Evidence":
        """The same for another seed of the single networks."""
        other = copy.copy(self)
        other.seed = seed
        return other

    def network(self, spec: RunSpec) -> RunResult:
        """A single network of the paper, with its weights."""
        result = self._load(self.scale.network(spec, self.seed).run_id)
        if result.status == "diverged":
            raise DivergedError(f"run {result.run_id} diverged at step {result.diverged_step}: it left no network")
        return result

    def networks(self, specs: Iterable[RunSpec]) -> list[RunResult]:
        """Several of them."""
        return [self.network(spec) for spec in specs]

    def seeds_of(self, spec: RunSpec, count: int) -> list[RunResult]:
        """A single network with as many of these seeds as the scale has, but for further ones that diverged."""
        results = [self.network(spec)]
        for seed in range(1, self.scale.seed_count(count)):
            with suppress(DivergedError):
                results.append(self.at_seed(seed).network(spec))
        return results

    def diagram(self, plan: Plan) -> PhaseDiagram:
        """A phase diagram of the paper. Cells that were left out because their neighbours agree are inferred."""
        scaled = self.scale.diagram(plan)
        key = repr(scaled)  # a plan cannot be hashed, and a name may mean several
        if key not in self._diagrams:
            if len(self._diagrams) == _KEPT_DIAGRAMS:
                del self._diagrams[next(iter(self._diagrams))]  # the oldest
            self._diagrams[key] = assemble(scaled, known_cells(self.store, scaled, self._recorded), refined=True)
        return self._diagrams[key]

    def look(self, subject: Subject) -> Any:
        """What there is of a subject: a RunResult, a PhaseDiagram, what was computed from one, or a RunSpec."""
        match subject:
            case RunSpec():
                return self.network(subject)
            case Plan():
                return self.diagram(subject)
            case Untrained(spec):
                return self.scale.network(spec, self.seed)
            case View(RunSpec() as spec, compute):
                return self._computed(compute, self.network(spec).run_id)
            case View(Plan() as plan, compute):
                return compute(self.diagram(plan))

    def missing(self, needs: Needs) -> int:
        """How many runs are missing, including failed ones; cells that can be inferred do not count."""
        return len(missing_networks(self.store, needs.specs(self.scale))) + sum(
            len(missing_places(self.store, plan, self._recorded)) for plan in needs.plans(self.scale)
        )


def best_scale(
    needs: Callable[[Scale], Needs],
    scales: Sequence[Scale],
    store: Store | None,
    recorded: Recorded = NOTHING_RECORDED,
) -> Scale:
    """The first scale at which nothing is missing, or else the last.

    A reduced scale that means the same runs as the last one goes by the last one's name.
    """
    *better, last = scales
    for scale in better:
        wanted = needs(scale)
        if store is None or Evidence(store, scale, recorded).missing(wanted):
            continue
        if scale.full or _runs(wanted, scale) != _runs(needs(last), last):
            return scale
    return last


def _runs(needs: Needs, scale: Scale) -> set[str]:
    specs = [*needs.specs(scale), *(spec for plan in needs.plans(scale) for spec in plan.specs())]
    return {spec.run_id for spec in specs}


def missing_networks(store: Store, specs: Iterable[RunSpec]) -> list[RunSpec]:
    """The networks that are not in the store, or are there without their weights."""
    wanted = {spec.run_id: spec for spec in specs}
    return [wanted[run_id] for run_id in store.without_weights(wanted)]


def missing_places(store: Store, plan: Plan, recorded: Recorded = NOTHING_RECORDED) -> list[int]:
    """The cells of a diagram to run next; none if all that are missing can be inferred."""
    return wanted_places(plan, known_cells(store, plan, recorded))


def cells_to_run(store: Store, plan: Plan, *, inferring: bool) -> list[RunSpec]:
    """The runs of a diagram that are to be done, each once.

    With inferring it is an upper bound, since some of them will turn out not to be needed; none is exact.
    """
    if inferring and not missing_places(store, plan):
        return []
    cells = zip(plan.specs(), known_cells(store, plan), strict=True)
    return list({spec.run_id: spec for spec, cell in cells if cell.outcome is None}.values())


def known_cells(store: Store, plan: Plan, recorded: Recorded = NOTHING_RECORDED) -> list[CellOutcome]:
    """The outcome of every cell of a diagram. A failure says nothing about the network, so its cell is missing."""
    cells = store.outcomes(spec.run_id for spec in plan.specs())
    return completed((cell._replace(outcome=None) if cell.outcome == "failed" else cell for cell in cells), recorded)

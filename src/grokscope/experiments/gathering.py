"""The runs that figures and claims need: which are missing, how long they take, and doing them.

work = plan_work([EXPERIMENTS["fig06"]], [], Amount("tiny"), Running(), Path("grokscope-runs"))
sum(job.seconds for job in jobs(work))
store = gather(work)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grokscope.errors import GrokscopeError
from grokscope.experiments.captions import reduction, settings
from grokscope.experiments.claim import Claim
from grokscope.experiments.evidence import (
    best_scale,
    cells_to_run,
    missing_networks,
    missing_places,
    together,
)
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.scale import Amount, Scale
from grokscope.notes import note
from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps import Running, run_all
from grokscope.sweeps.estimate import estimated_bytes, estimated_seconds, relative_cost
from grokscope.sweeps.plan import Plan
from grokscope.sweeps.running import check_data, check_engines, check_reached
from grokscope.sweeps.stopping import stop_on_request
from grokscope.sweeps.sweep import Sweep


class StoppedError(GrokscopeError):
    """The work was asked to stop before all runs were done. Nothing is lost: the same call goes on."""


@dataclass(frozen=True)
class Work:
    """Figures and claims, each with its scale, the runs that they need, and how to do those that are missing."""

    figures: tuple[tuple[Experiment, Scale], ...]
    claims: tuple[tuple[Claim, Scale], ...]
    specs: tuple[RunSpec, ...]  # single networks
    plans: tuple[Plan, ...]  # diagrams
    amount: Amount
    running: Running
    store: Path

    @property
    def inferring(self) -> bool:
        """Whether cells whose neighbours agree may be left out. At the best scale a complete diagram stays as it is."""
        return self.amount.refine or self.amount.best


def plan_work(
    figures: Sequence[Experiment], claims: Sequence[Claim], amount: Amount, running: Running, store: Path
) -> Work:
    """Choose a scale for each figure and claim; refuses what cannot be run before anything is written."""
    opened = open_if_there(store)

    def scale_for(wanted: Experiment | Claim) -> Scale:
        return best_scale(wanted.needs, amount.scales(own=bool(wanted.file)), opened)

    drawn = tuple((experiment, scale_for(experiment)) for experiment in figures)
    checked = tuple((claim, scale_for(claim)) for claim in claims)
    needed = [(experiment.needs(scale), scale) for experiment, scale in drawn]
    needed += [(claim.needs(scale), scale) for claim, scale in checked]
    specs, plans = together(needed)
    runs = [*specs, *(spec for plan in plans for spec in plan.specs())]
    check_engines(running, runs)
    check_data(running, runs, store)
    _say_what_is_reduced([*drawn, *checked])
    return Work(drawn, checked, tuple(specs), tuple(plans), amount, running, store)


def _say_what_is_reduced(wanted: Sequence[tuple[Experiment | Claim, Scale]]) -> None:
    """A user's file says what to train, so who gets less is told."""
    reduced = {(each.file, scale.name) for each, scale in wanted if each.file and each.needs(scale).reduced(scale)}
    for file, scale in sorted(reduced):
        note(f"{file}: {reduction(scale)}")


@dataclass(frozen=True)
class Chore:
    """What is to be done for the single networks, or for one diagram."""

    name: str
    runs: int
    done: int  # in the store
    shared: int  # done by the jobs before it
    to_do: int
    seconds: float  # with all processes
    size: float  # bytes in the store
    diagram: bool

    @property
    def inferred(self) -> int:
        """Cells that need not be run."""
        return self.runs - self.done - self.shared - self.to_do


def jobs(work: Work) -> list[Chore]:
    """What there is to do and how long it will take, estimated from a few steps that are run now."""
    store = open_if_there(work.store)
    planned: set[str] = set()

    def job(name: str, runs: int, done: int, missing: Sequence[RunSpec], *, diagram: bool) -> Chore:
        to_do = [spec for spec in missing if spec.run_id not in planned]
        planned.update(spec.run_id for spec in to_do)
        possible = [spec for spec in to_do if relative_cost(spec)]
        seconds = estimated_seconds(possible, work.running)
        size = estimated_bytes(possible, weights=not diagram)
        return Chore(name, runs, done, len(missing) - len(to_do), len(to_do), seconds, size, diagram)

    found = []
    if work.specs:
        missing = missing_networks(store, work.specs) if store else list(work.specs)
        found.append(job("networks", len(work.specs), len(work.specs) - len(missing), missing, diagram=False))
    for plan in work.plans:
        runs = {spec.run_id: spec for spec in plan.specs()}
        done = sum(cell.outcome not in (None, "failed") for cell in store.outcomes(runs)) if store else 0
        missing = cells_to_run(store, plan, inferring=work.inferring) if store else list(runs.values())
        found.append(job(plan.name, len(runs), done, missing, diagram=True))
    return found


def open_if_there(path: Path) -> Store | None:
    """The store if it exists: looking should not create one."""
    return Store(path, create=False) if (path / "index.sqlite").exists() else None


def gather(work: Work) -> Store:
    """Do the runs that the store lacks, single networks first, then one diagram after another; the store.

    Shows how it goes. The first Ctrl-C saves where the runs under way stand and raises StoppedError.
    """
    check_reached(work.running, work.store)
    store = Store(work.store, create=True)
    _delete_damaged(store, work.specs)
    if missing := missing_networks(store, work.specs):
        _run_networks(missing, store, work.running)
    for place, plan in enumerate(work.plans, start=1):
        _run_diagram(plan, f"{plan.name}, diagram {place} of {len(work.plans)}", store, work)
    return store


def failed_runs(work: Work) -> int:
    """After it was gathered: how many of its runs could not be done."""
    store = Store(work.store, create=False)
    failed = {spec.run_id for spec in missing_networks(store, work.specs)}
    for plan in work.plans:
        cells = store.outcomes(spec.run_id for spec in plan.specs())
        failed |= {cell.run_id for cell in cells if cell.outcome == "failed"}
    return len(failed)


def _delete_damaged(store: Store, specs: Sequence[RunSpec]) -> None:
    """A damaged network is as a missing one: it can be trained again."""
    known = store.files()
    for spec in specs:
        if spec.run_id in known and (reason := store.damage(spec.run_id)):
            note(f"Run {spec.run_id} is damaged ({reason}): it is deleted and trained again.")
            store.delete(spec.run_id)


def _run_networks(specs: Sequence[RunSpec], store: Store, running: Running) -> None:
    from grokscope.sweeps.bars import RunsProgress  # with rich, which worker processes do not need

    note(f"Training {len(specs)} network{'' if len(specs) == 1 else 's'}")
    names = [f"{spec.run_id[:6]} {settings(spec, short=True)}" for spec in specs]
    with stop_on_request() as should_stop, RunsProgress(list(specs), names) as progress:
        for event in run_all(specs, store.path, replace(running, weights=True), should_stop=should_stop):
            progress.show(event)
        _end_if(should_stop())


def _run_diagram(plan: Plan, title: str, store: Store, work: Work) -> None:
    if work.amount.best and not missing_places(store, plan):
        return
    # A diagram that was refined before stays one: until the last cell is run, what is missing can be inferred.
    before = any(sweep.refined for sweep in store.sweeps() if sweep.name == plan.name)
    specs, refine = list(plan.specs()), work.amount.refine
    recorded = Sweep(plan, store, specs=specs, refined=refine or before)
    if recorded.takes_a_name():
        if work.running.cluster is not None:
            work.running.cluster.connect()  # as in `start_sweep`
        note(
            f"The store has a sweep {plan.name} with other settings. Its runs stay, and the name now means this one; "
            "another --store keeps both."
        )
    recorded.record()
    store.forget_failures(plan.name)  # what failed before is tried again, as single networks are
    if cells_to_run(store, plan, inferring=refine):
        note(title)
        _end_if(Sweep(plan, store, specs=specs, refined=refine).carry_out(work.running))


def _end_if(stopped: bool) -> None:
    if stopped:
        raise StoppedError("stopped before all runs were done; nothing is lost, and the same call goes on")

"""The ledger of claims and the gallery for the page: what the paper says, and what the store has to say about it.

claim_view(store, "two-peaks").verdict

Lists are made from the catalogue alone. A claim is measured, and a figure drawn, when somebody opens it, from runs that
are there: nothing is trained.
"""

import threading
from collections.abc import Collection, Iterable

from pydantic import BaseModel

from grokscope.errors import GrokscopeError, StoreError
from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.claim import Claim, examine
from grokscope.experiments.evidence import Evidence, Needs, best_scale, missing_networks
from grokscope.experiments.experiment import Experiment
from grokscope.experiments.reproduction import draw
from grokscope.experiments.scale import BEST, Amount
from grokscope.explorer.numbers import rounded
from grokscope.store import Store
from grokscope.sweeps.recorded import NOTHING_RECORDED, Recorded

MOST_LINKS = 60
_drawing = threading.Lock()  # matplotlib's settings are global


class PaperItem(BaseModel):
    """A claim or a figure in a list."""

    name: str
    title: str
    where: str  # in the paper, or of a claim the figure that it is about
    unavailable: str = ""


class PaperList(BaseModel):
    """All claims, or all figures."""

    items: list[PaperItem]


class CheckView(BaseModel):
    """A number that was measured, and its bounds."""

    words: str
    verdict: str
    values: list[float | None]


class ClaimView(BaseModel):
    """A claim, and what the runs of the store say about it."""

    name: str
    statement: str
    where: str
    figure: str
    scale: str
    verdict: str
    checks: list[CheckView]
    note: str
    runs: list[str]  # that it looks at and the store has
    sweeps: list[str]
    missing: int


class FigureView(BaseModel):
    """A figure: its caption, and the runs behind it."""

    name: str
    title: str
    caption: str
    scale: str
    runs: list[str]
    sweeps: list[str]
    claims: list[str]
    missing: int  # runs that have to be done before it can be drawn
    command: str


def claim_list() -> PaperList:
    """All claims, in the order of the figures."""
    items = [
        PaperItem(name=claim.id, title=claim.statement, where=f"{claim.paper}, {experiment.name}")
        for experiment in EXPERIMENTS.values()
        for claim in experiment.claims
    ]
    return PaperList(items=list({item.name: item for item in items}.values()))


def figure_list() -> PaperList:
    """All figures and tables."""
    return PaperList(
        items=[
            PaperItem(name=each.name, title=each.title, where=each.caption, unavailable=each.unavailable)
            for each in EXPERIMENTS.values()
        ]
    )


def made_from(store: Store, sweeps: Collection[str], recorded: Recorded = NOTHING_RECORDED) -> list[FigureView]:
    """The figures whose diagrams are among these sweeps and whose runs are all there, or known from tables."""
    views = (figure_view(store, name, recorded) for name, each in EXPERIMENTS.items() if not each.unavailable)
    return [view for view in views if not view.missing and view.sweeps and set(view.sweeps) <= set(sweeps)]


def claim_view(store: Store, name: str, recorded: Recorded = NOTHING_RECORDED) -> ClaimView:
    """Measure a claim at the largest scale whose runs are all there."""
    if name not in CLAIMS:
        raise StoreError(f"there is no claim {name!r}")
    claim = CLAIMS[name]
    evidence = _evidence(store, claim, recorded)
    finding = examine(claim, evidence)
    needs = claim.needs(evidence.scale)
    return ClaimView(
        name=claim.id,
        statement=claim.statement,
        where=claim.paper,
        figure=next(each.name for each in EXPERIMENTS.values() if claim in each.claims),
        scale=evidence.scale.name,
        verdict=finding.verdict.value,
        checks=[
            CheckView(words=each.text, verdict=each.verdict.value, values=[rounded(value) for value in each.values])
            for each in finding.measured
        ],
        note=claim.note,
        runs=_runs(store, needs, evidence),
        sweeps=_sweeps(store, needs, evidence),
        missing=evidence.missing(needs),
    )


def figure_view(store: Store, name: str, recorded: Recorded = NOTHING_RECORDED) -> FigureView:
    """What a figure is made of, at the largest scale whose runs are all there."""
    experiment = _experiment(name)
    evidence = _evidence(store, experiment, recorded)
    needs = experiment.needs(evidence.scale)
    return FigureView(
        name=name,
        title=experiment.title,
        caption=experiment.caption,
        scale=evidence.scale.name,
        runs=_runs(store, needs, evidence),
        sweeps=_sweeps(store, needs, evidence),
        claims=[claim.id for claim in experiment.claims],
        missing=evidence.missing(needs),
        command=f"grokscope figure {name} --scale {evidence.scale.name}",
    )


def figure_picture(store: Store, name: str, recorded: Recorded = NOTHING_RECORDED) -> bytes:
    """The figure as PNG."""
    experiment = _experiment(name)
    with _drawing:
        return draw(experiment, _evidence(store, experiment, recorded))._repr_png_()


def _experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise StoreError(f"there is no figure {name!r}")
    if EXPERIMENTS[name].unavailable:
        raise GrokscopeError(f"{name} cannot be made: {EXPERIMENTS[name].unavailable}")
    return EXPERIMENTS[name]


def _evidence(store: Store, what: Claim | Experiment, recorded: Recorded) -> Evidence:
    return Evidence(store, best_scale(what.needs, Amount(BEST).scales(), store, recorded), recorded)


def _runs(store: Store, needs: Needs, evidence: Evidence) -> list[str]:
    """The single networks among the runs that are needed, as far as they are there."""
    specs = list(needs.specs(evidence.scale))
    lacking = {spec.run_id for spec in missing_networks(store, specs)}
    return _some(spec.run_id for spec in specs if spec.run_id not in lacking)


def _sweeps(store: Store, needs: Needs, evidence: Evidence) -> list[str]:
    there = {sweep.name for sweep in store.sound_and_damaged_sweeps()[0]}
    return _some(plan.name for plan in needs.plans(evidence.scale) if plan.name in there)


def _some(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))[:MOST_LINKS]

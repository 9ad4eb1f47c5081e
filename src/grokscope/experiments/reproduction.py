"""Figures and claims in one call each, for programs and notebooks.

    drawing = gs.figure("fig06", scale="tiny")
    findings = gs.claims(["fig06", "two-peaks"], scale="tiny")
    gs.reproduce(["fig01", "fig06"], scale="tiny", out="pictures")

Runs that the store does not have are done first. Ctrl-C is safe: the same call goes on.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from grokscope.cluster import cluster_at
from grokscope.errors import DamagedError, GrokscopeError
from grokscope.experiments.captions import caption, command
from grokscope.experiments.claim import Claim, examine
from grokscope.experiments.evidence import DivergedError, Evidence
from grokscope.experiments.experiment import ENDINGS, Drawing, Experiment
from grokscope.experiments.gathering import Work, gather, open_if_there, plan_work
from grokscope.experiments.record import Entry
from grokscope.experiments.scale import Amount, Scale
from grokscope.experiments.verdicts import Findings, check_ledger_path
from grokscope.notes import note
from grokscope.outputs import check_writable, write_file
from grokscope.store import DEFAULT_STORE, Store, store_flag
from grokscope.sweeps import Running

DEFAULT_OUT = Path("grokscope-figures")


@dataclass(frozen=True)
class Reproduction:
    """Figures, and the verdicts on the claims about them."""

    drawings: dict[str, Drawing]  # by name
    not_drawn: dict[str, str]  # by name, why: a run failed or diverged
    findings: Findings


def figure(
    name: str,
    *,
    scale: str | None = None,
    grid: str | None = None,
    seeds: int | None = None,
    refine: bool = False,
    store: Path | str | Store = DEFAULT_STORE,
    workers: int | None = None,
    engine: str = "auto",
    device: str = "cpu",
    cluster: str | None = None,
    cluster_config: Path | str | None = None,
    hosts: str | Sequence[str] = (),
    out: Path | str | None = None,
) -> Drawing:
    """Draw a figure, after doing the runs that it needs and the store does not have.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as runs:
    ...     drawing = figure("analytic", scale="tiny", store=runs)
    >>> list(drawing.data)[:3]
    ['width', 'seed', 'rms_error']

    `name` is one of `grokscope figures list`, drawn at the scale "quick", or a file of your own, which is trained as it
    is written; `scale` says otherwise. With `out`, files are written to that directory.
    """
    from grokscope.experiments.catalogue import experiments_called

    (chosen,) = experiments_called([name])
    amount = Amount(scale, grid, seeds, refine)
    with cluster_at(cluster, cluster_config, hosts) as place:
        running = Running(workers=workers, engine=engine, device=device, cluster=place)
        made = make(plan_work([chosen], [], amount, running, _path(store)), _directory(out))
    for reason in made.not_drawn.values():
        raise GrokscopeError(f"{chosen.name} was not drawn: {reason}")
    return made.drawings[chosen.name]


def claims(
    names: str | Sequence[str] = (),
    *,
    scale: str | None = None,
    grid: str | None = None,
    seeds: int | None = None,
    refine: bool = False,
    run: bool = True,
    store: Path | str | Store = DEFAULT_STORE,
    workers: int | None = None,
    engine: str = "auto",
    device: str = "cpu",
    cluster: str | None = None,
    cluster_config: Path | str | None = None,
    hosts: str | Sequence[str] = (),
    out: Path | str | None = None,
) -> Findings:
    """Check claims, after doing the runs that they need and the store does not have.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as runs:
    ...     findings = claims("frequencies-suffice", scale="tiny", store=runs)
    >>> [(finding.claim.id, finding.verdict.value) for finding in findings]
    [('frequencies-suffice', 'holds')]

    `names` are of claims, figures or files of your own; none means all claims. With `run=False` nothing is trained, and
    claims that lack runs are reported as not run. `out` is a file for the ledger: .md or .json.
    """
    from grokscope.experiments.catalogue import claims_called

    chosen = claims_called([names] if isinstance(names, str) else names)
    ledgers = [] if out is None else [Path(out)]
    for path in ledgers:
        check_ledger_path(path)
    amount = Amount(scale, grid, seeds, refine)
    with cluster_at(cluster, cluster_config, hosts) as place:
        running = Running(workers=workers, engine=engine, device=device, cluster=place)
        return check_claims(plan_work([], chosen, amount, running, _path(store)), ledgers, run=run)


def reproduce(
    names: str | Sequence[str] = ("all",),
    *,
    scale: str | None = None,
    grid: str | None = None,
    seeds: int | None = None,
    refine: bool = False,
    store: Path | str | Store = DEFAULT_STORE,
    workers: int | None = None,
    engine: str = "auto",
    device: str = "cpu",
    cluster: str | None = None,
    cluster_config: Path | str | None = None,
    hosts: str | Sequence[str] = (),
    out: Path | str = DEFAULT_OUT,
    report: Path | str | None = None,
) -> Reproduction:
    """Make figures, by default all, check the claims about them, and write everything to `out`; `report` is a PDF.

    Example: `gs.reproduce(["fig01", "fig06"], scale="tiny").findings.counts`
    """
    from grokscope.experiments.catalogue import claims_about, experiments_called

    chosen = experiments_called([names] if isinstance(names, str) else names, all_allowed=True)
    amount = Amount(scale, grid, seeds, refine)
    with cluster_at(cluster, cluster_config, hosts) as place:
        running = Running(workers=workers, engine=engine, device=device, cluster=place)
        work = plan_work(chosen, claims_about(chosen), amount, running, _path(store))
        return make(work, _directory(out), report=_directory(report))


def _say_where(picture: Path) -> None:
    note(f"Figure: {picture}")


def make(
    work: Work,
    out: Path | None = None,
    on_saved: Callable[[Path], None] = _say_where,
    *,
    report: Path | None = None,
) -> Reproduction:
    """Do the missing runs, draw the figures and check the claims. Each file is written as soon as it is ready, and
    `on_saved` hears of every picture. The report, a PDF, has all of them.
    """
    if report is not None:
        check_report_path(report)
        check_writable([report])
    ledgers = [out / "claims.md", out / "claims.json"] if out and work.claims else []
    if out:
        pictures = [out / f"{experiment.name}{ending}" for experiment, _ in work.figures for ending in ENDINGS]
        check_writable([*pictures, *ledgers])
    store = gather(work)
    evidence = _by_scale(store, (*work.figures, *work.claims))
    drawings: dict[str, Drawing] = {}
    not_drawn: dict[str, str] = {}
    for experiment, scale in work.figures:
        try:
            drawings[experiment.name] = drawing = draw(experiment, evidence[scale])
        except (DivergedError, DamagedError, MissingRunsError) as error:
            not_drawn[experiment.name] = str(error)
            continue
        if out:
            on_saved(drawing.save(out))
    findings = examine_all([(claim, evidence[scale]) for claim, scale in work.claims])
    _write(findings, ledgers)
    if report is not None:
        note(f"Report: {write_report(report, work, drawings, findings)}")
    return Reproduction(drawings, not_drawn, findings)


def check_report_path(path: Path) -> None:
    """Refuse a path that is not that of a PDF, before anything is run for it."""
    if path.suffix != ".pdf":
        raise GrokscopeError(f"--report = {str(path)!r} is not allowed: must end in .pdf")


def write_report(path: Path, work: Work, drawings: Mapping[str, Drawing], findings: Findings) -> Path:
    """Write the drawings and the verdicts as a PDF; the absolute path."""
    from grokscope.experiments.report_pdf import FigurePage, report_pdf
    from grokscope.plots import figure_bytes

    pages = []
    for experiment, _ in work.figures:
        if drawing := drawings.get(experiment.name):
            made_with = drawing.caption.rpartition("Made with: ")[2].strip()
            picture = figure_bytes(drawing.figure)
            pages.append(FigurePage(experiment.name, experiment.title, experiment.caption, made_with, picture))
    return write_file(path, report_pdf(pages, [Entry.of(finding) for finding in findings]))


def check_claims(work: Work, ledgers: Sequence[Path] = (), *, run: bool = True) -> Findings:
    """Check the claims alone; with run=False, from what the store has."""
    check_writable(ledgers)
    with TemporaryDirectory() as nothing:  # looking at what is there should not make a store
        store = gather(work) if run else open_if_there(work.store) or Store(nothing, create=True)
        evidence = _by_scale(store, work.claims)
        findings = examine_all([(claim, evidence[scale]) for claim, scale in work.claims])
    _write(findings, ledgers)
    return findings


class MissingRunsError(GrokscopeError):
    """A figure cannot be drawn because runs of it failed."""


def draw(experiment: Experiment, evidence: Evidence) -> Drawing:
    """Draw a figure from stored runs, and add its name and its caption."""
    flag = store_flag(evidence.store.path)
    if missing := evidence.missing(experiment.needs(evidence.scale)):
        raise MissingRunsError(
            f"{missing} of its runs failed: `grokscope status{flag}` says why, and the same command tries them again"
        )
    made_with = command(experiment, evidence) + flag
    return replace(experiment.drawing(evidence), name=experiment.name, caption=caption(experiment, evidence, made_with))


def examine_all(chosen: Sequence[tuple[Claim, Evidence]]) -> Findings:
    """Measure each claim on its evidence."""
    findings = []
    for place, (claim, evidence) in enumerate(chosen, start=1):
        if sys.stderr.isatty():  # only where somebody waits
            note(f"Checking {claim.id} ({place} of {len(chosen)})")
        findings.append(examine(claim, evidence))
    return Findings(tuple(findings))


def _by_scale(store: Store, chosen: Sequence[tuple[object, Scale]]) -> dict[Scale, Evidence]:
    """One for each scale: figures and claims share what was read and computed."""
    return {scale: Evidence(store, scale) for scale in {scale for _, scale in chosen}}


def _write(findings: Findings, ledgers: Sequence[Path]) -> None:
    for path in ledgers:
        note(f"Ledger: {findings.save(path)}")


def _path(store: Path | str | Store) -> Path:
    return store.path if isinstance(store, Store) else Path(store)


def _directory(out: Path | str | None) -> Path | None:
    return None if out is None else Path(out)

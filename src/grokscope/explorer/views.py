"""The lists of the page: what a store is, and all of its sweeps and runs.

run_list(store, "task.corruption>=0.3 transformer").runs[0].words
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from grokscope.errors import SpecError
from grokscope.explorer import models as m
from grokscope.explorer.numbers import rounded
from grokscope.explorer.words import settings_of, short_name
from grokscope.phases import Phase
from grokscope.store import Store, StoredRun

DIVERGED_COLOR = "#5b2a86"
MOST_LISTED = 200
_NOW = "%Y-%m-%dT%H:%M:%S+00:00"


def store_view(store: Store, *, allow_train: bool, report: bool) -> m.StoreView:
    """The name of a store, and the legend of all diagrams."""
    phases = [m.PhaseLegend(name=p.value, label=p.label, color=p.color, words=p.describe()) for p in Phase]
    diverged = m.PhaseLegend(
        name="diverged",
        label="Diverged",
        color=DIVERGED_COLOR,
        words="The loss became infinite or not a number: there is no network to look at.",
    )
    return m.StoreView(
        name=store.path.name or str(store.path),
        version=version("grokscope"),
        allow_train=allow_train,
        report=report,
        outcomes=[*phases, diverged],
        made_at=datetime.now(UTC).strftime(_NOW),
    )


def sweep_list(store: Store) -> m.SweepList:
    """All sweeps, newest first; damaged ones last."""
    found, damaged = store.sound_and_damaged_sweeps()
    progress = store.progress()
    sweeps = [
        m.SweepSummary(
            name=sweep.name,
            started_at=sweep.started_at,
            axes=_axes_in_words(sweep.definition.get("axes", ())),
            cells=progress.get(sweep.name, (0, 0))[0],
            done=progress.get(sweep.name, (0, 0))[1],
            damaged=False,
        )
        for sweep in reversed(found)
    ]
    broken = [m.SweepSummary(name=name, started_at="", axes="", cells=0, done=0, damaged=True) for name in damaged]
    return m.SweepList(sweeps=sweeps + broken)


def _axes_in_words(axes: Iterable[Mapping[str, Sequence[str]]]) -> str:
    return " × ".join(f"{len(axis['points'])} {short_name(axis['fields'][0])}" for axis in axes)


def run_list(store: Store, search: str = "", *, limit: int = 50, offset: int = 0) -> m.RunList:
    """Runs, newest first. `search` has conditions such as task.corruption>=0.3, and words that `Store.page` finds."""
    words = search.split()
    conditions = [word for word in words if re.search("[=<>]", word)]
    text = [word.lower() for word in words if not re.search("[=<>]", word)]
    try:
        page = store.page(conditions, text, limit=min(limit, MOST_LISTED), offset=offset)
    except SpecError as error:
        return m.RunList(total=0, offset=0, runs=[], problem=str(error))
    damaged = [
        m.RunSummary(
            run_id=run_id, finished_at="", outcome=None, words="damaged", train_accuracy=None, test_accuracy=None,
            has_weights=False, damaged=True,
        )
        for run_id in page.damaged
    ]  # fmt: skip
    return m.RunList(total=page.total, offset=offset, runs=[*map(_run_summary, page.runs), *damaged])


def _run_summary(run: StoredRun) -> m.RunSummary:
    final = run.final or {}
    return m.RunSummary(
        run_id=run.run_id,
        finished_at=run.finished_at,
        outcome=run.phase.value if run.phase else "diverged",
        words=settings_of(run.spec),
        name=run.name,
        tags=list(run.tags),
        train_accuracy=rounded(final.get("train_accuracy")),
        test_accuracy=rounded(final.get("test_accuracy")),
        has_weights=run.has_weights,
        damaged=False,
    )

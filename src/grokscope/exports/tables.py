"""Runs, their curves and their neurons as tables, made some runs at a time.

table = runs_table(store, store.ids(["phase=coexistence"]))
for part in table.parts:
    part["task.corruption"]
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grokscope.exports.fields import Kinds, Survey, of_kind
from grokscope.measure import COLUMNS, WHOLE_NUMBERS
from grokscope.result import RunResult
from grokscope.store import Store, StoredRun
from grokscope.tables import Value, optional_module

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = 200  # runs that are in memory together

OnRun = Callable[[], None]
Part = dict[str, list[Any]]  # columns of one length

_OUTCOME: Kinds = {
    "run_id": str,
    "status": str,
    "phase": str,
    "diverged_step": int,
    "engine": str,
    "seconds": float,
    "has_weights": bool,
    "finished_at": str,
    "name": str,
    "tags": str,
    "note": str,
}


@dataclass(frozen=True)
class StreamedTable:
    """A table whose rows are made while they are read, once."""

    kinds: Kinds  # of the columns, in their order; a place without a value is None
    parts: Iterator[Part]

    def to_pandas(self) -> "pd.DataFrame":
        """All of it, as a table of pandas; the phase is a category."""
        pandas = optional_module("pandas")
        frames = [pandas.DataFrame(self._typed(pandas, part)) for part in self.parts]
        frame = pandas.concat(frames or [pandas.DataFrame(self._typed(pandas, {}))], ignore_index=True)
        return frame.astype({"phase": "category"}) if "phase" in frame else frame

    def _typed(self, pandas: Any, part: Part) -> dict[str, Any]:
        names = {bool: "boolean", int: "Int64", float: "float64", str: "str"}
        typed = {}
        for name, kind in self.kinds.items():
            values = part.get(name, [])
            whole = kind in (bool, int) and None not in values
            typed[name] = pandas.Series(values, dtype=kind.__name__ if whole else names[kind])
        return typed


def runs_table(store: Store, run_ids: Sequence[str], on_run: OnRun = lambda: None) -> StreamedTable:
    """One row for each run: its outcome, what people say about it, its settings, its last row. Reads the index only."""
    survey, finals = surveyed(store, run_ids)
    kinds = _OUTCOME | _known(survey.kinds) | finals

    def rows() -> Iterator[dict[str, Value]]:
        for run in entries(store, run_ids):
            outcome = {name: getattr(run, name) for name in _OUTCOME}
            said = {"tags": " ".join(run.tags) or None, "note": run.note or None}
            yield {**outcome, **said, **run.spec.settings(), **(run.final or {})}
            on_run()

    return StreamedTable(kinds, _in_parts(kinds, ({name: [value] for name, value in row.items()} for row in rows())))


def curves_table(store: Store, run_ids: Sequence[str], on_run: OnRun = lambda: None) -> StreamedTable:
    """One row for each measured step of each run, with the settings in which the runs differ."""
    survey, finals = surveyed(store, run_ids)
    return _with_settings(store, run_ids, survey, finals, RunResult.to_columns, on_run)


def neurons_table(store: Store, run_ids: Sequence[str], on_run: OnRun = lambda: None) -> StreamedTable:
    """One row for each neuron of each run that has some, with the settings in which the runs differ."""
    kinds: Kinds = {"neuron": int, "ipr": float, "gini": float, "dead": bool}
    kinds |= {f"{quantity}_{letter}": float for quantity in ("ipr", "gini") for letter in "uvw"}
    kinds |= {f"frequency_{letter}": int for letter in "uvw"} | {"norm_scale": float}

    def columns(result: RunResult) -> Part:
        return result.neurons.to_columns() if result.neurons is not None else {}

    return _with_settings(store, run_ids, surveyed(store, run_ids)[0], kinds, columns, on_run)


TABLES = {"runs": runs_table, "curves": curves_table, "neurons": neurons_table}


def entries(store: Store, run_ids: Sequence[str]) -> Iterator[StoredRun]:
    """What the index says about each run, asked for some at a time; damaged ones are left out with a warning."""
    for start in range(0, len(run_ids), AT_ONCE):
        yield from store.entries(run_ids[start : start + AT_ONCE])


def surveyed(store: Store, run_ids: Sequence[str]) -> tuple[Survey, Kinds]:
    """Which settings the runs have, and which columns their curves."""
    survey, finals = Survey(), dict.fromkeys(COLUMNS)
    for run in entries(store, run_ids):
        survey.add(run.spec.settings())
        finals |= dict.fromkeys(run.final or ())
    return survey, {name: int if name in WHOLE_NUMBERS else float for name in finals}


def _known(kinds: Kinds) -> Kinds:
    """A column in which no run has a value is one of text."""
    return {name: str if kind is type(None) else kind for name, kind in kinds.items()}


def _with_settings(
    store: Store,
    run_ids: Sequence[str],
    survey: Survey,
    kinds: Kinds,
    columns: Callable[[RunResult], Part],
    on_run: OnRun,
) -> StreamedTable:
    """The columns of each run, behind its id and what tells it from the others."""
    fields = _known(survey.kinds)
    own: Kinds = {"run_id": str} | {path: fields[path] for path in survey.differing()}

    def blocks() -> Iterator[Part]:
        for result in store.load_all(run_ids):
            block = columns(result)
            rows = len(next(iter(block.values()), []))
            values = {"run_id": result.run_id, **result.spec.settings()}
            yield {name: [values.get(name)] * rows for name in own} | block
            on_run()

    return StreamedTable(own | kinds, _in_parts(own | kinds, blocks()))


def _in_parts(kinds: Kinds, blocks: Iterable[Part]) -> Iterator[Part]:
    """The blocks of rows joined to parts of many runs, every column in its kind."""
    part: Part = {name: [] for name in kinds}
    count = 0
    for block in blocks:
        rows = len(next(iter(block.values()), []))
        for name, kind in kinds.items():
            part[name] += [of_kind(kind, value) for value in block[name]] if name in block else [None] * rows
        count += 1
        if count == AT_ONCE:
            yield part
            part, count = {name: [] for name in kinds}, 0
    if count:
        yield part

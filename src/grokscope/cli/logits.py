"""`grokscope logits`: what a network answers on corrupted examples, and by what margin."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt
import typer

from grokscope.arrays import Int64Array
from grokscope.cli.analysis import (
    JsonOption,
    NetworkArgument,
    OutOption,
    Table,
    check_outputs,
    load_network,
    write_outputs,
)
from grokscope.cli.options import DEFAULT_STORE, DataDirOption, StoreOption
from grokscope.cli.values import file_name, input_columns, network_name, number, numbers, places_from_text, print_json
from grokscope.errors import GrokscopeError
from grokscope.measure import LogitTable, logits_of, measure_logits
from grokscope.measure.logits import PARTS, Part
from grokscope.result import RunResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EXAMPLES = 4  # as in Figure 23
_MOST_EXAMPLES = 12
_PERCENTILES = (5, 25, 50, 75, 95)
_MARGIN_OF: dict[Part, str] = {
    "corrupted": "logit of the true label − logit of the label trained on",
    "clean": "logit of the true label − highest other logit",
    "test": "logit of the true label − highest other logit",
}


def logits(
    run: NetworkArgument,
    out: OutOption = None,
    examples: Annotated[
        str | None,
        typer.Option(
            metavar="I,…",
            help="Which corrupted training examples to show, counted from 0.",
            show_default="the first 4 with a wrong label",
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Show the logits of corrupted examples, and the margin of the true label on all examples.

    [bold]Examples[/bold]

    grokscope logits 41630c

    grokscope logits 41630c --examples 0,5,9 --out logits.pdf --out examples.csv

    grokscope logits 41630c --json
    """
    check_outputs(out, as_json=as_json)
    result = load_network(run, store)
    corrupted = np.flatnonzero(result.dataset().corrupted)
    if examples is not None and not len(corrupted):
        raise GrokscopeError(f"--examples = {examples!r} is not allowed: {_no_corrupted(result)}")
    chosen = None
    if examples is not None:
        chosen = places_from_text("--examples", examples, len(corrupted), "corrupted examples", _MOST_EXAMPLES)
    table = measure_logits(result.module(), result.dataset(), result.spec.training.loss)
    if chosen is None:
        wrong = table.label[corrupted] != table.truth[corrupted]
        chosen = np.flatnonzero(wrong)[:_EXAMPLES].tolist()
    shown = corrupted[chosen]  # places in the table, which begins with the training set
    if as_json:
        print_json(_content(result, table, shown, chosen))
        return
    for line in _words(result, table):
        typer.echo(line)
    write_outputs(
        out,
        file_name(result, "logits"),
        draw=lambda: _draw(result, table, shown),
        table=lambda: _rows(table),
    )


def _no_corrupted(result: RunResult) -> str:
    return f"{network_name(result)} has no corrupted examples (task.corruption = {result.spec.task.corruption:g})"


def _draw(result: RunResult, table: LogitTable, shown: Int64Array) -> "Figure":
    from grokscope.plots import draw_logits

    return draw_logits(result, table, shown, _logits(result, table, shown))


def _logits(result: RunResult, table: LogitTable, shown: Int64Array) -> npt.NDArray[np.float32]:
    """The logits of the shown examples [examples, p]."""
    if not len(shown):
        return np.zeros((0, result.spec.task.classes), np.float32)
    return logits_of(result.module(), table.pairs[shown])


def _words(result: RunResult, table: LogitTable) -> list[str]:
    """The margins of each part of the data."""
    lines = [f"{network_name(result)}: margin of the true label (its logit minus its rival's)"]
    for name in PARTS:
        margins = table.margins(name)
        if not len(margins):
            empty = _no_corrupted(result) if not table.corrupted.any() else "none with a wrong label"
            lines.append(f"  {name:9}  {empty if name == 'corrupted' else 'no examples'}")
            continue
        rival = "the label trained on" if name == "corrupted" else "the best other label"
        low, middle, high = np.percentile(margins, (5, 50, 95))
        lines.append(
            f"  {name:9}  {len(margins):5} examples  median {middle:+.3f}  (5 %: {low:+.3f}, 95 %: {high:+.3f})  "
            f"strictly higher than {rival} in {(margins > 0).mean():.1%}"
        )
    if unopposed := _unopposed(table):
        lines.append(f"  {unopposed} corrupted examples drew their true label by chance and are left out.")
    return lines


def _unopposed(table: LogitTable) -> int:
    return int((table.corrupted & (table.label == table.truth)).sum())


def _content(result: RunResult, table: LogitTable, shown: Int64Array, chosen: list[int]) -> dict[str, object]:
    columns = _rows(table)
    rows = _logits(result, table, shown)
    return {
        "run_id": network_name(result),
        "margins": {name: _distribution(table, name) for name in PARTS},
        "corrupted_with_true_label": _unopposed(table),
        "examples": [
            {"example": place} | {name: values[k] for name, values in columns.items()} | {"logits": numbers(row)}
            for place, k, row in zip(chosen, shown, rows, strict=True)
        ],
    }


def _distribution(table: LogitTable, name: Part) -> dict[str, object] | None:
    margins = table.margins(name)
    if not len(margins):
        return None
    return {
        "margin": _MARGIN_OF[name],
        "examples": len(margins),
        "mean": number(margins.mean()),
        "std": number(margins.std()),
        "percentiles": {str(q): number(np.percentile(margins, q)) for q in _PERCENTILES},
        "true_label_wins": number((margins > 0).mean()),
    }


def _rows(table: LogitTable) -> Table:
    """One row for each training example, in the order of the training set, then one for each test example."""
    return {
        "set": ["test" if test else "train" for test in table.in_test],
        **input_columns(table.pairs),
        "label": table.label.tolist(),
        "truth": table.truth.tolist(),
        "corrupted": table.corrupted.astype(int).tolist(),
        "predicted": table.predicted.tolist(),
        "logit_truth": numbers(table.logit_truth),
        "logit_label": numbers(table.logit_label),
        "margin": numbers(table.margin),
        "loss": numbers(table.loss),
    }

"""`grokscope audit`: which training labels look wrong to a network, and how many of those are wrong."""

from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column
from rich.table import Table as TextTable

from grokscope.cli.analysis import JsonOption, OutOption, Table, check_outputs, load_network, write_outputs
from grokscope.cli.audit_table import audit_table
from grokscope.cli.completion import offered_runs
from grokscope.cli.counting import counted
from grokscope.cli.options import DEFAULT_STORE, DataDirOption, StoreOption, note
from grokscope.cli.values import file_name, input_columns, network_name, print_json
from grokscope.errors import GrokscopeError
from grokscope.measure import Audit, audit_labels
from grokscope.phases import Phase
from grokscope.result import RunResult
from grokscope.store import Store
from grokscope.sweeps.audits import SweepAudit, audit_sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TABLE: dict[str, Any] = {"rich_help_panel": "A table of your own", "show_default": False}
_FIGURES = {  # metric of a score → heading
    "auroc": "AUROC",
    "average_precision": "average precision",
    "r_precision": "R-precision",
    "threshold_precision": "answer ≠ label: precision",
    "threshold_recall": "recall",
}


def audit(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            autocompletion=offered_runs,
            help="A run id or its first digits, with stored weights; or analytic, the closed-form network "
            "(analytic:31:200 for p=31, N=200).",
            show_default=False,
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Audit every finished run of this sweep that has weights, and draw a map."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Audit a table of your own; its first line has the names of the columns.", **_TABLE),
    ] = None,
    parquet: Annotated[Path | None, typer.Option("--parquet", help="The same in parquet.", **_TABLE)] = None,
    npy: Annotated[Path | None, typer.Option("--npy", help="The same as an array of numpy.", **_TABLE)] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN|FILE", help="The labels: a column, or with --npy a file.", **_TABLE),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="A column to leave out.", **_TABLE)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the audit of a table.", **_TABLE)] = 0,
    prune: Annotated[
        str,
        typer.Option(
            metavar="auto|none|FRACTION|ipr<X",
            help="Which neurons of a two-layer network to remove for the pruned scores. auto: those below the valley "
            "of the IPR histogram, if it has one.",
        ),
    ] = "auto",
    baseline: Annotated[
        str | None,
        typer.Option(metavar="cleanlab", help="Add cleanlab's scores; needs pip install 'grokscope\\[audit]'."),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the most suspicious examples to print.")] = 0,
    out: OutOption = None,
    data_dir: DataDirOption = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Rank the training examples of a run by how wrong their labels look to the network, and measure how good that is.

    With --csv, --parquet or --npy, find the wrong labels of a table of your own.

    The scores come from the logits on the training set.
    They are margin (best other logit minus the label's), loss, and confidence (1 minus the label's probability).
    Two-layer networks also have margin and loss without the memorising neurons.
    Scores ignore the true labels; the metrics use them.

    [bold]Examples[/bold]

    grokscope audit 41630c --top 20

    grokscope audit 41630c --baseline cleanlab --out audit.png --out audit.csv

    grokscope audit 41630c --prune "ipr<0.3" --json

    grokscope audit --sweep fig3a --out map.png --out map.csv

    grokscope audit --csv data.csv --label species --out worst.html --out ranking.csv
    """
    tables = {"csv": csv, "parquet": parquet, "npy": npy}
    if any(tables.values()):
        if run is not None or sweep is not None or baseline is not None:
            raise GrokscopeError("name a table, a run or a sweep, one of them; --baseline is for runs and sweeps")
        audit_table(tables, label, ignore or (), top, out, seed=seed, as_json=as_json)
        return
    if label is not None or ignore:
        raise GrokscopeError("--label and --ignore are for a table: name it with --csv, --parquet or --npy")
    check_outputs(out, as_json=as_json)
    if (run is None) == (sweep is None):
        raise GrokscopeError("name either a run, as in `grokscope audit 41630c`, or a sweep, with --sweep NAME")
    if sweep is not None:
        if top:
            raise GrokscopeError("--top is for a single run; leave it out with --sweep")
        _audit_sweep(Store(store, create=False), sweep, prune, baseline, out, as_json=as_json)
    else:
        assert run is not None
        _audit_run(run, store, prune, baseline, top, out, as_json=as_json)


def _audit_run(
    run: str, store: Path, prune: str, baseline: str | None, top: int, out: list[Path] | None, *, as_json: bool
) -> None:
    result = load_network(run, store)
    name = network_name(result)
    found = audit_labels(result.spec, result.trained_weights(), result.dataset(), prune=prune, baseline=baseline)
    if as_json:
        print_json(_to_dict(name, result, found, top))
        return
    for line in _words(name, result, found, prune):
        typer.echo(line)
    _print(_score_table(found))
    if top:
        typer.echo(f"The most suspicious by {found.ranked_by}:")
        _print(_top_table(found, top))

    def draw() -> "Figure":
        from grokscope.plots import draw_audit, settings_line

        assert result.phase is not None
        return draw_audit(found, f"{settings_line(result)}: {result.phase.label}")

    write_outputs(out, file_name(result, "audit"), draw, lambda: _example_table(found))


def _words(name: str, result: RunResult, audit: Audit, prune: str) -> list[str]:
    """What was audited, and which scores and metrics do not exist."""
    assert result.phase is not None
    wrong, examples, drawn = int(audit.wrong.sum()), len(audit.wrong), int(audit.dataset.corrupted.sum())
    words = [f"{name}: {result.phase.label}. {wrong} of {examples} training labels are wrong."]
    if drawn:
        words[0] += f" Of {drawn} corrupted ones {audit.drawn_right} were drawn right by chance."
    if not wrong:
        words.append("No label is wrong: there is nothing to find. AUROC, average precision and recall do not exist.")
    elif wrong == examples:
        words.append("Every label is wrong, so there is nothing to tell them from: AUROC does not exist.")
    if result.neurons is None:
        words.append(f"No pruned scores: {result.spec.task.why_no_waves()}.")
    elif result.spec.model.why_not_prunable():
        words.append(f"No pruned scores: they need a two-layer network, and this is a {result.spec.model.describe()}.")
    elif audit.pruning is None:
        words.append("No pruned scores: --prune none.")
    else:
        words.append(f"Pruned: {audit.pruning.describe()}.")
        if not audit.pruning.count:
            words[-1] += " The pruned scores are therefore those of the whole network."
    if not audit.scores["margin"].answers.flagged:
        words.append("Its answers equal all labels, so they flag no label, and their precision does not exist.")
    return words


def _to_dict(name: str, result: RunResult, audit: Audit, top: int) -> dict[str, object]:
    """For JSON; a value that does not exist is null."""
    assert result.phase is not None
    pruning = audit.pruning
    content: dict[str, object] = {
        "run_id": name,
        "phase": result.phase.value,
        "examples": len(audit.wrong),
        "corrupted": int(audit.dataset.corrupted.sum()),
        "drawn_right": audit.drawn_right,
        "wrong": int(audit.wrong.sum()),
        "prune": pruning
        and {"rule": pruning.rule, "neurons": pruning.count, "live": pruning.live, "ipr_below": pruning.below},
        "ranked_by": audit.ranked_by,
        "scores": {score: found.metrics() for score, found in audit.scores.items()},
    }
    if top:
        columns = {key: column[:top] for key, column in _ranked(audit).items()}
        content["top"] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return content


def _example_table(audit: Audit) -> Table:
    """One row for each training example, in the order of the training set."""
    data, order = audit.dataset, audit.most_suspicious()
    ranks = {int(example): rank for rank, example in enumerate(order, start=1)}
    columns: Table = {
        **input_columns(data.train_inputs),
        "label": data.train_labels.tolist(),
        "predicted": audit.predicted.tolist(),
        "truth": data.train_truth.tolist(),
        "wrong": audit.wrong.astype(int).tolist(),
        "corrupted": data.corrupted.astype(int).tolist(),
    }
    if audit.pruned_predicted is not None:
        columns["pruned_predicted"] = audit.pruned_predicted.tolist()
    return columns | {
        **{name: score.values.tolist() for name, score in audit.scores.items()},
        "rank": [ranks[example] for example in range(len(order))],
    }


def _ranked(audit: Audit) -> dict[str, list[object]]:
    """The examples, the most suspicious first, with the columns to show to a person."""
    table, order = _example_table(audit), audit.most_suspicious().tolist()
    shown = ["rank", "m", "n", "label", "predicted", "pruned_predicted", "truth", audit.ranked_by]
    return {name: [table[name][example] for example in order] for name in shown if name in table}


def _score_table(audit: Audit) -> TextTable:
    table = TextTable(
        Column("score", no_wrap=True), *(Column(head, justify="right") for head in _FIGURES.values()), box=None
    )
    for name, score in audit.scores.items():
        table.add_row(name, *(_number(score.metrics()[figure]) for figure in _FIGURES))
    return table


def _top_table(audit: Audit, count: int) -> TextTable:
    ranked = _ranked(audit)
    table = TextTable(*(Column(head.replace("_", " "), justify="right") for head in ranked), box=None)
    for row in list(zip(*ranked.values(), strict=True))[:count]:
        table.add_row(*(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row))
    return table


def _audit_sweep(
    store: Store, name: str, prune: str, baseline: str | None, out: list[Path] | None, *, as_json: bool
) -> None:
    with counted(f"Auditing {name}") as (on_run,):
        found = audit_sweep(store, name, prune=prune, baseline=baseline, on_run=on_run)
    if as_json:
        table = found.table()
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        print_json({"sweep": name, "prune": prune, "runs": rows})
        return
    audited = sum(run.scores is not None for run in found.runs)
    typer.echo(f"{name}: {audited} of {len(found.runs)} runs audited. Medians over the runs with wrong labels:")
    _print(_phase_table(found))
    reasons = [run.reason for run in found.runs if run.reason]
    for reason in dict.fromkeys(reasons):
        note(f"Not audited: {reasons.count(reason)} runs, {reason}")

    def draw() -> "Figure":
        from grokscope.plots import draw_audit_map

        return draw_audit_map(found)

    write_outputs(out, f"{name}-audit", draw, found.table)


def _phase_table(found: SweepAudit) -> TextTable:
    """For each phase: the median AUROC of every score, and the median recall of the whole and the pruned answers.

    Networks that cannot be pruned have rows of their own, so that all medians of a row are over the same runs.
    """
    networks = [name for name in ("margin", "pruned_margin") if name in found.score_names]
    heads = [f"AUROC {name.replace('_', ' ')}" for name in found.score_names]
    heads += [f"recall of {'pruned ' if name.startswith('pruned') else ''}answers" for name in networks]
    wanted = [("auroc", name) for name in found.score_names] + [("threshold_recall", name) for name in networks]
    table = TextTable(
        Column("phase", no_wrap=True), *(Column(head, justify="right") for head in ["runs", *heads]), box=None
    )
    for phase, prunable in product(Phase, (True, False)):
        all_scores = [run.scores for run in found.runs if run.scores and run.wrong and run.outcome == phase.value]
        scores = [own for own in all_scores if ("pruned_margin" in own) == prunable]
        cells = []
        for figure, name in wanted:
            values = [value for own in scores if (value := own.get(name, {}).get(figure)) is not None]
            cells.append(_number(median(values) if values else None))
        if scores:
            table.add_row(phase.label, str(len(scores)), *cells)
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _print(table: TextTable) -> None:
    Console(width=None if Console().is_terminal else 160).print(table)

"""`grokscope audit --csv`: which labels of a table of one's own are probably wrong."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as TextTable

from grokscope.cli.counting import counted
from grokscope.cli.values import print_json
from grokscope.errors import GrokscopeError
from grokscope.labels.page import worst_labels_page
from grokscope.labels.reading import LabelledTable, read_csv, read_npy, read_parquet
from grokscope.outputs import check_writable, write_table, write_text
from grokscope.tables import Table

if TYPE_CHECKING:
    from grokscope.labels.auditor import LabelAuditor

ENDINGS = (".csv", ".html")
_ON_A_PAGE = 100
_PRINTED = 10


def audit_table(
    tables: dict[str, Path | None],
    label: str | None,
    ignored: Sequence[str],
    top: int,
    out: Sequence[Path] | None,
    *,
    seed: int,
    as_json: bool,
) -> None:
    """Audit the one table that was named, as --csv, --parquet or --npy."""
    (kind, path), *others = [(kind, path) for kind, path in tables.items() if path is not None]
    if others:
        raise GrokscopeError(f"name one table: --{kind} or --{others[0][0]}")
    if label is None:
        what = "the file of labels" if kind == "npy" else "the column that has the labels"
        raise GrokscopeError(f"--label is missing: name {what}")
    if as_json and out:
        raise GrokscopeError("--json writes no files: leave out --out, or --json")
    default = Path("grokscope-figures") / f"{path.stem}-audit"
    paths = list(out or [default.with_name(f"{default.name}{ending}") for ending in ENDINGS])
    for each in paths:
        if each.suffix not in ENDINGS:
            raise GrokscopeError(f"--out = {str(each)!r} is not allowed: must end in .csv or .html")
    auditor_of = _auditor()
    table = _read(kind, path, label, ignored)
    if not as_json:
        check_writable(paths)
    with counted(f"Training on {path.name}") as (on_training,):
        found = auditor_of(random_state=seed).fit(table.numbers, table.labels, on_training=on_training)
    ranked = ranking(table, found)
    if as_json:
        rows = [dict(zip(ranked, row, strict=True)) for row in zip(*ranked.values(), strict=True)]
        print_json({"rows": len(table.labels), "weight_decay": found.weight_decay_, "ranking": rows[: top or None]})
        return
    _say(table, found, ranked, top or _PRINTED)
    for each in paths:
        if each.suffix == ".csv":
            typer.echo(f"Table: {write_table(each, ranked)}")
        else:
            typer.echo(f"Page: {write_text(each, worst_labels_page(table, ranked, max(top, _ON_A_PAGE)))}")


def ranking(table: LabelledTable, found: "LabelAuditor") -> Table:
    """All rows from the most to the least suspicious; rows count from 1, without the line of names."""
    order = np.argsort(-found.scores_, kind="stable")
    return {
        "rank": list(range(1, len(order) + 1)),
        "row": (order + 1).tolist(),
        "label": [str(label) for label in table.labels[order]],
        "suggested": [str(label) for label in found.suggested_[order]],
        "score": [float(f"{score:.6g}") for score in found.scores_[order]],
        "suspicious": found.suspicious_[order].tolist(),
    }


def _read(kind: str, path: Path, label: str, ignored: Sequence[str]) -> LabelledTable:
    if kind != "npy":
        return (read_csv if kind == "csv" else read_parquet)(path, label, ignored)
    if ignored:
        raise GrokscopeError("--ignore names columns, which an array does not have")
    return read_npy(path, Path(label))


def _auditor() -> "type[LabelAuditor]":
    try:
        from grokscope.labels.auditor import LabelAuditor
    except ImportError:
        raise GrokscopeError(
            "finding wrong labels in a table needs scikit-learn: pip install 'grokscope[audit]'"
        ) from None
    return LabelAuditor


def _say(table: LabelledTable, found: "LabelAuditor", ranked: Table, count: int) -> None:
    suspicious = int(found.suspicious_.sum())
    accuracy = found.held_out_accuracy_[found.weight_decay_]
    typer.echo(
        f"{suspicious} of {len(table.labels)} labels look wrong. Weight decay {found.weight_decay_:g} was chosen; with "
        f"it a network gives {accuracy:.1%} of the held-out rows their label."
    )
    shown = TextTable(*(name for name in ranked), box=None)
    for row in list(zip(*ranked.values(), strict=True))[:count]:
        shown.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row))
    Console(width=None if Console().is_terminal else 160).print(shown)

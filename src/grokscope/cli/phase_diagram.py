"""`grokscope phase-diagram`: the picture of a sweep, or its table."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.analysis import JsonOption, check_outputs
from grokscope.cli.completion import offered_sweeps
from grokscope.cli.options import DEFAULT_STORE, CellsOption, StoreOption, note
from grokscope.cli.values import print_json
from grokscope.errors import GrokscopeError
from grokscope.outputs import write_text
from grokscope.store import Store
from grokscope.sweeps.diagram import PhaseDiagram
from grokscope.sweeps.recorded import NOTHING_RECORDED, read_diagram, read_outcomes, stored_diagram


def phase_diagram(
    sweep: Annotated[
        str | None,
        typer.Argument(
            metavar="[SWEEP]",
            autocompletion=offered_sweeps,
            help="A sweep that was started on the store.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--from", metavar="CELLS.csv", help="Draw this table of cells instead of a sweep of the store."),
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Where to write it: a picture (.png, .pdf, .svg) or the cells as .csv. May be given several times.",
            show_default="grokscope-figures/SWEEP.png",
        ),
    ] = None,
    accuracies: Annotated[
        bool, typer.Option("--accuracies", help="Add the train and test accuracies, as in Figures 24 and 25.")
    ] = False,
    cells: CellsOption = None,
    as_json: JsonOption = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Draw the phase diagram of a sweep, finished or not; missing cells are shown as missing.

    With several seeds a cell has the colour of the majority, and a ring where seeds disagree; the .csv has the
    probability of each phase with its 95 % confidence interval. Cells that --refine inferred are paler.

    [bold]Examples[/bold]

    grokscope phase-diagram fig3a --accuracies --out fig24.png

    grokscope phase-diagram fig3a --out fig3a.csv

    grokscope phase-diagram --from fig3a.csv --out fig3a.png

    grokscope phase-diagram fig3b --cells docs/data --out fig3b.csv    (a sweep that went on from tables)

    grokscope phase-diagram fig3a --json
    """
    check_outputs(out, as_json=as_json)
    diagram = _diagram(sweep, table, cells, store)
    if as_json:
        print_json(_content(diagram))
        return
    for path in out or [Path("grokscope-figures") / f"{diagram.plan.name}.png"]:
        if path.suffix == ".csv":
            typer.echo(f"Table: {write_text(path, diagram.to_csv())}")
        else:
            from grokscope.plots import draw_phase_diagram, save_figure
            from grokscope.plots.finishing import shared_settings

            shared = "" if table else shared_settings([diagram.plan])  # a table does not have them
            picture = draw_phase_diagram(diagram, accuracies=accuracies, subtitle=shared)
            typer.echo(f"Figure: {save_figure(picture, path)}")
    sources = Counter(cell.source for cell in diagram.all_cells())
    partial = sum(cell.source == "run" and cell.missing + cell.failed > 0 for cell in diagram.all_cells())
    words = [f"{count} cells {source}" for source, count in sources.items()]
    note(", ".join(words) + (f" ({partial} of them not with all seeds)" if partial else ""))


def _diagram(sweep: str | None, table: Path | None, cells: Path | None, store: Path) -> PhaseDiagram:
    if (sweep is None) == (table is None):
        raise GrokscopeError("name either a sweep of the store or, with --from, a table of cells")
    if table and cells:
        raise GrokscopeError("--cells adds to a sweep of the store: it cannot be used with --from")
    recorded = read_outcomes(cells) if cells else NOTHING_RECORDED
    return read_diagram(table) if table else stored_diagram(Store(store, create=False), sweep or "", recorded)


def _content(diagram: PhaseDiagram) -> dict[str, object]:
    """The axes, and an object for each cell with the columns of the .csv."""
    table = diagram.to_columns()
    return {
        "sweep": diagram.plan.name,
        "axes": [{"fields": axis.fields, "points": axis.points} for axis in diagram.plan.axes],
        "cells": [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)],
    }

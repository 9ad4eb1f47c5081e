"""`grokscope show`: a picture of a stored run."""

from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.options import DEFAULT_STORE, RunArgument, StoreOption
from grokscope.store import Store


def show(
    run: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it; the ending (.png, .pdf, .svg) says how.",
            show_default="grokscope-figures/RUN.png",
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Draw a run: its curves above, the IPR histogram of its neurons below.

    [bold]Example[/bold]

    grokscope show 41630c --out run.pdf
    """
    result = Store(store, create=False).load(run)
    from grokscope.plots import draw_runs, save_figure, settings_line

    path = out or Path("grokscope-figures") / f"{result.run_id}.png"
    written = save_figure(draw_runs([result], [settings_line(result)]), path)
    typer.echo(result.describe())
    typer.echo(f"Figure: {written}")

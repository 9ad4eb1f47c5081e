"""`grokscope show`: a picture of stored runs."""

from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.completion import offered_runs
from grokscope.cli.options import DEFAULT_STORE, StoreOption
from grokscope.errors import GrokscopeError
from grokscope.store import Store

_MOST_ABREAST = 8


def show(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            help="Run ids, the beginnings of them, or names; several are drawn side by side.",
            autocompletion=offered_runs,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it; the ending (.png, .pdf, .svg) says how.",
            show_default="grokscope-figures/RUN.png",
        ),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(metavar="M,N", help="Draw a Transformer's attention on this pair too; needs its stored weights."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Draw a run: its curves, the IPR histogram of its neurons, and the scales of its norm if it has one.

    [bold]Examples[/bold]

    grokscope show 41630c --out run.pdf

    grokscope show 41630c 9c1f02 --out both.png

    grokscope show 9c1f02 --attention 3,58
    """
    pair = None if attention is None else _pair(attention)
    if len(runs) > _MOST_ABREAST:
        raise GrokscopeError(f"{len(runs)} runs do not fit side by side: name at most {_MOST_ABREAST}")
    opened = Store(store, create=False)
    results = [opened.load(run) for run in runs]
    from grokscope.plots import draw_runs, save_figure

    path = out or Path("grokscope-figures") / f"{'-'.join(result.run_id for result in results)}.png"
    written = save_figure(draw_runs(results, attention_of=pair), path)
    for result in results:
        typer.echo(result.describe())
    typer.echo(f"Figure: {written}")


def _pair(text: str) -> tuple[int, int]:
    try:
        m, n = (int(part) for part in text.split(","))
    except ValueError:
        raise GrokscopeError(f"--attention = {text!r} is not allowed: must be a pair such as 3,58") from None
    return m, n

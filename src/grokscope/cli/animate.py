"""`grokscope animate`: a run as a film."""

from pathlib import Path
from typing import Annotated

import typer

from grokscope.animation import SIZE
from grokscope.animation import animate as make_film
from grokscope.cli.options import DEFAULT_STORE, RunArgument, StoreOption
from grokscope.errors import GrokscopeError, quoted
from grokscope.store import Store
from grokscope.sweeps.values import whole_number


def animate(
    run: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it: a .gif file, or an .mp4 file, which needs the program ffmpeg.",
            show_default="grokscope-figures/RUN.gif",
        ),
    ] = None,
    frames: Annotated[int, typer.Option(help="How many frames, at most.")] = 60,
    fps: Annotated[float, typer.Option(help="How many frames a second.")] = 10,
    size: Annotated[str, typer.Option(metavar="WxH", help="Pixels.")] = f"{SIZE[0]}x{SIZE[1]}",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Draw a run as a film: its accuracies, the weights of some neurons, their spectra, and its phase so far.

    The frames are measured steps, more of them early on. They come from the snapshots of the run (train --snapshots
    all). A run without snapshots is trained again, to the same weights; nothing of that is stored.

    [bold]Examples[/bold]

    grokscope animate 41630c --out grok.gif

    grokscope animate 41630c --out grok.mp4 --frames 200 --fps 25 --size 1280x800
    """
    if run.startswith("analytic"):
        raise GrokscopeError("the analytic network was never trained, so there is no film of it; name a stored run")
    result = Store(store, create=False).load(run)
    path = out or Path("grokscope-figures") / f"{result.run_id}.gif"
    written = make_film(result, path, frames=frames, fps=fps, size=_pixels(size))
    typer.echo(result.describe())
    typer.echo(f"Film: {written} ({written.stat().st_size / 1e6:.2g} MB)")


def _pixels(text: str) -> tuple[int, int]:
    sides = [whole_number(side) for side in text.lower().replace("×", "x").split("x")]
    match sides:
        case [int(width), int(height)]:
            return width, height
    raise GrokscopeError(f"--size = {quoted(text)} is not allowed: must be two numbers of pixels such as 720x480")

"""A run from its first step to its last, as a film.

gs.animate(result, "grok.gif")
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grokscope.engines import initial_state
from grokscope.errors import GrokscopeError, quoted
from grokscope.measure import Moment, Row, neuron_waves
from grokscope.models import Weights
from grokscope.notes import note
from grokscope.outputs import check_writable, write_file
from grokscope.result import RunResult
from grokscope.sweeping import train_again
from grokscope.training import Stop

if TYPE_CHECKING:
    from PIL.Image import Image

SIZE = (720, 480)
_SIDES = (160, 4000)  # pixels
_MOST_FRAMES = 1000


def animate(
    result: RunResult,
    out: str | Path,
    *,
    frames: int = 60,
    fps: float = 10,
    size: tuple[int, int] = SIZE,
) -> Path:
    """Draw a run as a film: accuracies, weights, spectra and phase on its way. Writes a .gif or .mp4 file.

    gs.animate(gs.run(spec, snapshots="all"), "grok.gif")

    The frames are measured steps, more of them early on, where most happens. They are drawn from the snapshots of the
    run; without any it is trained again, to the same weights. Returns the absolute path of the file.
    """
    from grokscope.plots.movies import check_movie_path, movie_bytes

    if not isinstance(result, RunResult):
        raise GrokscopeError(f"a film is made of a RunResult, not of {quoted(result)}: gs.Store().load(run) has one")
    path = Path(out)
    check_movie_path(path)
    _check("frames", frames, 2, _MOST_FRAMES)
    _check("fps", fps, 0.1, 50)
    for side in size:
        _check("size", side, *_SIDES)
    check_writable([path])
    result = result.resolved()
    weights_at = _chosen_weights(result, frames)
    from grokscope.plots.animation import draw_frames

    pictures = list(_counted(draw_frames(result, weights_at, size), len(weights_at)))
    return write_file(path, movie_bytes(pictures, path.suffix, fps))


def frame_steps(steps: Sequence[int], frames: int) -> list[int]:
    """At most so many of these steps, evenly spaced in their logarithm, as far as there are such; with both ends.

    >>> frame_steps(range(1, 1001), 7)
    [1, 3, 10, 32, 100, 316, 1000]
    >>> frame_steps([1, 2, 3, 50, 100, 150], 5)
    [1, 2, 3, 50, 150]
    """
    if frames >= len(steps):
        return list(steps)
    known = np.asarray(steps)
    middles = np.sqrt(known[:-1] * known[1:].astype(np.float64))  # between neighbours, in the logarithm
    chosen, count = [int(known[0]), int(known[-1])], frames
    while True:  # where steps lie far apart several points fall on one, so that more points are needed
        points = np.geomspace(known[0], known[-1], count)
        nearest = np.unique(np.searchsorted(middles, points))
        if len(nearest) > frames:
            return chosen
        chosen, count = known[nearest].tolist(), count + 1 + count // 50


def _chosen_weights(result: RunResult, frames: int) -> Mapping[int, Weights]:
    if result.status == "diverged" or not result.curve:
        raise GrokscopeError(
            f"run {result.run_id} diverged at step {result.diverged_step}: there is no film to make of it"
        )
    kept = result.weights_at
    steps = frame_steps(list(kept) if len(kept) > 1 else [row.step for row in result.curve], frames)
    # What has no waves says so here, before anything is trained.
    neuron_waves(result.spec.model, initial_state(result.spec).weights, result.spec.task)
    if len(kept) > 1:
        return {step: kept[step] for step in steps}
    lacking = "one snapshot" if kept else "no snapshots"
    note(f"Run {result.run_id} has {lacking}, so it is trained again; `train --snapshots all` keeps them.")
    again: dict[int, Weights] = {}

    def keep(row: Row, moment: Moment) -> None:
        if row.step in steps:
            again[row.step] = moment.weights
        if row.step >= result.final.step:
            raise Stop

    train_again(result, on_measurement=keep)
    return again


def _counted(pictures: "Iterator[Image]", total: int) -> "Iterable[Image]":
    """Say how far the drawing is, in a terminal."""
    from rich.console import Console
    from rich.progress import track

    return track(pictures, "drawing", total, console=Console(stderr=True), transient=True)


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise GrokscopeError(f"{name} = {quoted(value)} is not allowed: must be {least:g} to {most:g}")

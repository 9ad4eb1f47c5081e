"""Runs that are trained together to their end."""

from collections.abc import Callable, Sequence

from grokscope.result import Checkpoint, RunResult
from grokscope.training import Job, RunGroup


def train_together(
    jobs: Sequence[Job], on_pause: Callable[[dict[int, Checkpoint]], None] | None = None
) -> list[RunResult]:
    """As one stack; `on_pause` gets their checkpoints."""
    group = RunGroup(jobs)
    for _ in group.train():
        if on_pause is not None:
            on_pause(group.checkpoints())
    return group.results()

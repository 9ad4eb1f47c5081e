"""Which steps of a run the weights are kept at.

>>> from grokscope.spec import TrainingSpec
>>> snapshot_steps(TrainingSpec(steps=120), "all")
(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50, 100, 120)
>>> snapshot_steps(TrainingSpec(steps=120), 4)
(1, 5, 9, 120)

Snapshots are not part of what a run is: its id, its curve and its last weights are the same without them.
"""

from typing import Literal

import numpy as np

from grokscope.errors import SpecError, quoted
from grokscope.spec import RunSpec, TrainingSpec

Snapshots = Literal["all"] | int | None  # at every measured step, at so many of them, or at none


def snapshots_from(value: object, name: str = "snapshots") -> Snapshots:
    """What a user asks for: all, a number as such or as text, or none. Python may say True and False.

    >>> snapshots_from("all"), snapshots_from("10"), snapshots_from(True), snapshots_from(None)
    ('all', 10, 'all', None)
    """
    if value is None or value is False:
        return None
    if value is True or value == "all":
        return "all"
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, int) and value >= 1:
        return value
    raise SpecError(f"{name} = {quoted(value)} is not allowed: must be all, or a number of at least 1")


def snapshot_steps(training: TrainingSpec, snapshots: Snapshots) -> tuple[int, ...]:
    """At all measured steps, or at so many of them: spread evenly over the rows of the curve, the last one included."""
    if snapshots is None:
        return ()
    if training.settle:
        raise SpecError(
            "snapshots are kept at steps that a run with training.settle may not reach: leave one of them out"
        )
    measured = training.measured_steps()
    if snapshots == "all" or snapshots >= len(measured):
        return tuple(measured)
    if snapshots == 1:
        return (measured[-1],)
    chosen = np.linspace(0, len(measured) - 1, snapshots).round().astype(int)
    return tuple(measured[row] for row in chosen.tolist())


def snapshot_bytes(spec: RunSpec, snapshots: Snapshots) -> int:
    """How much the snapshots of a run take, in memory and in the store.

    >>> snapshot_bytes(RunSpec(), 1), snapshot_bytes(RunSpec(), "all") // 10**6
    (582000, 29)
    """
    return 4 * spec.model.parameter_count(spec.task) * len(snapshot_steps(spec.training, snapshots))

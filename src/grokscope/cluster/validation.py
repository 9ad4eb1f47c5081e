"""What comes from a worker is checked before it is stored: it may be anything.

result = checked_result(answer.content, spec, weights=False)    # raises Damaged
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from grokscope.engines import ENGINES
from grokscope.measure import phases_along
from grokscope.models import Weights
from grokscope.result import Checkpoint, RunResult
from grokscope.settling import has_settled
from grokscope.spec import RunSpec
from grokscope.store.contents import Content, Damaged, check_weights, checkpoint_from, run_from, unpack
from grokscope.store.records import result_of, run_of

WeightsAt = Mapping[int, Weights]  # snapshots, by step


def checked_result(
    content: bytes, spec: RunSpec, *, weights: bool, snapshots: Sequence[int] = (), earlier: WeightsAt | None = None
) -> RunResult:
    """The result of this run, and of no other. Nothing of it is believed that follows from something else.

    `snapshots` are the steps to keep weights at; `earlier` has those of the pieces before this one.
    """
    file = _own_file(content, spec)
    run = run_of(file.record or {}, "", file.checksum)
    if run.run_id != spec.run_id:
        raise Damaged(f"it is about run {run.run_id[:16]}")
    result = replace(result_of(run, run_from(file, spec)), spec=spec.resolved())
    _check_origin(run.engine, run.seconds)
    steps, expected = [row.step for row in result.curve], spec.training.measured_steps()
    if run.status not in ("finished", "diverged") or steps != list(expected)[: len(steps)]:
        raise Damaged("its curve has other steps than the run")
    if (result.weights is not None) != weights:
        raise Damaged("its weights are missing" if weights else "it has weights that were not asked for")
    for own in (result.weights, *result.weights_at.values()):
        if own is not None:
            check_weights(own, spec)
    result = replace(result, weights_at=_together(result.weights_at, earlier or {}, snapshots, max(steps, default=0)))
    if run.status == "diverged":
        if run.phase is not None or not 0 < (run.diverged_step or 0) <= spec.training.steps:
            raise Damaged("it diverged at no step of the run")
    elif not _ends_where_it_should(result, complete=len(steps) == len(expected)):
        raise Damaged("it ended at another step than the run does")
    elif run.diverged_step is not None or run.phase is not _phase(result):
        raise Damaged("its phase does not follow from its curve")
    return result


def checked_checkpoint(
    content: bytes, spec: RunSpec, *, snapshots: Sequence[int] = (), earlier: WeightsAt | None = None
) -> Checkpoint:
    """The checkpoint of this run."""
    checkpoint = checkpoint_from(_own_file(content, spec), spec)
    _check_origin(checkpoint.engine, checkpoint.seconds)
    weights_at = _together(checkpoint.weights_at, earlier or {}, snapshots, checkpoint.state.step)
    return replace(checkpoint, weights_at=weights_at)


def _together(own: WeightsAt, earlier: WeightsAt, steps: Sequence[int], last: int) -> dict[int, Weights]:
    """The snapshots of a piece and of those before it: all that are due by this step, and no others."""
    due = [step for step in steps if step <= last]
    known = {**earlier, **own}  # a piece that began at the first step, with another engine, has taken all again
    if not set(own) <= set(due) or not set(due) <= set(known):
        raise Damaged("it has snapshots of other steps than were asked for")
    return {step: known[step] for step in due}


def is_row(content: Mapping[object, object]) -> bool:
    """Whether news of a run can be shown as a row of its curve.

    >>> is_row({"step": 10, "train_accuracy": 1.0, "test_accuracy": 0.5}), is_row({"step": "ten"})
    (True, False)
    """
    needed = {"step", "train_accuracy", "test_accuracy"}
    return needed <= content.keys() and all(isinstance(value, int | float) for value in content.values())


def _own_file(content: bytes, spec: RunSpec) -> Content:
    file = unpack(content)
    if file.checksum is None:
        raise Damaged("it has no checksum")
    if file.run_id != spec.run_id:
        raise Damaged(f"it is of run {str(file.run_id)[:16]}")
    return file


def _check_origin(engine: object, seconds: object) -> None:
    if engine not in ENGINES:
        raise Damaged("it names no engine")
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise Damaged("it took no time that there is")


def _ends_where_it_should(result: RunResult, *, complete: bool) -> bool:
    """At the last step, or at the first at which it had settled."""
    training, corruption = result.spec.training, result.corruption
    if not training.settle:
        return complete
    *earlier, last = (
        has_settled(result.curve[:rows], training, corruption) for rows in range(1, len(result.curve) + 1)
    )
    return not any(earlier) and (last or complete)


def _phase(result: RunResult) -> object:
    return phases_along(result.curve, result.corruption)[-1]

"""What a worker answers is believed only if it is the result, or the checkpoint, of the run that was ordered."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grokscope import Phase, RunSpec
from grokscope.cluster.parcels import Done, Order, Paused, RunOrder, Untouched
from grokscope.cluster.remote import advance
from grokscope.cluster.validation import checked_checkpoint, checked_result
from grokscope.store.contents import Damaged, pack, unpack

Arrays = dict[str, Any]


def order(spec: RunSpec, seconds: float = 60.0, **changes: Any) -> Order:
    runs = (RunOrder(spec.model_dump(mode="json"), None),)
    return Order("session", runs, {}, "auto", "cpu", weights=True, seconds=seconds)._replace(**changes)


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    return RunSpec().updated(
        {"task.modulus": 11, "model.width": 24, "training.steps": 30, "training.measure_every": 10}
    )


@pytest.fixture(scope="module")
def content(spec: RunSpec) -> bytes:
    (answer,) = advance(order(spec))
    assert isinstance(answer, Done)
    return answer.content


def test_a_result_is_what_the_worker_computed(spec: RunSpec, content: bytes) -> None:
    result = checked_result(content, spec, weights=True)
    assert result.run_id == spec.run_id
    assert [row.step for row in result.curve] == spec.training.measured_steps()


def changed(content: bytes, change: Callable[[Arrays, dict[str, Any]], object]) -> bytes:
    """A whole file with a right checksum, but of something else."""
    file = unpack(content)
    arrays, record = dict(file.arrays), dict(file.record or {})
    change(arrays, record)
    return pack(arrays, str(file.run_id), record).content


def _other(arrays: Arrays, record: dict[str, Any]) -> None:
    record["run_id"] = "0" * 16


CHANGES: dict[str, tuple[Callable[[Arrays, dict[str, Any]], object], str]] = {
    "another phase": (lambda a, r: r.update(phase=Phase.COEXISTENCE.value), "phase does not follow"),
    "no phase": (lambda a, r: r.update(phase=None), "phase does not follow"),
    "another status": (lambda a, r: r.update(status="lost"), "other steps"),
    "diverged, and not": (lambda a, r: r.update(status="diverged", phase=None), "at no step"),
    "another id": (_other, "its spec is that of run"),
    "another spec": (lambda a, r: r.update(spec=RunSpec().model_dump(mode="json")), "its spec is that of run"),
    "no record": (lambda a, r: r.clear(), "cannot be read"),
    "no engine": (lambda a, r: r.update(engine="abacus"), "names no engine"),
    "negative time": (lambda a, r: r.update(seconds=-1.0), "took no time"),
    "no time": (lambda a, r: r.update(seconds=float("inf")), "took no time"),
    "missing weights": (lambda a, r: [a.pop(name) for name in list(a) if name.startswith("weights")], "missing"),
    "other weights": (lambda a, r: a.update({"weights.U": np.zeros((2, 2), np.float32)}), "other names, shapes"),
    "one weight more": (lambda a, r: a.update({"weights.X": np.zeros(2, np.float32)}), "other names, shapes"),
    "an unknown array": (lambda a, r: a.update({"else": np.zeros(2)}), "it has an array 'else'"),
    "other steps": (lambda a, r: a.update({"curve.step": a["curve.step"] + 1}), "other steps"),
    "a shorter curve": (
        lambda a, r: a.update({name: array[:-1] for name, array in a.items() if name[:4] in ("curv", "hist")}),
        "at another step",
    ),
    "uneven columns": (lambda a, r: a.update({"curve.step": a["curve.step"][:-1]}), "not equally long"),
    "another type": (lambda a, r: a.update({"curve.test_loss": a["curve.step"]}), "other types"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_result_of_something_else_is_not_believed(spec: RunSpec, content: bytes, name: str) -> None:
    change, reason = CHANGES[name]
    with pytest.raises(Damaged, match=reason):
        checked_result(changed(content, change), spec, weights=True)


def test_a_result_of_another_run_is_not_believed(spec: RunSpec, content: bytes) -> None:
    with pytest.raises(Damaged, match=f"it is of run {spec.run_id}"):
        checked_result(content, spec.updated({"training.seed": 1}), weights=True)
    with pytest.raises(Damaged, match="weights that were not asked for"):
        checked_result(content, spec, weights=False)


def test_bytes_that_changed_on_the_way_are_not_believed(spec: RunSpec, content: bytes) -> None:
    for place in range(0, len(content), 97):
        broken = bytearray(content)
        broken[place] ^= 0x10
        with pytest.raises(Damaged):
            checked_result(bytes(broken), spec, weights=True)


def test_a_run_in_pieces_is_the_same_run(spec: RunSpec, content: bytes) -> None:
    """Each piece is as short as it can be; checkpoints travel as bytes."""
    answer, checkpoint, pieces = advance(order(spec, seconds=0.0))[0], b"", 0
    while isinstance(answer, Paused):
        checkpoint, pieces = answer.content, pieces + 1
        assert checked_checkpoint(checkpoint, spec).state.step > 0
        runs = (RunOrder(spec.model_dump(mode="json"), checkpoint),)
        (answer,) = advance(order(spec, seconds=0.0, runs=runs))
    assert pieces > 2
    assert isinstance(answer, Done)
    mine, whole = (checked_result(each, spec, weights=True) for each in (answer.content, content))
    assert replace(mine, seconds=0.0).curve == whole.curve
    assert all(np.array_equal(mine.trained_weights()[name], array) for name, array in whole.trained_weights().items())
    with pytest.raises(Damaged, match="it is of run"):
        checked_checkpoint(checkpoint, spec.updated({"training.seed": 1}))


def test_a_stack_that_is_at_different_steps_advances_from_behind(spec: RunSpec) -> None:
    (paused,) = advance(order(spec, seconds=0.0, engine="stacked"))
    assert isinstance(paused, Paused)
    other = spec.updated({"training.seed": 1})
    runs = (
        RunOrder(spec.model_dump(mode="json"), paused.content),
        RunOrder(other.model_dump(mode="json"), None),
    )
    ahead, behind = advance(order(spec, runs=runs, engine="stacked"))
    assert isinstance(ahead, Untouched)
    assert isinstance(behind, Done)
    assert checked_result(behind.content, other, weights=True).engine == "stacked"


def test_short_runs_of_one_order_are_done_one_after_another(spec: RunSpec, content: bytes) -> None:
    other = spec.updated({"training.seed": 1})
    runs = tuple(RunOrder(each.model_dump(mode="json"), None) for each in (spec, other))
    first, second = advance(order(spec, runs=runs))
    assert isinstance(first, Done)
    assert isinstance(second, Done)
    assert checked_result(first.content, spec, weights=True).curve == checked_result(content, spec, weights=True).curve
    assert checked_result(second.content, other, weights=True).run_id == other.run_id
    first, second = advance(order(spec, runs=runs, seconds=0.0))
    assert isinstance(first, Paused)
    assert isinstance(second, Untouched)

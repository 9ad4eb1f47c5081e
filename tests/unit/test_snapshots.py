"""The weights of a run on its way, and runs that a callback stops."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grokscope as gs
from grokscope.cluster.validation import checked_checkpoint, checked_result
from grokscope.result import Checkpoint
from grokscope.snapshots import Snapshots, snapshot_steps, snapshots_from
from grokscope.store import LeaseAnswer
from grokscope.store.check import check_store
from grokscope.store.contents import Damaged, pack_checkpoint, pack_run
from grokscope.store.merge import merge_into
from grokscope.store.records import record_of


def assert_same(own: gs.models.Weights | None, expected: gs.models.Weights | None) -> None:
    assert own is not None
    assert expected is not None
    assert own.keys() == expected.keys()
    for name, array in own.items():
        np.testing.assert_array_equal(array, expected[name])


def assert_same_snapshots(own: gs.RunResult, expected: gs.RunResult) -> None:
    assert own.curve == expected.curve
    assert list(own.snapshots) == list(expected.snapshots)
    for step, weights in own.snapshots.items():
        assert_same(weights, expected.snapshots[step])


def stopped_at(step: int, spec: gs.RunSpec, *, snapshots: Snapshots = None) -> gs.RunResult:
    def stop(row: gs.Row, _: gs.Moment) -> None:
        if row.step >= step:
            raise gs.Stop

    return gs.run(spec, on_measurement=stop, snapshots=snapshots)


# ---- which steps ----------------------------------------------------------------------------------------------------


@given(steps=st.integers(1, 3000), every=st.integers(1, 100), count=st.integers(1, 80))
def test_so_many_snapshots_are_spread_over_the_curve(steps: int, every: int, count: int) -> None:
    training = gs.TrainingSpec(steps=steps, measure_every=every)
    measured = training.measured_steps()
    kept = snapshot_steps(training, count)
    assert len(kept) == min(count, len(measured))
    assert list(kept) == sorted(set(kept) & set(measured))
    assert kept[-1] == steps
    rows = np.diff([measured.index(step) for step in kept])
    assert not len(rows) or rows.max() - rows.min() <= 1


@pytest.mark.parametrize("value", ["many", "0", "-1", 0, -3, 1.5, "1.5", "٣", "9" * 5000, ""])
def test_what_is_no_number_of_snapshots_is_refused(value: object) -> None:
    with pytest.raises(gs.SpecError, match="must be all, or a number of at least 1"):
        snapshots_from(value)


# ---- what they are --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["native", "torch", "stacked"])
@pytest.mark.parametrize("step", [1, 10, 20])
def test_a_snapshot_is_the_network_of_a_run_that_ends_there(tiny: gs.RunSpec, engine: str, step: int) -> None:
    spec = tiny.updated({"model.dropout": 0.2, "training.batch_size": 16})
    whole = gs.run(spec, engine=engine, snapshots="all")
    shorter = gs.run(spec.updated({"training.steps": step}), engine=engine)
    assert_same(whole.snapshots[step], shorter.weights)
    assert_same(whole.snapshots[30], whole.weights)
    assert list(whole.snapshots) == spec.training.measured_steps()


def test_a_run_is_the_same_with_and_without_them(tiny: gs.RunSpec) -> None:
    plain, kept = gs.run(tiny), gs.run(tiny, snapshots=4)
    assert plain.curve == kept.curve
    assert plain.run_id == kept.run_id
    assert len(kept.snapshots) == 4
    assert_same(kept.weights, plain.weights)


def test_a_callback_cannot_change_a_snapshot(tiny: gs.RunSpec) -> None:
    def spoil(_: gs.Row, moment: gs.Moment) -> None:
        moment.weights["U"][:] = 0

    spoilt = gs.run(tiny, on_measurement=spoil, snapshots="all")
    assert_same(spoilt.snapshots[10], gs.run(tiny, snapshots="all").snapshots[10])


def test_a_run_without_them_says_how_to_get_them(tiny: gs.RunSpec, tmp_path: Path) -> None:
    store = gs.Store(tmp_path)
    store.save(gs.run(tiny))
    with pytest.raises(gs.GrokscopeError, match=r"has no snapshots; .* --snapshots all"):
        _ = store.load(tiny.run_id).snapshots


@settings(max_examples=15)
@given(step=st.integers(1, 29), snapshots=st.sampled_from(["all", 1, 3, 7]))
def test_a_resumed_run_has_the_same_snapshots(step: int, snapshots: Snapshots) -> None:
    spec = gs.RunSpec(
        task=gs.TaskSpec(modulus=7),
        model=gs.ModelSpec(width=8, dropout=0.1),
        training=gs.TrainingSpec(steps=30, measure_every=4),
    )
    whole = gs.run(spec, snapshots=snapshots)
    checkpoint = stopped_at(step, spec, snapshots=snapshots).checkpoint
    assert_same_snapshots(gs.run(spec, start=checkpoint, snapshots=snapshots), whole)


def test_a_checkpoint_without_them_is_not_gone_on_from(tiny: gs.RunSpec) -> None:
    checkpoint = stopped_at(20, tiny).checkpoint
    assert checkpoint is not None
    rows: list[int] = []
    gs.run(tiny, start=checkpoint, on_measurement=lambda row, _: rows.append(row.step))
    assert rows == [30]
    again = gs.run(tiny, start=checkpoint, snapshots="all")
    assert list(again.snapshots) == tiny.training.measured_steps()


# ---- in a store -----------------------------------------------------------------------------------------------------


def test_a_store_keeps_them(tiny: gs.RunSpec, tmp_path: Path) -> None:
    result = gs.train(tiny, store=tmp_path, snapshots="all")
    assert_same_snapshots(result, gs.run(tiny, snapshots="all"))
    assert_same(result.weights, result.snapshots[30])


def test_a_run_with_fewer_is_trained_again_and_one_with_more_is_not(tiny: gs.RunSpec, tmp_path: Path) -> None:
    store = gs.Store(tmp_path)
    counts, files = [], []
    asked: list[tuple[Snapshots, bool]]
    asked = [(None, False), (3, False), (2, False), ("all", False), (None, True), (3, False)]
    for snapshots, force in asked:
        gs.train(tiny, store=store, snapshots=snapshots, force=force)
        (run,) = store.all()
        counts.append(store.snapshot_count(run))
        files.append(run.file)
    rows = len(tiny.training.measured_steps())
    assert counts == [0, 3, 3, rows, rows, rows]
    assert [first == second for first, second in pairwise(files)] == [False, True, False, False, True]


def test_a_lease_is_for_runs_that_lack_them(tiny: gs.RunSpec, tmp_path: Path) -> None:
    store = gs.Store(tmp_path)
    store.save(gs.run(tiny, snapshots=3), weights=True)
    assert store.lease(tiny.run_id, weights=True, snapshots=(1, 10, 30)) is LeaseAnswer.DONE
    assert store.lease(tiny.run_id, weights=True, snapshots=(1, 10, 20, 30)) is LeaseAnswer.GRANTED


def test_of_a_diverged_run_those_before_are_kept(tiny: gs.RunSpec, tmp_path: Path) -> None:
    spec = tiny.updated({"optimizer.kind": "sgd", "optimizer.learning_rate": 1e6})
    result = gs.train(spec, store=tmp_path, snapshots="all")
    assert result.status == "diverged"
    assert list(result.snapshots) == [row.step for row in result.curve]
    store = gs.Store(tmp_path)
    assert store.lease(spec.run_id, weights=True, snapshots=spec.training.measured_steps()) is LeaseAnswer.DONE


def test_a_sweep_keeps_them(tiny: gs.RunSpec, tmp_path: Path) -> None:
    store = gs.Store(tmp_path)
    axes = {"training.seed": [0, 1]}
    gs.sweep(axes, base=tiny, store=store, workers=0, progress=False)
    for engine in ("auto", "stacked"):
        gs.sweep(axes, base=tiny, store=store, workers=0, progress=False, snapshots=4, engine=engine)
        assert [len(store.load(run.run_id).snapshots) for run in store.all()] == [4, 4]
        for run in store.all():
            store.delete(run.run_id)


def test_merging_takes_the_run_that_has_them(tiny: gs.RunSpec, tmp_path: Path) -> None:
    bare, full = gs.Store(tmp_path / "bare"), gs.Store(tmp_path / "full")
    bare.save(gs.run(tiny), weights=True)
    full.save(gs.run(tiny, snapshots=3), weights=True)
    assert merge_into(full, [bare]).present == 1
    assert merge_into(bare, [full]).runs == 1
    assert len(bare.load(tiny.run_id).snapshots) == 3


def test_damage_to_a_snapshot_is_noticed(tiny: gs.RunSpec, tmp_path: Path) -> None:
    store = gs.Store(tmp_path)
    result = gs.run(tiny, snapshots="all")
    store.save(result)
    (run,) = store.all()
    file = tmp_path / "runs" / run.file
    content = file.read_bytes()
    value = result.snapshots[20]["V"].tobytes()
    assert content.count(value) == 1
    file.write_bytes(content.replace(value, bytes(len(value))))
    with pytest.raises(gs.StoreError, match="does not match its checksum"):
        store.load(tiny.run_id)
    (finding,) = check_store(tmp_path)
    assert "checksum" in finding.detail


@pytest.mark.parametrize(
    "weights_at",
    [
        lambda own: own | {15: own[10]},  # no step of the curve
        lambda own: own | {10: {"U": own[10]["U"]}},
        lambda own: own | {10: own[10] | {"V": own[10]["V"][:, :3]}},
    ],
)
def test_a_file_with_other_snapshots_than_a_run_can_have_is_damaged(
    tiny: gs.RunSpec, tmp_path: Path, weights_at: object
) -> None:
    store = gs.Store(tmp_path)
    result = gs.run(tiny, snapshots="all")
    store.save(replace(result, weights_at=weights_at(dict(result.weights_at))), weights=True)  # type: ignore[operator]
    with pytest.raises(gs.StoreError, match="snapshot"):
        store.load(tiny.run_id)


# ---- on a cluster ---------------------------------------------------------------------------------------------------


def test_pieces_of_a_cluster_are_put_together(tiny: gs.RunSpec) -> None:
    steps = snapshot_steps(tiny.training, "all")
    whole = gs.run(tiny, snapshots="all")
    first = stopped_at(8, tiny, snapshots="all").checkpoint
    assert first is not None
    bare = replace(first, weights_at={})
    second = gs.run(tiny, start=replace(first, weights_at=whole.weights_at), snapshots="all")
    late = {step: weights for step, weights in second.weights_at.items() if step > 8}
    content = pack_run(
        replace(second, weights_at=late), record_of(second, "2024-01-01T00:00:00+00:00", weights=True), weights=True
    ).content
    got = checked_result(content, tiny, weights=True, snapshots=steps, earlier=first.weights_at)
    assert_same_snapshots(got, whole)
    with pytest.raises(Damaged, match="snapshots of other steps"):
        checked_result(content, tiny, weights=True, snapshots=steps)
    with pytest.raises(Damaged, match="snapshots of other steps"):
        checked_result(content, tiny, weights=True)
    with pytest.raises(Damaged, match="snapshots of other steps"):
        checked_checkpoint(pack_checkpoint(tiny.run_id, bare).content, tiny, snapshots=steps)
    kept: Checkpoint = checked_checkpoint(pack_checkpoint(tiny.run_id, first).content, tiny, snapshots=steps)
    assert list(kept.weights_at) == list(range(1, 9))


# ---- runs that are stopped ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["native", "torch", "stacked"])
def test_a_stopped_run_is_what_it_was_at_that_step(tiny: gs.RunSpec, engine: str) -> None:
    def stop(row: gs.Row, moment: gs.Moment) -> None:
        assert moment.weights["U"].shape == (24, 11)
        if row.step == 20:
            raise gs.Stop

    stopped = gs.run(tiny, engine=engine, on_measurement=stop)
    shorter = gs.run(tiny.updated({"training.steps": 20}), engine=engine)
    assert stopped.status == "stopped"
    assert stopped.final.step == 20
    assert (stopped.curve, stopped.phase) == (shorter.curve, shorter.phase)
    assert_same(stopped.weights, shorter.weights)
    assert stopped.describe().startswith(f"Stopped at step 20 of 30, so far: {stopped.outcome}.")
    assert repr(stopped).endswith("after 20 steps (stopped)>")
    assert stopped.to_dict()["status"] == "stopped"
    went_on = gs.run(tiny, engine=engine, start=stopped.checkpoint)
    assert went_on.status == "finished"
    assert went_on.curve == gs.run(tiny, engine=engine).curve


def test_stopping_at_the_last_step_is_finishing(tiny: gs.RunSpec) -> None:
    result = stopped_at(30, tiny)
    assert (result.status, result.checkpoint) == ("finished", None)


def test_a_stopped_run_is_stored_as_one_to_go_on_with(tiny: gs.RunSpec, tmp_path: Path) -> None:
    store = gs.Store(tmp_path)
    store.save(stopped_at(20, tiny))
    assert store.find(tiny.run_id) is None
    checkpoint = store.load_checkpoint(tiny)
    assert checkpoint is not None
    assert checkpoint.state.step == 20
    result = gs.train(tiny, store=store)
    assert result.status == "finished"
    assert result.curve == gs.run(tiny).curve
    with pytest.raises(gs.StoreError, match=r"was stopped at step 20, and the store .* has it whole"):
        store.save(stopped_at(20, tiny))
    with pytest.raises(gs.StoreError, match="has no checkpoint"):
        store.save(replace(stopped_at(20, tiny), checkpoint=None))
    assert store.load(tiny.run_id).curve == result.curve


def test_an_error_in_a_callback_is_an_error(tiny: gs.RunSpec) -> None:
    def fail(_: gs.Row, __: gs.Moment) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gs.run(tiny, on_measurement=fail)

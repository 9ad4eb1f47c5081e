"""One store from several: the runs, sweeps, checkpoints and failures of others are copied into one.

merged = merge_into(Store("laptop"), [Store("cluster", create=False)])
merged.runs
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from grokscope.errors import StoreError
from grokscope.store.contents import Damaged, pack
from grokscope.store.index import identity
from grokscope.store.records import StoredRun, StoredSweep
from grokscope.store.remarks import Remarks
from grokscope.store.store import Store


@dataclass
class Merged:
    """What was copied, and what was not."""

    runs: int = 0
    present: int = 0  # runs that were there already
    sweeps: int = 0
    checkpoints: int = 0
    failures: int = 0
    damaged: list[str] = field(default_factory=list)  # left out, with the reason
    renamed: list[tuple[str, str]] = field(default_factory=list)  # sweeps whose name meant another one
    renamed_runs: list[tuple[str, str]] = field(default_factory=list)  # runs whose name another run has
    other_names: list[tuple[str, str]] = field(default_factory=list)  # of runs that both stores name: theirs, and ours
    differing: list[str] = field(default_factory=list)  # runs that were there already, with other numbers


def merge_into(store: Store, others: Sequence[Store], on_run: Callable[[], None] | None = None) -> Merged:
    """Copy into a store what it lacks of others. Each run is checked, and complete by itself: a merge can be repeated.

    Of a run that both have, the store's own stays, unless only the other has its weights, or it has more snapshots.
    `on_run` is called for every run of the others.
    """
    merged = Merged()
    store.make()
    for other in others:
        if identity(other.path) == identity(store.path):
            raise StoreError(f"{other.path} and {store.path} are the same store")
    for other in others:
        for run_id in other.files():
            _copy_run(run_id, other, store, merged)
            if on_run is not None:
                on_run()
        _copy_remarks(other, store, merged)
        for sweep in other.sweeps():
            _copy_sweep(sweep, other, store, merged)
        for run_id in other.checkpoints():
            _copy_checkpoint(run_id, other, store, merged)
        known = {failure.run_id for failure in store.failures()}
        for failure in other.failures():
            if failure.run_id not in known and store.find(failure.run_id) is None:
                store.save_failure(failure.spec, failure.error, failure.traceback)
                merged.failures += 1
    return merged


def _copy_run(run_id: str, other: Store, store: Store, merged: Merged) -> None:
    try:
        run = other.entry(run_id)
        own = store.find(run_id)
        if own and (own.has_weights or not run.has_weights) and not _more_snapshots(run, other, own, store):
            merged.present += 1
            if own.final != run.final:
                merged.differing.append(run_id)
            return
        content = other.content(run)
    except Damaged as reason:
        merged.damaged.append(f"run {run_id} in the store {other.path} is damaged: {reason}")
        return
    store.put(run.record(), pack(content.arrays, run_id, run.record()))
    merged.runs += 1


def _more_snapshots(run: StoredRun, other: Store, own: StoredRun, store: Store) -> bool:
    """Whether nothing but snapshots is gained by taking the other's."""
    return run.has_weights >= own.has_weights and other.snapshot_count(run) > store.snapshot_count(own)


def _copy_remarks(other: Store, store: Store, merged: Merged) -> None:
    """Tags of both; the store's own name; both notes, unless one contains the other."""
    own = store.remarks()
    for run_id, theirs in other.remarks().items():
        before = own.get(run_id, Remarks())
        wanted = before.joined(theirs)
        if theirs.name and before.name and theirs.name != before.name:
            merged.other_names.append((theirs.name, before.name))
        if wanted != before and store.find(run_id) is not None:
            said = store.put_remarks(run_id, wanted)
            if said.name != wanted.name:
                merged.renamed_runs.append((str(wanted.name), str(said.name)))


def _copy_sweep(sweep: StoredSweep, other: Store, store: Store, merged: Merged) -> None:
    own = {known.name: known for known in store.sweeps()}
    run_ids = [cell.run_id for cell in other.cells(sweep.name)]
    name, number = sweep.name, 1
    while name in own:
        if own[name].definition == sweep.definition:
            return
        number += 1
        name = f"{sweep.name}-{number}"
    store.put_sweep(replace(sweep, name=name), run_ids)
    merged.sweeps += 1
    if name != sweep.name:
        merged.renamed.append((sweep.name, name))


def _copy_checkpoint(run_id: str, other: Store, store: Store, merged: Merged) -> None:
    try:
        content, own = other.checkpoint_content(run_id), _step_of_own(run_id, store)
    except Damaged:
        return  # the run starts from the beginning, which costs only time
    if content and content.record and store.find(run_id) is None and content.record["step"] > own:
        store.put_checkpoint(run_id, content.record["step"], pack(content.arrays, run_id, content.record))
        merged.checkpoints += 1


def _step_of_own(run_id: str, store: Store) -> int:
    try:
        content = store.checkpoint_content(run_id)
    except Damaged:
        return 0
    return int(content.record["step"]) if content and content.record else 0

"""A quick look at a store. `grokscope store check` reads all of it."""

import os
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from grokscope.doctor.check import Check, State

LOOKED_AT = 500  # files


def check_store(path: Path) -> Iterator[Check]:
    """Whether a store can be opened, what is in it, and whether some of its files are where they should be."""
    from grokscope.errors import StoreError
    from grokscope.store import Store, store_flag
    from grokscope.store.index import INDEX

    mend = f"grokscope store check{store_flag(path)} says more; with --repair it mends"
    if not os.path.lexists(path):
        yield _room_for_a_store(path)
        return
    if not os.path.lexists(path / INDEX):
        holds = path.is_dir() and (path / "runs").is_dir() and any((path / "runs").iterdir())
        if holds:
            yield Check("store", f"{path} has runs but no index", State.BROKEN, mend)
        elif path.is_dir():
            yield Check("store", f"{path} is no store yet; the first run makes it one")
        else:
            yield Check("store", f"{path} is not a directory", State.BROKEN, "name another store with --store")
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            store = Store(path, create=False)
            files, sweeps, failures = store.files(), store.sweeps(), store.failures()
            store.close()
        except StoreError as error:
            yield Check("store", str(error), State.BROKEN, mend)
            return
    missing = [run for run, file in islice(files.items(), LOOKED_AT) if not (path / "runs" / file).is_file()]
    says = f"{path}: {len(files)} runs, {len(sweeps)} sweeps, {len(failures)} failures"
    if missing:
        yield Check("store", f"{says}; files of runs are missing, such as that of {missing[0]}", State.BROKEN, mend)
    elif caught:
        yield Check("store", f"{says}; {caught[0].message}", State.BROKEN, mend)
    elif not os.access(path, os.W_OK):
        advice = "training needs a store that can be written: name one with --store"
        yield Check("store", f"{says}; it can only be read", State.NOTE, advice)
    else:
        yield Check("store", says, numbers={"runs": len(files), "sweeps": len(sweeps), "failures": len(failures)})


def _room_for_a_store(path: Path) -> Check:
    place = path.absolute().parent
    while not place.exists() and place != place.parent:
        place = place.parent
    if os.access(place, os.W_OK):
        return Check("store", f"there is none at {path} yet; the first run makes it")
    advice = "name a directory that you may write with --store or GROKSCOPE_STORE"
    return Check("store", f"there is none at {path}, and none can be made in {place}", State.BROKEN, advice)

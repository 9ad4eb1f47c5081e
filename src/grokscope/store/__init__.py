"""Runs on disk, and which process is working on which run."""

from grokscope.store.opened import DEFAULT_STORE, store_flag
from grokscope.store.records import CellOutcome, Failure, StoredRun, StoredSweep
from grokscope.store.store import Store
from grokscope.store.unfinished import LeaseAnswer
from grokscope.store.where import Condition

__all__ = [
    "DEFAULT_STORE",
    "CellOutcome",
    "Condition",
    "Failure",
    "LeaseAnswer",
    "Store",
    "StoredRun",
    "StoredSweep",
    "store_flag",
]

"""Runs on disk, and which process is working on which run."""

from grokscope.store.files import array_bytes
from grokscope.store.store import (
    DEFAULT_STORE,
    CellOutcome,
    Failure,
    LeaseAnswer,
    Store,
    StoredRun,
    StoredSweep,
    store_flag,
)
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
    "array_bytes",
    "store_flag",
]

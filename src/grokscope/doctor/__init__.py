"""What works here and what does not: `grokscope doctor`.

    for check in checkup(Path("grokscope-runs")):
        print(check.state.value, check.name, check.says)

A check that fails for a reason that nobody thought of is itself a finding: nothing here raises.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from grokscope.doctor.check import Check, State, guarded
from grokscope.doctor.kernel import check_kernel
from grokscope.doctor.machine import check_cores, check_disk, check_memory, check_terminal
from grokscope.doctor.parts import check_needed, check_optional, check_python, check_torch
from grokscope.doctor.speed import check_speed
from grokscope.doctor.stores import check_store

__all__ = ["Check", "State", "checkup"]


def checkup(store: Path, *, speed: bool = True) -> Iterator[Check]:
    """Every check, one after another. That of the speed is the last, and takes five seconds."""
    yield from guarded("Python", check_python)
    yield from guarded("packages", check_needed)
    yield from guarded("torch", check_torch)
    yield from guarded("kernel", check_kernel)
    yield from guarded("cores", check_cores)
    yield from guarded("memory", check_memory)
    yield from guarded("disk", partial(check_disk, store))
    yield from guarded("store", partial(check_store, store))
    yield from guarded("terminal", check_terminal)
    yield from guarded("optional", check_optional)
    if speed:
        yield from guarded("speed", check_speed)

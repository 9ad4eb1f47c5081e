"""The compiled kernel: whether it is there, what it has, and what it uses of that."""

import importlib
import os
import platform
from collections.abc import Iterator

from grokscope.compiled import FOR_TESTS, LEVEL_VARIABLE, compiled_levels, instruction_level
from grokscope.doctor.check import Check, State
from grokscope.errors import EngineError

BUILD = "install a C++ compiler (Debian: apt install g++), then: pip install --force-reinstall --no-deps grokscope"


def check_kernel() -> Iterator[Check]:
    """Which engine trains two-layer networks, and with which instructions."""
    try:
        kernel = importlib.import_module("grokscope._native")
    except ModuleNotFoundError:
        says = "the native kernel is not built: torch trains, several times as slowly"
        yield Check("engine", says, State.NOTE, BUILD)
        return
    except ImportError as error:
        yield Check("engine", f"the native kernel cannot be loaded: {error}", State.BROKEN, BUILD)
        return
    yield Check("engine", "native, for every network that it knows; torch for the others")
    built, had = compiled_levels(), [each for each in kernel.available_levels() if each != FOR_TESTS]
    inventory = f"the kernel has {', '.join(built)}; this CPU has {', '.join(had)}"
    try:
        chosen = instruction_level()
    except EngineError as error:
        yield Check("instructions", str(error), State.BROKEN, f"unset {LEVEL_VARIABLE}")
        return
    if named := os.environ.get(LEVEL_VARIABLE):
        slower = f"unset {LEVEL_VARIABLE} to use {had[-1]}" if chosen != had[-1] else None
        says = f"{chosen}, because {LEVEL_VARIABLE} = {named}; {inventory}"
        yield Check("instructions", says, State.NOTE if slower else State.OK, slower)
    elif chosen == "plain" and len(built) > 1:
        advice = "a virtual machine may hide AVX2: look for avx2 in /proc/cpuinfo here and on the host"
        yield Check("instructions", f"{chosen}, because this CPU has no AVX2; {inventory}", State.NOTE, advice)
    else:
        yield Check("instructions", f"{chosen}, the fastest of both; {inventory} ({platform.machine()})")

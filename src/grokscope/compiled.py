"""The compiled kernel: whether it is there, and which of its instruction levels runs."""

import os
import platform
from types import ModuleType

from grokscope.errors import EngineError, did_you_mean

LEVEL_VARIABLE = "GROKSCOPE_ISA"


def native_module() -> ModuleType | None:
    """The compiled kernel, or None where the package was installed without a C++ compiler."""
    try:
        from grokscope import _native
    except ImportError:
        return None
    return _native


def instruction_level() -> str:
    """The fastest that this CPU has, or the one that the environment variable GROKSCOPE_ISA names."""
    kernel = native_module()
    levels: list[str] = kernel.available_levels() if kernel else []
    chosen = os.environ.get(LEVEL_VARIABLE) or levels[-1]
    if chosen not in levels:
        raise EngineError(
            f"{LEVEL_VARIABLE} = {chosen!r} is not allowed: this CPU has {', '.join(levels)}"
            f"{did_you_mean(chosen, levels)}"
        )
    return chosen


def compiled_levels() -> list[str]:
    """The instruction levels that a kernel for this kind of processor is compiled for, the fastest last."""
    return ["plain", "avx2", "avx512"] if platform.machine().lower() in ("x86_64", "amd64") else ["plain"]

"""grokscope itself: one run on one core. Two of them side by side use the machine."""

import resource
import time

from grokscope import RunSpec, make_dataset, run
from grokscope.engines import initial_state, make_engine
from grokscope.engines.native_engine import instruction_level, native_module


class EngineProgram:
    """Steps of one run, with the engine that grokscope chooses."""

    def __init__(self, spec: RunSpec) -> None:
        self.engine = make_engine(spec, make_dataset(spec.task), initial_state(spec))

    def seconds_of(self, steps: int) -> float:
        """How long so many steps take."""
        start = time.perf_counter()
        self.engine.advance(steps)
        return time.perf_counter() - start


class WholeRun:
    """A run with all its measurements."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec

    def seconds_of(self, steps: int) -> float:
        """How long the run takes if it has so many steps."""
        start = time.perf_counter()
        run(self.spec.updated({"training.steps": steps}), engine="native")
        return time.perf_counter() - start


class FmaPeak:
    """The limit: multiply-adds in registers. Its steps are of 1e9 operations."""

    def __init__(self, spec: RunSpec) -> None:
        pass

    def seconds_of(self, steps: int) -> float:
        """How long steps · 1e9 operations take."""
        kernel = native_module()
        assert kernel is not None
        peak: float = kernel.fma_peak(instruction_level(), 0.3)
        return steps / peak


class Memory:
    """Peak resident memory of a worker after a default run."""

    def __init__(self, spec: RunSpec) -> None:
        run(spec.updated({"training.steps": 20}), engine="native")

    def seconds_of(self, steps: int) -> float:
        """Megabytes, in place of seconds."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

"""How fast the kernel trains here, against the multiply-adds that this core can do at all."""

import os
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

from grokscope.doctor.check import Check, State
from grokscope.errors import EngineError

SECONDS = 5.0
PIECE = 0.25  # seconds of each of the two in a turn
EXPECTED = 0.7  # of the peak; docs/performance.md has 81 %
UNDISTURBED = 0.9  # of the time on the clock


class Speed(NamedTuple):
    """What was measured, per second of processor time."""

    steps: float  # of the default run
    gigaflops: float  # of useful work in them
    peak: float  # of multiply-adds in registers
    share: float  # of the core that this process got

    @property
    def of_peak(self) -> float:
        """What a program that only multiplies and adds could not beat is 1."""
        return self.gigaflops / self.peak


def check_speed() -> Iterator[Check]:
    """Train the default run for a few seconds."""
    from grokscope.compiled import instruction_level, native_module

    if native_module() is None:
        yield Check("speed", "there is no kernel whose speed could be measured")
        return
    try:
        level = instruction_level()
    except EngineError:
        return  # `check_kernel` has said why
    speed = measure(level, SECONDS)
    says = (
        f"{speed.of_peak:.0%} of the peak ({speed.gigaflops:.0f} of {speed.peak:.0f} GFLOP/s of one core, {level}), "
        f"{speed.steps:.0f} steps a second of the default run"
    )
    state, verdict, advice = judged(speed)
    yield Check("speed", f"{says}: {verdict}", state, advice, speed._asdict() | {"of_peak": speed.of_peak})


def judged(speed: Speed) -> tuple[State, str, str | None]:
    """Whether that is as it should be, and what may be wrong."""
    busy = speed.share < UNDISTURBED
    if speed.of_peak >= EXPECTED and not busy:
        return State.OK, "as it should be", None
    if busy:
        verdict = "as it should be" if speed.of_peak >= EXPECTED else f"less than {EXPECTED:.0%}"
        other = f"other programs took {1 - speed.share:.0%} of the core's time: end them, or use fewer --workers"
        return State.NOTE, f"{verdict}, in the time that this process got", other
    load, cores = (os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0), os.cpu_count() or 1
    if load > 0.5 * cores:
        other = f"other programs use the caches and cores (load {load:.1f} on {cores}): try again when they have ended"
        return State.NOTE, f"less than {EXPECTED:.0%}", other
    return (
        State.NOTE,
        f"less than {EXPECTED:.0%}",
        "the CPU may be hot or saving power, or share its core with another virtual machine: try again",
    )


def measure(level: str, seconds: float) -> Speed:
    """Steps and peak in turns, so that both see the same machine; medians over the turns.

    Times are of the processor, so that a program that takes turns with this one changes little.
    """
    from grokscope.compiled import native_module
    from grokscope.engines import initial_state, make_engine
    from grokscope.spec import RunSpec
    from grokscope.tasks import make_dataset

    spec = RunSpec()
    engine = make_engine(spec, make_dataset(spec.task), initial_state(spec), "native")
    kernel = native_module()
    assert kernel is not None
    useful = 6 * spec.task.training_size * spec.model.width * spec.task.modulus / 1e9  # of a step
    begun, begun_processor = time.perf_counter(), time.thread_time()
    engine.advance(2)
    rates: list[float] = []
    peaks: list[float] = []
    steps = 1
    while not peaks or time.perf_counter() - begun < seconds:
        before = time.thread_time()
        engine.advance(steps)
        rates.append(steps / (time.thread_time() - before))
        steps = max(1, round(PIECE * rates[-1]))
        before, clock = time.thread_time(), time.perf_counter()
        peak: float = kernel.fma_peak(level, PIECE)
        got = (time.thread_time() - before) / (time.perf_counter() - clock)
        peaks.append(peak / got)
    share = (time.thread_time() - begun_processor) / (time.perf_counter() - begun)
    rate = statistics.median(rates)
    return Speed(rate, rate * useful, statistics.median(peaks), min(share, 1.0))

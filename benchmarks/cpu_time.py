"""`python -m benchmarks.cpu_time [WORD …]`: seconds of CPU for a step; `python -m benchmarks` needs an idle machine.

Every program runs on one thread, and what others do on the machine is not counted, but for what they do to the caches.
The programs and the limit take turns, and the medians of the ratios of neighbours are shown. Operations are those of
the matrix products that a step needs (`operations`), so that the share of the limit is comparable between programs.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.__main__ import BASE, VARIANTS, machine
from benchmarks.eager import EagerProgram
from benchmarks.operations import operations
from grokscope import RunSpec, make_dataset
from grokscope.engines import initial_state, make_engine
from grokscope.engines.native_engine import instruction_level, native_module

SPECS = {"default": BASE} | {name: variant.spec for name, variant in VARIANTS.items()}


def cpu_seconds(call: Callable[[], object]) -> float:
    """Seconds of CPU that a call takes."""
    start = time.process_time()
    call()
    return time.process_time() - start


def peak() -> float:
    """Operations in registers for each second of CPU."""
    kernel = native_module()
    assert kernel is not None
    wall = time.perf_counter()
    start = time.process_time()
    per_second = kernel.fma_peak(instruction_level(), 0.1)
    used, passed = time.process_time() - start, time.perf_counter() - wall
    return float(per_second * 1e9 * passed / used)


def measured(spec: RunSpec, rounds: int) -> tuple[float, float, float, str]:
    """Seconds of a step, how many times those of eager code, the share of the limit, and the engine."""
    engine = make_engine(spec, make_dataset(spec.task), initial_state(spec))
    eager = EagerProgram(spec)
    torch.set_num_threads(1)
    once = cpu_seconds(lambda: engine.advance(2)) / 2
    steps = max(2, round(0.3 / once))
    eager.seconds_of(1)
    own, ratios, shares = [], [], []
    for _ in range(rounds):
        limit = peak()
        own.append(cpu_seconds(lambda: engine.advance(steps)) / steps)
        slow_steps = max(1, steps // 5)
        ratios.append(cpu_seconds(lambda: eager.seconds_of(slow_steps)) / slow_steps / own[-1])  # noqa: B023
        shares.append(operations(spec) / own[-1] / limit)
    return statistics.median(own), statistics.median(ratios), statistics.median(shares), engine.name


def times_jax(spec: RunSpec, rounds: int) -> float:
    """How many times our seconds of CPU for a step JAX takes, all of its threads together; in turns."""
    from benchmarks.jax_program import JaxProgram

    engine = make_engine(spec, make_dataset(spec.task), initial_state(spec))
    program = JaxProgram(spec)
    ratios = [program.seconds_of(3, time.process_time) / cpu_seconds(lambda: engine.advance(3)) for _ in range(rounds)]
    return statistics.median(ratios)


def main() -> None:
    """Measure what was asked for and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_time", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="WORD", help=f"which: {', '.join(SPECS)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--jax", action="store_true", help="against JAX as well; only of what benchmarks.jax_program has"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - SPECS.keys():
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    table = Table(box=None, title=f"{machine()}, {instruction_level()}, seconds of CPU on one thread")
    for heading in ("work", "engine", "ms a step", "× eager", "of FMA peak", "× JAX" if arguments.jax else ""):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for name in arguments.cases or SPECS:
        seconds, ratio, share, engine = measured(SPECS[name], arguments.rounds)
        table.add_row(
            VARIANTS[name].work if name in VARIANTS else name,
            engine,
            f"{1e3 * seconds:.3g}",
            f"{ratio:.2f}",
            f"{share:.0%}",
            f"{times_jax(SPECS[name], arguments.rounds):.2f}" if arguments.jax else "",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

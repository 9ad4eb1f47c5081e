"""`python -m benchmarks.stacked`: `--engine stacked` on a CPU, which is for GPUs, beside native and torch.

Milliseconds of CPU for a step of one run, on one thread; what others do on the machine is not counted. The three take
turns, and the medians are shown.
"""

import statistics

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.__main__ import machine
from benchmarks.cpu_time import cpu_seconds
from grokscope import RunSpec, make_dataset
from grokscope.engines import SteppingEngine, initial_state, make_engine, make_stacked_engine

RUNS, ROUNDS, SECONDS = 4, 3, 0.2
WORK: dict[str, dict[str, object]] = {
    "α = .5, quadratic, MSE": {},
    "mini-batch 64": {"training.batch_size": 64},
    "Transformer: 1 layer, d = 128, 4 heads": {"model.kind": "transformer", "model.scaling": "sqrt-d"},
}


def milliseconds(spec: RunSpec) -> dict[str, float]:
    """Of a step of one run, by engine; the stack has several runs."""
    specs = [spec.updated({"training.seed": seed}) for seed in range(RUNS)]
    datasets = [make_dataset(each.task, each.training.seed) for each in specs]
    states = [initial_state(each) for each in specs]
    engines: dict[str, tuple[SteppingEngine, int]] = {
        name: (make_engine(spec, datasets[0], states[0], name), 1) for name in ("native", "torch")
    }
    engines["stacked"] = (make_stacked_engine(specs, datasets, states), RUNS)
    samples: dict[str, list[float]] = {name: [] for name in engines}
    steps = {}
    for name, (engine, _) in engines.items():
        engine.advance(1)
        steps[name] = max(1, round(SECONDS / cpu_seconds(lambda: engine.advance(1))))  # noqa: B023
    for _ in range(ROUNDS):
        for name, (engine, runs) in engines.items():
            used = cpu_seconds(lambda: engine.advance(steps[name]))  # noqa: B023
            samples[name].append(1e3 * used / steps[name] / runs)
    return {name: statistics.median(values) for name, values in samples.items()}


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    table = Table(box=None, title=f"{machine()}: ms of CPU for a step of one run; {RUNS} runs in the stack")
    for heading in ("work", "native", "torch", "stacked", "stacked / native"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for work, fields in WORK.items():
        found = milliseconds(RunSpec().updated(fields))
        cells = [f"{found[name]:.3g}" for name in ("native", "torch", "stacked")]
        table.add_row(work, *cells, f"{found['stacked'] / found['native']:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

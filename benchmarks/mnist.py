"""`python -m benchmarks.mnist [--rounds 5]`: an epoch of 60,000 images, against the program that one would write first.

That program is nn.Sequential, a DataLoader over a TensorDataset and torch's AdamW. The network, the batch size and the
loss are those of Figure 16. Grokscope trains a run with one thread; the other program is timed with one thread and with
two. The programs take turns, so that what else the machine does slows down all of them, and ratios are medians over the
rounds. Two threads need an idle machine all the same: they spin while they wait for each other. Images are random,
since how long it takes depends on the shapes only. Writes benchmarks/mnist.json.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from grokscope.engines import initial_state, make_engine
from grokscope.experiments.paper.fig16 import BASE
from grokscope.outputs import write_text
from grokscope.spec import RunSpec
from grokscope.tasks import Dataset

ROUNDS = 5
AIM_SECONDS = 4
OURS = "grokscope"
RESULTS = Path("benchmarks/mnist.json")


def made_up_images(spec: RunSpec) -> Dataset:
    """As many as MNIST has, of the same size; four in five pixels are 0."""
    rng = np.random.default_rng(0)
    count, pixels, classes = spec.task.training_size, spec.task.inputs.size, spec.task.classes
    images = np.maximum(rng.random((count, pixels), np.float32) - 0.8, 0) * 5
    labels, names = rng.integers(classes, size=count), np.arange(count)
    few = slice(0, 100)
    return Dataset(
        spec.task, classes, 0.0, images, labels, labels, labels < 0, images[few], labels[few], names, names[few]
    )


def epoch_of_grokscope(spec: RunSpec, data: Dataset) -> Callable[[], object]:
    """One epoch of the engine that trains such a run."""
    engine = make_engine(spec, data, initial_state(spec))
    steps = spec.task.training_size // int(spec.training.batch_size or 1)
    return lambda: engine.advance(steps)


def epoch_of_the_obvious(spec: RunSpec, data: Dataset, threads: int) -> Callable[[], object]:
    """One epoch of what a tutorial would write."""
    width, dropout = spec.model.width, spec.model.dropout
    layers: list[nn.Module] = []
    for size in (spec.task.inputs.size, width, width):
        layers += [nn.Linear(size, width, bias=False), nn.Dropout(dropout), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, spec.task.classes, bias=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, betas=(0.9, 0.98), weight_decay=1.0)
    examples = TensorDataset(torch.tensor(data.train_inputs), torch.tensor(data.train_labels))
    loader = DataLoader(examples, batch_size=spec.training.batch_size, shuffle=True, drop_last=True)

    def epoch() -> None:
        torch.set_num_threads(threads)
        for images, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return epoch


def in_turns(programs: dict[str, Callable[[], object]], rounds: int) -> dict[str, dict[str, float]]:
    """Medians over the rounds: seconds on the clock and of the CPU, and how many times as long as grokscope's."""
    clock: dict[str, list[float]] = {name: [] for name in programs}
    cpu: dict[str, list[float]] = {name: [] for name in programs}
    for count in range(rounds + 1):
        for name, epoch in programs.items():
            started = time.perf_counter(), time.process_time()
            epoch()
            if count:  # the first round warms up
                clock[name].append(time.perf_counter() - started[0])
                cpu[name].append(time.process_time() - started[1])

    def ratio(times: dict[str, list[float]], name: str) -> float:
        return statistics.median(other / own for other, own in zip(times[name], times[OURS], strict=True))

    return {
        name: {
            "seconds": round(statistics.median(clock[name]), 2),
            "cpu_seconds": round(statistics.median(cpu[name]), 2),
            "times_as_long": round(ratio(clock, name), 2),
            "times_as_much_cpu": round(ratio(cpu, name), 2),
        }
        for name in programs
    }


def main() -> None:
    """Time all programs, with and without dropout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="epochs of each program, after one that warms up")
    rounds = parser.parse_args().rounds
    load, cases = os.getloadavg()[0], {}
    for title, dropout in (("no dropout", 0.0), ("dropout 0.4", 0.4)):
        spec = BASE.updated({"model.dropout": dropout, "optimizer.weight_decay": 1})
        data = made_up_images(spec)
        programs = {
            OURS: epoch_of_grokscope(spec, data),
            "torch, 1 thread": epoch_of_the_obvious(spec, data, 1),
            "torch, 2 threads": epoch_of_the_obvious(spec, data, 2),
        }
        cases[title] = in_turns(programs, rounds)
    console = Console(soft_wrap=True, highlight=False)
    for title, programs_times in cases.items():
        for program, times in programs_times.items():
            console.print(
                f"{title}, {program}: {times['seconds']} s, {times['cpu_seconds']} s of CPU; "
                f"{times['times_as_long']} and {times['times_as_much_cpu']} times grokscope's"
            )
    console.print(f"The aim for grokscope is an epoch under {AIM_SECONDS} s. The load before was {load:.1f}.")
    write_text(RESULTS, json.dumps({"load": round(load, 1), "rounds": rounds, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""`python -m benchmarks.pruning`: all prefixes of one pruning order, against one evaluation of the module for each.

Trains nothing: how long it takes depends on the shapes only. The direct way is timed on a few prefixes spread over the
order, and in turns with the fast one; medians are compared. Both use one thread, and seconds are those of the CPU, so
that other work on the machine does not count. Writes benchmarks/pruning.json.
"""

import json
import statistics
import time
from pathlib import Path

import torch
from rich.console import Console

from grokscope import RunSpec, initial_weights, make_dataset, measure_pruning, pruned, pruning_curves, pruning_orders
from grokscope.compiled import instruction_level
from grokscope.models import make_network
from grokscope.models.module import evaluate
from grokscope.outputs import write_text

ROUNDS = 7
PREFIXES_OF_A_ROUND = 10
CASES: dict[str, dict[str, object]] = {
    "MSE, no norm": {},
    "cross-entropy": {"training.loss": "cross-entropy"},
    "BatchNorm": {"model.norm": "batch"},
    "LayerNorm": {"model.norm": "layer"},
}
RESULTS = Path("benchmarks/pruning.json")


def measured(spec: RunSpec) -> dict[str, float]:
    """Seconds for all N + 1 prefixes of one order, and what they would be one by one."""
    weights, data = initial_weights(spec.model, spec.task.modulus), make_dataset(spec.task)
    order, N = pruning_orders(spec.model, weights, spec.task)["lowest_ipr"], spec.model.width
    at_once, one_by_one = [], []
    for _ in range(ROUNDS):
        started = time.process_time()
        pruning_curves(weights, spec.model, data, [order], spec.training.loss)
        at_once.append(time.process_time() - started)
        started = time.process_time()
        for count in range(0, N, N // PREFIXES_OF_A_ROUND):
            network = make_network(spec.model, pruned(spec.model, weights, order[:count]))
            evaluate(network, data.train_inputs, data.train_labels, spec.training.loss)
            evaluate(network, data.test_inputs, data.test_labels, spec.training.loss)
        evaluated = len(range(0, N, N // PREFIXES_OF_A_ROUND))
        one_by_one.append((time.process_time() - started) / evaluated * (N + 1))
    seconds, direct = statistics.median(at_once), statistics.median(one_by_one)
    return {"seconds": seconds, "direct_seconds": direct, "ratio": direct / seconds}


def command_seconds(spec: RunSpec) -> float:
    """All that the command computes by default: every order, twenty of them random."""
    started = time.process_time()
    measure_pruning(initial_weights(spec.model, spec.task.modulus), spec.model, make_dataset(spec.task))
    return time.process_time() - started


def main() -> None:
    """Measure, print, write down."""
    torch.set_num_threads(1)
    rows = {name: measured(RunSpec().updated(fields)) for name, fields in CASES.items()}
    content = {"level": instruction_level(), "rows": rows, "every_order_seconds": command_seconds(RunSpec())}
    for name, row in rows.items():
        Console().print(
            f"{name:14} {row['seconds']:.3f} s for one order; one by one {row['direct_seconds']:.1f} s: "
            f"{row['ratio']:.0f} times as long"
        )
    Console().print(f"every order, 20 of them random: {content['every_order_seconds']:.1f} s")
    write_text(RESULTS, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()

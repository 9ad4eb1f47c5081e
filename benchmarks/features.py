"""`python -m benchmarks.features STORE [DATA_DIR]`: which neurons carry the rule, where there is no Fourier basis?

Candidates are compared where the answer is known, on the networks of Figure 1: how well each tells neurons with an IPR
above 0.5 from the others (AUROC; 0.5 is guessing), and what is left of the wrong labels when neurons are pruned by it.
The same pruning is then done on the networks of Figure 16 at the quick scale, where nobody knows. Networks are trained
into STORE where it lacks them. Writes benchmarks/features.json.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from rich.console import Console

from grokscope.arrays import FloatArray
from grokscope.experiments.paper import fig01, fig16
from grokscope.experiments.scale import QUICK
from grokscope.images import DATA_DIRECTORY
from grokscope.measure import PruningCurve, pruning_curves, random_order
from grokscope.measure.audit.detection import auroc
from grokscope.measure.features.candidates import feature_measures
from grokscope.measure.spectra.spectrum import rank_correlation
from grokscope.outputs import write_text
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.sweeping import train

RESULTS = Path("benchmarks/features.json")
PERIODIC = 0.5  # IPR
TEST_LOST = 0.05  # of test accuracy, up to which a pruned network still knows the rule


def pruned_by(result: RunResult, measure: FloatArray) -> PruningCurve:
    """Neurons with the lowest measure go first, after those that never respond."""
    order = np.argsort(np.where(np.isnan(measure), -np.inf, measure), kind="stable")
    spec = result.spec
    (curve,) = pruning_curves(result.trained_weights(), spec.model, result.dataset(), [order], spec.training.loss)
    return curve


def memory_left(curve: PruningCurve) -> float:
    """The share of the memorised labels that is left at best while test accuracy has lost at most 0.05."""
    lost = np.maximum.accumulate(curve.test_accuracy[0] - curve.test_accuracy)
    return float(curve.corrupted_accuracy[lost <= TEST_LOST].min() / curve.corrupted_accuracy[0])


def rounded(value: float | None) -> float | None:
    """Three digits; nothing for what does not exist."""
    return None if value is None or np.isnan(value) else round(float(value), 3)


def measured(spec: RunSpec, store: Path) -> dict[str, object]:
    """Every candidate on one network, with another seed of it for recurrence."""
    first, second = (train(spec.updated({"training.seed": seed}), store=store, weights=True) for seed in (0, 1))
    weights, data = first.trained_weights(), first.dataset()
    measures = feature_measures(spec.model, weights, data, second.trained_weights())
    ipr = first.neurons.neuron_ipr if first.neurons is not None else None
    if ipr is not None:
        measures["ipr"] = ipr
    random = [random_order(spec.model.width, number) for number in range(5)]
    chance = pruning_curves(weights, spec.model, data, random, spec.training.loss)
    found: dict[str, object] = {
        "run_id": first.run_id,
        "phase": first.outcome,
        "test_accuracy": rounded(first.final.test_accuracy),
        "corrupted_accuracy": rounded(first.final.corrupted_accuracy),
        "memory_left_at_random": rounded(float(np.mean([memory_left(curve) for curve in chance]))),
    }
    for name, values in measures.items():
        known = ~np.isnan(values)
        row: dict[str, float | None] = {"memory_left": rounded(memory_left(pruned_by(first, values)))}
        row["memory_left_reversed"] = rounded(memory_left(pruned_by(first, -values)))
        if ipr is not None:
            both = known & ~np.isnan(ipr)
            row["auroc"] = rounded(auroc(values[both], ipr[both] > PERIODIC))
            row["rank_correlation"] = rounded(rank_correlation(values[both], ipr[both]))
        found[name] = row
    return found


def main() -> None:
    """The networks of Figure 1, then those of Figure 16."""
    store = Path(sys.argv[1])
    cases = {f"addition, weight decay {spec.optimizer.weight_decay:g}": spec for spec in fig01.specs()}
    if len(sys.argv) > 2:
        os.environ[DATA_DIRECTORY] = str(Path(sys.argv[2]).resolve())
        decays = fig16.with_decays(QUICK)
        for spec in (decays[0], decays[4]):  # everything memorised, and half of it
            cases[f"MNIST, weight decay {spec.optimizer.weight_decay:g}"] = spec
    results = {}
    for name, spec in cases.items():
        results[name] = measured(spec, store)
        Console(soft_wrap=True).print(name, results[name])
        write_text(RESULTS, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Networks without their neurons of low IPR, or of high IPR.

Check("prunable neurons", lambda curves: curves[LOWEST].prunable, low=100, of=by_ipr(COEXISTENCE))
"""

import math

import numpy as np

from grokscope.arrays import Int64Array
from grokscope.experiments.evidence import View
from grokscope.experiments.tables import from_rows
from grokscope.measure import PruningCurve, pruning_curves, pruning_orders, random_order
from grokscope.result import RunResult
from grokscope.spec import RunSpec
from grokscope.tables import Table

LOWEST, HIGHEST = "lowest_ipr", "highest_ipr"


def by_ipr(spec: RunSpec) -> View:
    """The curves of a network for both orders: `LOWEST` and `HIGHEST` first."""
    return View(spec, curves_by_ipr)


def curves_by_ipr(result: RunResult) -> dict[str, PruningCurve]:
    """The same of a network at hand."""
    orders = pruning_orders(result.spec.model, result.trained_weights(), result.spec.task)
    chosen = (LOWEST, HIGHEST)
    return dict(zip(chosen, _curves(result, [orders[name] for name in chosen]), strict=True))


def at_random(result: RunResult, orders: int = 5) -> list[PruningCurve]:
    """The curves of a network for some random orders."""
    return _curves(result, [random_order(result.spec.model.neuron_count, number) for number in range(orders)])


def _curves(result: RunResult, orders: list[Int64Array]) -> list[PruningCurve]:
    spec = result.spec
    return pruning_curves(result.trained_weights(), spec.model, result.dataset(), orders, spec.training.loss)


def fraction_to_lose(curve: PruningCurve, quantity: str) -> float:
    """The fraction of neurons that are gone when an accuracy first is below nine tenths of its start; NaN if never."""
    values = getattr(curve, quantity)
    lower = np.flatnonzero(values < 0.9 * values[0])
    return float(curve.fraction_pruned[lower[0]]) if len(lower) else math.nan


def place_at(curve: PruningCurve, fraction: float) -> int:
    """How many neurons are gone at this fraction, rounded."""
    return round(fraction * (len(curve.test_accuracy) - 1))


def curve_table(networks: dict[str, tuple[str, dict[str, PruningCurve]]], quantities: tuple[str, ...]) -> Table:
    """Network, run id, order, neurons gone, and these quantities; the networks are name → (run id, curves)."""
    rows = [
        (name, run_id, order, pruned, float(fraction), *(float(getattr(curve, each)[pruned]) for each in quantities))
        for name, (run_id, curves) in networks.items()
        for order, curve in curves.items()
        for pruned, fraction in enumerate(curve.fraction_pruned)
    ]
    columns = ("network", "run_id", "order", "pruned", "fraction_pruned", *quantities)
    return from_rows(columns, rows)

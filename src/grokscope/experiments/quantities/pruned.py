"""Networks of an experiment without their neurons of low, or of high, IPR."""

import math
from functools import lru_cache
from pathlib import Path

import numpy as np

from grokscope.experiments.evidence import Evidence
from grokscope.experiments.tables import from_rows
from grokscope.measure import PruningCurve, pruning_curves, pruning_orders, random_order
from grokscope.outputs import Table
from grokscope.spec import RunSpec
from grokscope.store import Store

LOWEST, HIGHEST = "lowest_ipr", "highest_ipr"
_KEPT = 32  # several claims look at the same curves


def by_ipr(evidence: Evidence, spec: RunSpec) -> dict[str, PruningCurve]:
    """The curves of a network for both orders: `LOWEST` and `HIGHEST` first."""
    return _by_ipr(evidence.store.path, evidence.network(spec).run_id)


@lru_cache(maxsize=_KEPT)
def _by_ipr(store: Path, run_id: str) -> dict[str, PruningCurve]:
    result = Store(store, create=False).load(run_id)
    weights, task = result.trained_weights(), result.spec.task
    orders = {
        name: order for name, order in pruning_orders(result.spec.model, weights, task).items() if name in _ORDERS
    }
    curves = pruning_curves(
        weights, result.spec.model, result.dataset(), list(orders.values()), result.spec.training.loss
    )
    return dict(zip(orders, curves, strict=True))


_ORDERS = (LOWEST, HIGHEST)


def at_random(evidence: Evidence, spec: RunSpec, orders: int = 5) -> list[PruningCurve]:
    """The curves of a network for some random orders."""
    result = evidence.network(spec)
    weights = result.trained_weights()
    chosen = [random_order(len(weights["U"]), number) for number in range(orders)]
    return pruning_curves(weights, result.spec.model, result.dataset(), chosen, result.spec.training.loss)


def fraction_to_lose(curve: PruningCurve, quantity: str) -> float:
    """The fraction of neurons gone when an accuracy is a tenth lower than at first; NaN if it never is."""
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

"""Runs that look trained and took no time, to draw figures and check claims from."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from grokscope.experiments.evidence import Needs, missing_networks
from grokscope.experiments.scale import Scale
from grokscope.measure import Row
from grokscope.phases import classify
from grokscope.result import RunResult
from grokscope.spec import RunSpec, TaskSpec
from grokscope.store import Store
from grokscope.training import execute


def synthetic_result(spec: RunSpec) -> RunResult:
    """The network after two steps, with a curve as if it had learnt: more from more data, less from wrong labels."""
    started = execute(_without_files(spec).updated({"training.steps": min(2, spec.training.steps)}))
    alpha, xi = spec.task.data_fraction, spec.task.corruption
    best_test = 1.0 if alpha > 0.2 + xi else 0.3
    strength = spec.optimizer.weight_decay / 20 + spec.model.dropout
    corrupted = max(0.0, 1 - strength)
    train = 1 - xi * (1 - corrupted)
    steps = spec.training.measured_steps()
    curve = tuple(
        _row(started.final, step, share, best_test, train, corrupted)
        for step, share in zip(steps, np.linspace(0.1, 1, len(steps)), strict=True)
    )
    phase = classify(train, best_test, xi, best_test)
    return replace(started, spec=spec, curve=curve, phase=phase, ipr_history=None)


def _without_files(spec: RunSpec) -> RunSpec:
    """The same, but for images a rule that needs no files: the weights will be of another shape."""
    if spec.task.kind != "images":
        return spec
    return spec.with_sections({"task": TaskSpec(modulus=23)})


def _row(row: Row, step: int, share: float, test: float, train: float, corrupted: float) -> Row:
    changed = {
        "step": step,
        "test_accuracy": test * share,
        "train_accuracy": train * share,
        "corrupted_accuracy": corrupted * share,
        "recovered_accuracy": (1 - corrupted) * share,
        "clean_accuracy": share,
        "mean_ipr": 0.1 + 0.5 * share,
    }
    assert changed.keys() <= row.keys()
    return Row({**row, **changed})


def fill(path: Path, needs: Needs, scale: Scale) -> Store:
    """A store with everything that is needed, made up; what is there already stays."""
    store = Store(path, create=True)
    for spec in missing_networks(store, needs.specs(scale)):
        store.save(synthetic_result(spec), weights=True)
    for plan in needs.plans(scale):
        for spec in plan.specs():
            if store.find(spec.run_id) is None:
                store.save(synthetic_result(spec))
    return store

"""A small store with a sweep, networks with and without weights, and every kind of trouble."""

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest

from grokscope.spec import RunSpec
from grokscope.store import Store
from grokscope.sweeps.plan import Plan
from grokscope.training import execute

BASE = {"task.modulus": 11, "model.width": 24, "training.steps": 30, "training.measure_every": 10}
ALPHAS, XIS, DECAYS = [0.3, 0.5, 0.8], [0.0, 0.4], [0.0, 5.0]


@dataclass(frozen=True)
class Filled:
    """The store, and the runs in it that tests ask for."""

    path: Path
    plan: Plan
    specs: list[RunSpec]
    with_weights: str  # α 0.3, ξ 0, no decay; with a name, tags and a note
    without_weights: str  # α 0.5, ξ 0, no decay
    failed: str
    damaged: str
    missing: str


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Twelve cells in two panels: two missing, one failed, one damaged, the others trained."""
    path = tmp_path_factory.mktemp("explorer") / "runs-of-tests"
    axes: dict[str, list[float]] = {
        "task.data_fraction": ALPHAS,
        "task.corruption": XIS,
        "optimizer.weight_decay": DECAYS,
    }
    plan = Plan.over(axes, RunSpec().updated(BASE), "small")
    specs = list(plan.specs())
    store = Store(path)
    store.record_sweep("small", plan.to_dict(), [spec.run_id for spec in specs], refined=False)
    trained = [*range(9), 10]  # 9 fails; 11 is never run
    for place in trained:
        store.save(execute(specs[place]), weights=place in (0, 3, 4))
    store.set_name(specs[0].run_id, "baseline")
    store.tag(specs[0].run_id, "good", "für-später")
    store.set_note(specs[0].run_id, "Beside Figure 2.\n<b>Not bold.</b>")
    store.save_failure(specs[9], "ValueError: on purpose", "Traceback: on purpose")
    store.close()
    _damage(path, specs[10].run_id)
    ids = [spec.run_id for spec in specs]
    return Filled(path, plan, specs, ids[0], ids[1], failed=ids[9], damaged=ids[10], missing=ids[11])


def _damage(path: Path, run_id: str) -> None:
    """Change what the index says about a run."""
    index = sqlite3.connect(path / "index.sqlite")
    (final,) = index.execute("SELECT final FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    changed = json.dumps(json.loads(final) | {"test_accuracy": 0.123})
    index.execute("UPDATE runs SET final = ?, test_accuracy = 0.123 WHERE run_id = ?", (changed, run_id))
    index.commit()
    index.close()

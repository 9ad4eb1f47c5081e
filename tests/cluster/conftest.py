"""One cluster for all tests that leave it whole, and specs whose runs take several pieces."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.dask_processes import DaskProcesses

from grokscope import ModelSpec, RunSpec, TaskSpec, TrainingSpec


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """Two workers that nothing happens to."""
    processes = DaskProcesses(tmp_path_factory.mktemp("dask"))
    try:
        yield processes.start(2)
    finally:
        processes.close()


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[DaskProcesses]:
    """For a test that does something to it."""
    processes = DaskProcesses(tmp_path / "dask")
    try:
        yield processes
    finally:
        processes.close()


@pytest.fixture
def short(tiny: RunSpec) -> list[RunSpec]:
    """Runs of some hundredths of a second."""
    return [tiny.updated({"training.seed": seed, "model.dropout": 0.1}) for seed in range(40)]


@pytest.fixture
def longer() -> list[RunSpec]:
    """Runs of about a second, which pauses divide."""
    task, model = TaskSpec(modulus=29), ModelSpec(width=128)
    return [
        RunSpec(task=task, model=model, training=TrainingSpec(steps=1500, measure_every=100, seed=seed))
        for seed in range(6)
    ]

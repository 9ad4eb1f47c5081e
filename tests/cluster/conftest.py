"""One cluster for all tests that leave it whole, and specs whose runs take several pieces."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.dask_processes import DaskProcesses

from grokscope import ModelSpec, RunSpec, TaskSpec, TrainingSpec


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Dask forgets to close a socket now and then when its connection breaks, and here they are broken on purpose;
    dask-jobqueue never closes the files that it writes certificates to."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(autouse=True)
def _nothing_unclosed_is_left() -> Iterator[None]:
    """What Dask did not close is collected here: in whatever test runs later, the warning would be an error."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """Two workers that nothing happens to."""
    processes = DaskProcesses(tmp_path_factory.mktemp("dask"))
    try:
        yield processes.start(2)
    finally:
        processes.close()


@pytest.fixture(scope="session")
def _lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    processes = DaskProcesses(tmp_path_factory.mktemp("dask"))
    try:
        yield processes.start()
    finally:
        processes.close()


@pytest.fixture
def scheduler(_lasting: DaskProcesses) -> Iterator[DaskProcesses]:
    """For a test that brings its own workers: they end with it, and the scheduler stays for the next."""
    try:
        yield _lasting
    finally:
        _lasting.end_workers()


@pytest.fixture(scope="session")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for runs that are done in this process, to compare with: each is done once for all tests."""
    return tmp_path_factory.mktemp("serial")


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[DaskProcesses]:
    """For a test that does something to its scheduler."""
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
    """Runs of half a second and more, on fast machines too, which pauses divide."""
    task, model = TaskSpec(modulus=29), ModelSpec(width=128)
    return [
        RunSpec(task=task, model=model, training=TrainingSpec(steps=4000, measure_every=400, seed=seed))
        for seed in range(5)
    ]

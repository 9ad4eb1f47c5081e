"""Many runs: what the coordinator holds does not grow with the queue."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.dask_processes import DaskProcesses

from grokscope import Store

MANY = """
import re, sys
from contextlib import closing
from pathlib import Path
from grokscope import RunSpec
from grokscope.cluster import cluster_at
from grokscope.sweeps import Finished, Running, run_all
from grokscope.sweeps.plan import Plan

base = RunSpec().updated({"task.modulus": 11, "model.width": 24, "training.steps": 30})
specs = list(Plan.over({"training.seed": range(10_000)}, base).specs())
done = 0
with cluster_at(sys.argv[1]) as cluster, closing(run_all(specs, Path("store"), Running(cluster=cluster))) as events:
    for event in events:
        done += isinstance(event, Finished)
        if done == int(sys.argv[2]):
            break
# Not getrusage, which counts the process that this one was forked from.
print(done, int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def most_memory(dask: DaskProcesses, directory: Path, runs: int) -> int:
    """In megabytes, of a coordinator with 10,000 runs in its queue that ends after some of them."""
    done = subprocess.run(
        [sys.executable, "-c", MANY, dask.address, str(runs)], cwd=directory, capture_output=True, text=True, check=True
    )
    finished, megabytes = map(int, done.stdout.split())
    assert finished == runs
    assert len(Store(directory / "store").all()) >= runs
    assert not Store(directory / "store").leases()
    return megabytes


def test_a_long_queue_costs_little_memory(whole: DaskProcesses, tmp_path: Path) -> None:
    assert most_memory(whole, tmp_path, 20) < 500


@pytest.mark.verify
@pytest.mark.timeout(3600)
def test_all_of_a_long_queue_costs_little_memory(whole: DaskProcesses, tmp_path: Path) -> None:
    assert most_memory(whole, tmp_path, 10_000) < 500

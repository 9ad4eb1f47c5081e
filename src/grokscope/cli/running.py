"""What the commands share that train many networks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grokscope.cluster import cluster_at
from grokscope.errors import GrokscopeError, quoted
from grokscope.snapshots import snapshots_from
from grokscope.sweeps.running import Running
from grokscope.sweeps.values import whole_number

FEWER_WITH_REFINE = "With --refine it will be fewer runs: how many shows only while it runs."


@contextmanager
def running_from(
    workers: str,
    engine: str,
    device: str,
    cluster: str | None,
    cluster_config: Path | None,
    hosts: str,
    *,
    weights: bool = False,
    snapshots: str | None = None,
    track: Path | None = None,
) -> Iterator[Running]:
    """How to run, from what the command line says. A cluster that is started for it ends with the context."""
    kept = snapshots_from(snapshots, "--snapshots")
    with cluster_at(cluster, cluster_config, hosts) as place:
        yield Running(
            _worker_count(workers), engine, device, weights=weights, snapshots=kept, cluster=place, track=track
        )


def workers_in_words(running: Running) -> str:
    """Whom an estimate counts on."""
    count = running.processes
    workers = f"{count} worker{'' if count == 1 else 's'}"
    return workers if running.cluster is None else f"{workers} of the cluster, if each is as fast as this machine"


def _worker_count(text: str) -> int | None:
    if text == "auto":
        return None
    if not (count := whole_number(text)):
        raise GrokscopeError(f"--workers = {quoted(text)} is not allowed: must be auto or a number of at least 1")
    return count

"""Sweeps on Dask clusters. The process that starts a sweep is its coordinator, and alone opens the store.

with cluster_at("tcp://login:8786") as cluster:
    sweep.carry_out(Running(cluster=cluster))
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from grokscope.cluster.connection import DaskCluster
from grokscope.cluster.request import ClusterError, ClusterRequest
from grokscope.errors import SpecError

__all__ = ["ClusterError", "ClusterRequest", "DaskCluster", "cluster_at"]


@contextmanager
def cluster_at(
    where: str | None, config: Path | str | None = None, hosts: Sequence[str] | str = ()
) -> Iterator[DaskCluster | None]:
    """The cluster that `--cluster`, `--cluster-config` and `--hosts` name, for as long as the context lasts.

    None stands for this machine. Nothing is started, and no scheduler asked, before there is a run to do.
    """
    if where is None:
        if config is not None or hosts:
            raise SpecError("--cluster-config and --hosts go with --cluster, which says what kind of cluster it is")
        yield None
        return
    with DaskCluster(ClusterRequest.parse(where, config, hosts)) as cluster:
        yield cluster

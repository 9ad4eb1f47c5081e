"""Options and messages that several commands share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from grokscope.cli.commands import help_without_command
from grokscope.cli.completion import offered_runs
from grokscope.images import DATA_DIRECTORY
from grokscope.notes import note
from grokscope.store import DEFAULT_STORE, store_flag

SnapshotsOption = Annotated[
    str | None,
    typer.Option(
        "--snapshots",
        metavar="all|N",
        help="Store the weights of measured steps too: of all, or of N, spread evenly over the curve. A snapshot takes "
        "4 bytes for each weight: 582 KB at p = 97, N = 500, so 29 MB for the 50 measured steps of a default run.",
        rich_help_panel="Running",
        show_default=False,
    ),
]
StoreOption = Annotated[
    Path,
    typer.Option("--store", help="Directory of the stored runs.", show_default=True, envvar="GROKSCOPE_STORE"),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run id, the beginning of one, or a name.",
        show_default=False,
        autocompletion=offered_runs,
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="auto (the fastest that supports the run), native, torch or stacked.",
        rich_help_panel="Running",
    ),
]
DeviceOption = Annotated[
    str, typer.Option("--device", help="cpu, cuda or mps; cuda:1 is the second GPU.", rich_help_panel="Running")
]
WorkersOption = Annotated[
    str,
    typer.Option(
        "--workers", help="Number of processes; auto is one for each core, or one for a GPU.", rich_help_panel="Running"
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="WHERE",
        help="Train on a Dask cluster: tcp://host:8786 (a scheduler that is there), slurm, pbs, lsf or sge (with "
        "--cluster-config), ssh (with --hosts), or local:4 to try it on this machine.",
        rich_help_panel="Running",
    ),
]
ClusterConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster-config",
        metavar="FILE",
        help="A TOML file about the cluster: docs/scaling.md.",
        rich_help_panel="Running",
    ),
]
HostsOption = Annotated[
    str, typer.Option("--hosts", metavar="A,B,…", help="The hosts for --cluster ssh.", rich_help_panel="Running")
]


TrackOption = Annotated[
    str | None,
    typer.Option(
        "--track",
        metavar="TRACKER",
        help="tensorboard: write the curves for TensorBoard while they are measured.",
        rich_help_panel="Running",
        show_default=False,
    ),
]
TrackDirOption = Annotated[
    Path | None,
    typer.Option(
        "--track-dir",
        metavar="DIR",
        help="Where --track writes.",
        rich_help_panel="Running",
        show_default="beside the store, as STORE-tensorboard",
    ),
]


def _set_data_directory(directory: Path | None) -> Path | None:
    """In the environment, where worker processes find it."""
    if directory is not None:
        os.environ[DATA_DIRECTORY] = str(directory.resolve())
    return directory


DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        callback=_set_data_directory,
        help=f"Directory of the IDX files of MNIST, raw or .gz; if left out, {DATA_DIRECTORY} or ./mnist.",
        rich_help_panel="Running",
        show_default=False,
    ),
]

CellsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE",
        help="A table of cells, as `phase-diagram --out cells.csv` writes it, or a directory of such tables: the "
        "outcomes of runs that the store lacks.",
        show_default=False,
    ),
]

__all__ = [
    "DEFAULT_STORE",
    "CellsOption",
    "ClusterConfigOption",
    "ClusterOption",
    "DataDirOption",
    "DeviceOption",
    "EngineOption",
    "HostsOption",
    "RunArgument",
    "SnapshotsOption",
    "StoreOption",
    "TrackDirOption",
    "TrackOption",
    "WorkersOption",
    "help_without_command",
    "note",
    "store_flag",
]

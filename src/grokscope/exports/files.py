"""Tables and labelled arrays as files, whole or not at all."""

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from grokscope.exports.tables import StreamedTable
from grokscope.outputs import whole_file
from grokscope.tables import optional_module

if TYPE_CHECKING:
    import xarray as xr


def write_csv(path: Path, table: StreamedTable) -> None:
    """Some runs after others: all of them need never be in memory."""
    with whole_file(path) as place, place.open("w", encoding="utf-8", newline="") as file:
        print_csv(file, table)


def print_csv(file: TextIO, table: StreamedTable) -> None:
    """A line of names, and a line for each row; what is not there is empty."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.kinds)
    for part in table.parts:
        writer.writerows(zip(*(map(_text, part[name]) for name in table.kinds), strict=True))


def _text(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def write_parquet(path: Path, table: StreamedTable) -> None:
    """Some runs after others, each part a row group; the phase is a dictionary, which pandas calls a category."""
    arrow, parquet = optional_module("pyarrow"), optional_module("pyarrow.parquet")
    types = {bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
    phase = arrow.dictionary(arrow.int32(), arrow.string())
    schema = arrow.schema([(name, phase if name == "phase" else types[kind]) for name, kind in table.kinds.items()])
    with whole_file(path) as place, parquet.ParquetWriter(place, schema) as writer:
        for part in table.parts:
            writer.write_table(arrow.table(part, schema=schema))


def write_netcdf(path: Path, dataset: "xr.Dataset") -> None:
    """A netCDF-4 file, compressed without loss."""
    optional_module("h5py")  # without it h5netcdf reads and does not write
    optional_module("h5netcdf")
    packed: dict[str, Any] = {
        str(name): {"zlib": True, "complevel": 4}
        for name, variable in dataset.variables.items()
        if variable.ndim and np.issubdtype(variable.dtype, np.number)
    }
    with whole_file(path) as place:
        dataset.to_netcdf(place, engine="h5netcdf", encoding=packed)

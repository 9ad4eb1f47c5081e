"""Results for other programs: tables, labelled arrays, and files of both."""

from grokscope.exports.dataset import run_dataset, runs_dataset, sweep_dataset
from grokscope.exports.files import print_csv, write_csv, write_netcdf, write_parquet
from grokscope.exports.tables import TABLES, StreamedTable
from grokscope.exports.views import StoreView, SweepView, open_store

__all__ = [
    "TABLES",
    "StoreView",
    "StreamedTable",
    "SweepView",
    "open_store",
    "print_csv",
    "run_dataset",
    "runs_dataset",
    "sweep_dataset",
    "write_csv",
    "write_netcdf",
    "write_parquet",
]

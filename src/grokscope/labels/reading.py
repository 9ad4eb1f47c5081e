"""Tables of users: CSV, parquet and numpy files, as numbers and labels.

table = read_csv(Path("data.csv"), label="species", ignored=["id"])
table.numbers.shape, table.labels[:3]
"""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from grokscope.arrays import FloatArray
from grokscope.errors import GrokscopeError, did_you_mean, quoted


class TableError(GrokscopeError):
    """A table that cannot be read, or from which nothing can be learned."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows of numbers, each with a label."""

    source: Path
    columns: tuple[str, ...]  # [d]  of the numbers
    numbers: FloatArray  # [n, d]
    labels: npt.NDArray[Any]  # [n]


def read_csv(path: Path, label: str, ignored: Sequence[str] = ()) -> LabelledTable:
    """A file with a line of names and then a line for each row."""

    def columns() -> dict[str, list[str]]:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            names = next(lines, [])
            if len(set(names)) < len(names):
                raise TableError(f"{path} has two columns of the same name: {_twice(names)!r}")
            rows = []
            for row in lines:
                if row and len(row) != len(names):
                    raise TableError(f"{path}, line {lines.line_num}: {len(row)} values for {len(names)} columns")
                if row:
                    rows.append(row)
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

    return _labelled(path, _read(path, columns), label, ignored)


def read_parquet(path: Path, label: str, ignored: Sequence[str] = ()) -> LabelledTable:
    """A file that pandas reads."""
    try:
        import pandas as pd
        import pyarrow  # noqa: F401
    except ImportError:
        raise TableError("reading parquet needs pandas and pyarrow: pip install pandas pyarrow") from None

    def columns() -> dict[str, list[Any]]:
        frame = pd.read_parquet(path)
        return {str(name): frame[name].tolist() for name in frame.columns}

    return _labelled(path, _read(path, columns), label, ignored)


def read_npy(path: Path, labels: Path) -> LabelledTable:
    """An array of numbers [n, …] and another of labels [n]; images and the like are taken pixel by pixel."""
    numbers, given = (_read(each, partial(np.load, each, allow_pickle=False)) for each in (path, labels))
    if numbers.ndim < 2 or given.ndim != 1 or len(numbers) != len(given):
        raise TableError(
            f"{path} must be [n, columns] and {labels} [n]; their shapes are {list(numbers.shape)} and "
            f"{list(given.shape)}"
        )
    if numbers.dtype.kind not in "iufb" or given.dtype.kind not in "iufbUS":
        raise TableError(
            f"{path} must be numbers, and {labels} numbers or texts; they are {numbers.dtype} and {given.dtype}"
        )
    flat = numbers.reshape(len(numbers), -1).astype(np.float64)
    if not np.isfinite(flat).all():
        row = int(np.flatnonzero(~np.isfinite(flat).all(axis=1))[0]) + 1
        raise TableError(f"{path}: row {row} has NaN or infinity among its numbers; fill in or remove such rows")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        row = int(np.flatnonzero(~np.isfinite(given))[0]) + 1
        raise TableError(f"{labels}: row {row} has no label; fill in or remove such rows")
    names = tuple(f"x{place}" for place in range(1, flat.shape[1] + 1))
    return _checked(LabelledTable(path, names, flat, given))


def _read(path: Path, read: Callable[[], Any]) -> Any:
    """What a reader gives; whatever goes wrong in one line."""
    try:
        return read()
    except FileNotFoundError:
        raise TableError(f"there is no file {str(path)!r}") from None
    except TableError:
        raise
    except UnicodeDecodeError:
        raise TableError(f"cannot read {path}: it is not text in UTF-8; save it as such") from None
    except IsADirectoryError:
        raise TableError(f"cannot read {path}: it is a directory") from None
    except (OSError, ValueError, csv.Error, EOFError) as error:  # what pyarrow raises is one of these
        raise TableError(f"cannot read {path}: {error}") from None


def _labelled(path: Path, columns: dict[str, list[Any]], label: str, ignored: Sequence[str]) -> LabelledTable:
    for name in (label, *ignored):
        if name not in columns:
            known = ", ".join(columns) or "no columns"
            raise TableError(f"{path} has no column {name!r}: it has {known}{did_you_mean(name, columns)}")
    used = [name for name in columns if name not in (label, *ignored)]
    if not used:
        raise TableError(f"{path} has no column of numbers beside the label")
    labels = columns[label]
    for row, value in enumerate(labels, start=1):
        if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            raise TableError(f"{path}: row {row} has no label in column {label!r}; fill in or remove such rows")
    numbers = np.array([_numbers(path, name, columns[name]) for name in used]).T  # [n, d]
    return _checked(LabelledTable(path, tuple(used), numbers.reshape(len(labels), len(used)), np.array(labels)))


def _numbers(path: Path, name: str, values: list[Any]) -> list[float]:
    found = []
    for row, value in enumerate(values, start=1):
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TableError(
                f"{path}: column {name!r} has {quoted(value)} in row {row}, which is not a number; leave the column "
                f"out with --ignore {name}, or write its values as numbers"
            ) from None
        if not math.isfinite(number):
            raise TableError(
                f"{path}: column {name!r} has {number} in row {row}; fill in or remove such rows, or leave the column "
                f"out with --ignore {name}"
            )
        found.append(number)
    return found


def _checked(table: LabelledTable) -> LabelledTable:
    rows, classes = len(table.labels), len(np.unique(table.labels))
    if rows < 10:
        raise TableError(f"{table.source} has {rows} rows; finding wrong labels takes at least 10")
    if classes < 2:
        raise TableError(f"{table.source}: all labels are {quoted(str(table.labels[0]))}; there must be two or more")
    if 2 * classes > rows:
        raise TableError(
            f"{table.source} has {classes} different labels for {rows} rows; labels should repeat: is this the column "
            "of the label?"
        )
    return table


def _twice(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)

"""The numbers behind pictures of runs, as columns."""

import math
from collections.abc import Mapping, Sequence

from grokscope.measure import COLUMNS
from grokscope.result import RunResult
from grokscope.tables import Table

_MEASURED = list(COLUMNS)


def curves(results: Mapping[str, RunResult]) -> Table:
    """Every row of every curve, with the name and the id of its network; what a network did not measure is missing."""
    rows = [(name, result.run_id, row) for name, result in results.items() for row in result.curve]
    columns = dict.fromkeys([*_MEASURED, *(column for _, _, row in rows for column in row)])
    return {
        "network": [name for name, _, _ in rows],
        "run_id": [run_id for _, run_id, _ in rows],
        **{column: [row.get(column, math.nan) for _, _, row in rows] for column in columns},
    }


def curves_of_seeds(networks: Mapping[str, Sequence[RunResult]]) -> Table:
    """The same for networks of several seeds, each with its seed in its name if there is more than one."""
    return curves(
        {
            f"{name}, seed {result.spec.training.seed}" if len(seeds) > 1 else name: result
            for name, seeds in networks.items()
            for result in seeds
        }
    )


def neurons(results: Mapping[str, RunResult]) -> Table:
    """The IPR of every neuron at the input and, in deep networks, at the output. Dead neurons have none."""
    rows = []
    for name, result in results.items():
        for end, spectra in (("input", result.neurons), ("output", result.outputs)):
            if spectra is None:
                continue
            scales = [None] * len(spectra.neuron_ipr) if spectra.norm_scale is None else spectra.norm_scale.tolist()
            values = spectra.neuron_ipr.tolist()
            for neuron, (ipr, dead, scale) in enumerate(zip(values, spectra.dead.tolist(), scales, strict=True)):
                rows.append((name, result.run_id, end, neuron, None if dead else ipr, scale))
    names = ("network", "run_id", "end", "neuron", "ipr", "norm_scale")
    return from_rows(names, rows)


def from_rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Columns of these names.

    >>> from_rows(("a", "b"), [(1, 2), (3, 4)])
    {'a': [1, 3], 'b': [2, 4]}
    """
    return {name: [row[column] for row in rows] for column, name in enumerate(names)}


def stacked(**tables: Table) -> Table:
    """Tables one below the other: a first column names the table, and columns that a table lacks are empty."""
    columns = list(dict.fromkeys(column for table in tables.values() for column in table))
    lengths = {name: len(next(iter(table.values()), ())) for name, table in tables.items()}
    return {
        "part": [name for name, length in lengths.items() for _ in range(length)],
        **{
            column: [value for name, table in tables.items() for value in table.get(column, [None] * lengths[name])]
            for column in columns
        },
    }


def rounded(table: Table) -> Table:
    """Rounded to six digits, which is as precise as measurements of float32 networks are."""
    return {name: [_rounded(value) for value in column] for name, column in table.items()}


def _rounded(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) and math.isfinite(value) else value

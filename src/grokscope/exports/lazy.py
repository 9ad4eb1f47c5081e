"""Arrays whose numbers are read from the files of runs when they are asked for. Imported only if xarray is there."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from xarray.backends import BackendArray
from xarray.core import indexing

from grokscope.arrays import FloatArray

ReadRun = Callable[[str], FloatArray]  # some numbers of a run, by its id


class CellArray(BackendArray):  # type: ignore[misc]
    """[cells …, length] some numbers of the run in each cell; NaN in a cell without a run."""

    def __init__(self, run_ids: npt.NDArray[Any], length: int, read: ReadRun) -> None:
        self._run_ids, self._read_run = run_ids, read  # an empty id: no run
        self.shape, self.dtype = (*run_ids.shape, length), np.dtype(np.float64)

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        """What a number, a slice or an array for each dimension select: only the runs of those cells are read."""
        run_ids = self._run_ids
        for axis in reversed(range(run_ids.ndim)):  # from the last: a number removes its axis
            run_ids = np.asarray(run_ids[(slice(None),) * axis + (key[axis],)])
        values = np.full((*run_ids.shape, self.shape[-1]), np.nan)
        for place, run_id in np.ndenumerate(run_ids):
            if run_id:
                values[place] = self._read_run(str(run_id))
        return values[..., key[-1]]


def lazy(array: CellArray) -> Any:
    """The array as xarray takes it: slices of it are still not read."""
    return indexing.LazilyIndexedArray(array)

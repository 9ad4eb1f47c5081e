"""Weights as every engine and the store see them: float32 numpy arrays by name."""

import numpy as np
import numpy.typing as npt

FloatVectors = npt.NDArray[np.float32]
Weights = dict[str, FloatVectors]

NORM_EPSILON = 1e-5  # added to the variance by Batch- and LayerNorm


def is_statistic(name: str) -> bool:
    """Whether an array is a running statistic of BatchNorm, which is averaged and not trained."""
    return name.endswith(("_mean", "_variance"))


def idle_norm(prefix: str, width: int, *, batch: bool = False) -> Weights:
    """The arrays of a normalisation layer that does nothing yet.

    >>> list(idle_norm("norm", 8, batch=True))
    ['norm_scale', 'norm_shift', 'norm_mean', 'norm_variance']
    """
    arrays = {f"{prefix}_scale": np.ones(width, np.float32), f"{prefix}_shift": np.zeros(width, np.float32)}
    if batch:
        arrays |= {f"{prefix}_mean": np.zeros(width, np.float32), f"{prefix}_variance": np.ones(width, np.float32)}
    return arrays

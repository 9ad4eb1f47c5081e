"""The files of a store: the arrays of runs and checkpoints, as safetensors. A file is written whole or not at all."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from grokscope.engines import TrainingState
from grokscope.measure import COLUMNS, WHOLE_NUMBERS, Row
from grokscope.result import Checkpoint, RunResult

Arrays = dict[str, npt.NDArray[Any]]


def array_bytes(result: RunResult, *, weights: bool) -> bytes:
    """The arrays of a run as the content of a safetensors file: curve.*, neurons.*, outputs.* and weights.*"""
    arrays = curve_arrays(result.curve)
    for name, spectra in (("neurons", result.neurons), ("outputs", result.outputs)):
        if spectra is not None:
            arrays |= _named(name, {key: array for key, array in vars(spectra).items() if array is not None})
    if weights and result.weights is not None:
        arrays |= _named("weights", result.weights)
    return safetensors.numpy.save(arrays, metadata={"run_id": result.run_id})


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """An unfinished run as the content of a safetensors file: curve.*, weights.* and moments.*"""
    state = checkpoint.state
    arrays = curve_arrays(checkpoint.curve) | _named("weights", state.weights) | _named("moments", state.moments)
    arrays["progress"] = np.array([state.step, checkpoint.seconds], np.float64)
    arrays["engine"] = np.frombuffer(checkpoint.engine.encode(), np.uint8)
    return safetensors.numpy.save(arrays)


def checkpoint_from(arrays: Arrays) -> Checkpoint:
    """The inverse of `checkpoint_bytes`."""
    step, seconds = arrays["progress"].tolist()
    state = TrainingState(int(step), group(arrays, "weights"), group(arrays, "moments"))
    return Checkpoint(state, curve_from(arrays), seconds, arrays["engine"].tobytes().decode())


def curve_arrays(curve: tuple[Row, ...]) -> Arrays:
    """A curve by columns."""
    return {
        f"curve.{column}": np.array([row[column] for row in curve], np.int64 if column in WHOLE_NUMBERS else np.float64)
        for column in (curve[0] if curve else ())
    }


def curve_from(arrays: Arrays) -> tuple[Row, ...]:
    """What `curve_arrays` was given. A column that did not exist when the run was stored is missing: NaN."""
    columns = {name: values.tolist() for name, values in group(arrays, "curve").items()}
    steps = columns.get("step", [])
    names = [*COLUMNS, *(name for name in columns if name not in COLUMNS)]
    filled = [columns.get(name, [float("nan")] * len(steps)) for name in names]
    return tuple(Row(dict(zip(names, row, strict=True))) for row in zip(*filled, strict=True))


def group(arrays: Arrays, name: str) -> Arrays:
    """The arrays of one group, without the name of the group."""
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}


def _named(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    return {f"{name}.{key}": np.ascontiguousarray(array) for key, array in arrays.items()}


def write_atomically(path: Path, content: bytes) -> None:
    """Write under another name, then rename: after a crash `path` is whole or absent. A stray file does no harm."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)

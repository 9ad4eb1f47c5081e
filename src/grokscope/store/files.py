"""The files of a store: the arrays of runs and checkpoints, as safetensors. A file is written whole or not at all."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from grokscope.engines import TrainingState
from grokscope.measure import Measurement
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


def curve_arrays(curve: tuple[Measurement, ...]) -> Arrays:
    """A curve as one array for each column."""
    return {
        f"curve.{field.name}": np.array(
            [getattr(row, field.name) for row in curve], np.int64 if field.type is int else np.float64
        )
        for field in fields(Measurement)
        if curve
    }


def curve_from(arrays: Arrays) -> tuple[Measurement, ...]:
    """The inverse of `curve_arrays`."""
    columns = group(arrays, "curve")
    rows = zip(*(columns[field.name].tolist() for field in fields(Measurement) if columns), strict=True)
    return tuple(Measurement(*row) for row in rows)


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

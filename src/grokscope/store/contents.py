"""What is in the files of a store: arrays, who they belong to, and a checksum over all of it, as safetensors.

>>> content, _ = pack({"curve.step": np.array([1, 2])}, "3f0c9a5be1d27f48", {"engine": "native"})
>>> unpack(content).record
{'engine': 'native'}
>>> unpack(content.replace(b"native", b"nativf"))
Traceback (most recent call last):
    ...
grokscope.store.contents.Damaged: its content does not match its checksum
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from grokscope.engines import TrainingState, initial_state
from grokscope.measure import COLUMNS, IPR_BINS, WHOLE_NUMBERS, NeuronSpectra, Row
from grokscope.result import Checkpoint, RunResult
from grokscope.spec import RunSpec

Arrays = dict[str, npt.NDArray[Any]]


class Damaged(Exception):  # noqa: N818 (it says what is the matter with a file; the store makes an error of it)
    """A file that is not what was written."""


@dataclass(frozen=True)
class Content:
    """A file that was read and is whole."""

    run_id: str | None
    record: dict[str, Any] | None  # what was written beside the arrays; None in files of older releases
    checksum: str | None  # None in files of older releases
    arrays: Arrays


class Packed(NamedTuple):
    """A file that is to be written."""

    content: bytes
    checksum: str


def pack(arrays: Arrays, run_id: str, record: Mapping[str, Any]) -> Packed:
    """A file."""
    metadata = {"run_id": run_id, "record": json.dumps(record), "order": json.dumps(list(arrays))}
    checksum = _checksum(metadata, arrays)
    return Packed(safetensors.numpy.save(arrays, metadata | {"checksum": checksum}), checksum)


def unpack(content: bytes) -> Content:
    """The inverse of `pack`, also for files of older releases."""
    try:
        loaded = safetensors.numpy.load(content)  # in any order
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = header.get("__metadata__") or {}
        order = json.loads(metadata.get("order", "null"))  # which a sum over arrays depends on, in its last bits
        names = sorted(loaded, key=lambda name: header[name]["data_offsets"]) if order is None else order
        if set(names) != set(loaded):
            raise Damaged("it has other arrays than were written")
        arrays = {name: loaded[name] for name in names}
        checksum = metadata.pop("checksum", None)
        if checksum is not None and checksum != _checksum(metadata, arrays):
            raise Damaged("its content does not match its checksum")
        record = json.loads(metadata["record"]) if checksum is not None else None
    except (Damaged, MemoryError):
        raise
    except Exception as error:  # of the bytes of a damaged file anything may come
        raise Damaged(f"it is not a safetensors file of grokscope ({_first_line(error)})") from None
    return Content(metadata.get("run_id"), record, checksum, arrays)


def _checksum(metadata: Mapping[str, str], arrays: Arrays) -> str:
    digest = hashlib.blake2b(json.dumps(metadata, sort_keys=True).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    return (f"{error}".splitlines() or [type(error).__name__])[0][:100]


# ---- runs ----------------------------------------------------------------------------------------------------------


def pack_run(result: RunResult, record: Mapping[str, Any], *, weights: bool) -> Packed:
    """The file of a run: curve.*, history.*, neurons.*, outputs.*, weights.* and snapshots.STEP.*"""
    arrays = _curve_arrays(result.curve) | _history_arrays(result.ipr_history, len(result.curve))
    for name, spectra in (("neurons", result.neurons), ("outputs", result.outputs)):
        if spectra is not None:
            arrays |= _named(name, {key: array for key, array in vars(spectra).items() if array is not None})
    if weights and result.weights is not None:
        arrays |= _named("weights", result.weights)
    return pack(arrays | _snapshot_arrays(result.weights_at), result.run_id, record)


@dataclass(frozen=True)
class RunArrays:
    """What the file of a run adds to its record."""

    curve: tuple[Row, ...]
    neurons: NeuronSpectra | None
    outputs: NeuronSpectra | None
    weights: Arrays | None
    ipr_history: npt.NDArray[np.unsignedinteger] | None
    weights_at: dict[int, Arrays]


def run_from(content: Content, spec: RunSpec) -> RunArrays:
    """The arrays of a run, with their names, shapes and types checked."""
    groups = _groups(content.arrays, ("curve", "history", "neurons", "outputs", "weights", "snapshots"))
    weights = {name: array.astype(np.float32, copy=False) for name, array in groups["weights"].items()}
    if weights and content.checksum is None and not spec.unresolved:
        check_weights(weights, spec)
    curve = _curve_from(groups["curve"])
    return RunArrays(
        curve,
        _spectra_from("neurons", groups["neurons"]),
        _spectra_from("outputs", groups["outputs"]),
        weights or None,
        _history_from(groups["history"], len(curve)),
        _snapshots_from(groups["snapshots"], curve, weights),
    )


def check_weights(weights: Mapping[str, npt.NDArray[Any]], spec: RunSpec) -> None:
    """Whether they can be the weights of this run's network: raises Damaged."""
    _check_like("weights", dict(weights), initial_state(spec.resolved()).weights)


def _spectra_from(name: str, arrays: Arrays) -> NeuronSpectra | None:
    if not arrays:
        return None
    kinds = {key: array.dtype.kind for key, array in arrays.items()}
    expected = {"ipr": "f", "gini": "f", "frequency": "i"}
    shapes = {arrays[key].shape for key in expected if key in arrays}
    scale = arrays.get("norm_scale")
    right = (
        kinds == expected | ({} if scale is None else {"norm_scale": "f"})
        and len(shapes) == 1
        and len(shape := shapes.pop()) == 2
        and (scale is None or scale.shape == shape[1:])
    )
    if not right:
        raise Damaged(f"its {name} have other arrays, shapes or types than neurons have")
    return NeuronSpectra(**arrays)


def _curve_arrays(curve: tuple[Row, ...]) -> Arrays:
    """A curve by columns."""
    return {
        f"curve.{column}": np.array([row[column] for row in curve], np.int64 if column in WHOLE_NUMBERS else np.float64)
        for column in (curve[0] if curve else ())
    }


def _curve_from(arrays: Arrays) -> tuple[Row, ...]:
    """What `_curve_arrays` was given. A column that did not exist when the run was stored is missing: NaN."""
    lengths = {array.shape for array in arrays.values()}
    kinds = {name: "i" if name in WHOLE_NUMBERS else "f" for name in arrays}
    if arrays and ("step" not in arrays or len(lengths) != 1 or len(lengths.pop()) != 1):
        raise Damaged("the columns of its curve are not equally long")
    if {name: array.dtype.kind for name, array in arrays.items()} != kinds:
        raise Damaged("the columns of its curve have other types than curves have")
    columns = {name: values.tolist() for name, values in arrays.items()}
    steps = columns.get("step", [])
    names = [*COLUMNS, *(name for name in columns if name not in COLUMNS)]
    filled = [columns.get(name, [float("nan")] * len(steps)) for name in names]
    return tuple(Row(dict(zip(names, row, strict=True))) for row in zip(*filled, strict=True))


def _history_arrays(history: npt.NDArray[np.unsignedinteger] | None, rows: int) -> Arrays:
    """Nothing for a result whose curve was replaced: the history was that of another one."""
    return _named("history", {"ipr": history}) if history is not None and len(history) == rows else {}


def _history_from(arrays: Arrays, rows: int) -> npt.NDArray[np.unsignedinteger] | None:
    """The inverse; None for runs of older releases."""
    if not arrays:
        return None
    history = arrays.get("ipr")
    if history is None or len(arrays) > 1 or history.shape != (rows, IPR_BINS) or history.dtype.kind != "u":
        raise Damaged("the history of its IPR has another shape or type than its curve asks for")
    return history


def _snapshot_arrays(weights_at: Mapping[int, Mapping[str, npt.NDArray[Any]]]) -> Arrays:
    return {
        name: array
        for step, weights in weights_at.items()
        for name, array in _named(f"snapshots.{step}", weights).items()
    }


def _snapshots_from(arrays: Arrays, curve: tuple[Row, ...], like: Mapping[str, npt.NDArray[Any]]) -> dict[int, Arrays]:
    """The inverse, by step; each is of a step of the curve, and like these weights, or if there are none, the first."""
    found: dict[int, Arrays] = {}
    measured = {str(row.step): row.step for row in curve}
    for key, array in arrays.items():
        step, _, name = key.partition(".")
        if step not in measured or not name:
            raise Damaged(f"it has a snapshot {key[:40]!r}, and no such step in its curve")
        found.setdefault(measured[step], {})[name] = array
    for weights in found.values():
        _check_like("snapshots", weights, like or next(iter(found.values())))
    return dict(sorted(found.items()))


def snapshots_in(head: bytes) -> int:
    """How many snapshots a file has, from the names in its head; 0 if it cannot be read."""
    try:
        names = [name.split(".") for name in json.loads(head)]
    except Exception:  # of the bytes of a damaged file anything may come
        return 0
    return len({name[1] for name in names if name[0] == "snapshots" and len(name) > 2})


# ---- checkpoints ---------------------------------------------------------------------------------------------------


def pack_checkpoint(run_id: str, checkpoint: Checkpoint) -> Packed:
    """The file of an unfinished run: curve.*, history.*, weights.*, moments.* and snapshots.*"""
    state = checkpoint.state
    arrays = _curve_arrays(checkpoint.curve) | _history_arrays(checkpoint.ipr_history, len(checkpoint.curve))
    arrays |= _named("weights", state.weights) | _named("moments", state.moments)
    arrays |= _snapshot_arrays(checkpoint.weights_at)
    record = {"step": state.step, "seconds": checkpoint.seconds, "engine": checkpoint.engine}
    return pack(arrays, run_id, record)


def checkpoint_from(content: Content, spec: RunSpec) -> Checkpoint:
    """The inverse of `pack_checkpoint`. What cannot be the state of this run on its way is damaged."""
    if content.record is None:
        raise Damaged("an older release wrote it, without a checksum")
    groups = _groups(content.arrays, ("curve", "history", "weights", "moments", "snapshots"))
    state = TrainingState(content.record["step"], groups["weights"], groups["moments"])
    start = initial_state(spec.resolved())
    _check_like("weights", state.weights, start.weights)
    _check_like("moments", state.moments, start.moments)
    if not 0 < state.step <= spec.training.steps:
        raise Damaged(f"it is at step {state.step} of {spec.training.steps}")
    curve = _curve_from(groups["curve"])
    if [row.step for row in curve] != [step for step in spec.training.measured_steps() if step <= state.step]:
        raise Damaged("its curve has other steps than the run")
    history = _history_from(groups["history"], len(curve))
    weights_at = _snapshots_from(groups["snapshots"], curve, start.weights)
    return Checkpoint(state, curve, content.record["seconds"], content.record["engine"], history, weights_at)


# ---- sweeps and remarks --------------------------------------------------------------------------------------------


def sweep_file_name(name: str) -> str:
    """A hash of the sweep's name, which may be longer than the name of a file, or differ only in its capitals."""
    return f"{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}.json"


def document_bytes(kind: str, document: Mapping[str, Any]) -> bytes:
    """A file of JSON with a checksum: of a sweep, its definition and its runs; of remarks, what is said of a run."""
    content = json.dumps(document)
    return json.dumps({kind: content, "checksum": _text_checksum(content)}).encode()


def document_from(kind: str, content: bytes) -> dict[str, Any]:
    """The inverse of `document_bytes`."""
    try:
        file = json.loads(content)
        if file["checksum"] != _text_checksum(file[kind]):
            raise Damaged("its content does not match its checksum")
        document: dict[str, Any] = json.loads(file[kind])
    except Damaged:
        raise
    except Exception as error:  # of the bytes of a damaged file anything may come
        raise Damaged(f"it is not a file of {kind} ({_first_line(error)})") from None
    return document


def _text_checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# ---- arrays by name ------------------------------------------------------------------------------------------------


def _groups(arrays: Arrays, names: tuple[str, ...]) -> dict[str, Arrays]:
    """The arrays of each group, without the name of the group."""
    groups: dict[str, Arrays] = {name: {} for name in names}
    for key, array in arrays.items():
        name, _, rest = key.partition(".")
        if name not in groups or not rest:
            raise Damaged(f"it has an array {key[:40]!r}")
        groups[name][rest] = array
    return groups


def _check_like(what: str, arrays: Arrays, expected: Mapping[str, npt.NDArray[Any]]) -> None:
    shapes, wanted = ({name: (a.shape, a.dtype) for name, a in some.items()} for some in (arrays, expected))
    if shapes != wanted:
        raise Damaged(f"its {what} have other names, shapes or types than the network's")


def _named(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    return {f"{name}.{key}": np.ascontiguousarray(array) for key, array in arrays.items()}

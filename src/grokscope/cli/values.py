"""Converting between arrays and what a person or a program reads and writes."""

import json
import math
from collections.abc import Iterable

import typer

from grokscope.errors import GrokscopeError, SpecError
from grokscope.result import RunResult
from grokscope.tasks import Inputs


def places_from_text(option: str, text: str, count: int, what: str, at_most: int) -> list[int]:
    """Parse a list of places, and drop repeated ones. `what` names the things in error messages.

    >>> places_from_text("--neurons", "7,0,7", 500, "neurons", at_most=6)
    [7, 0]
    """
    try:
        places = list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise GrokscopeError(f"{option} = {text!r} is not allowed: must be whole numbers such as 0,7") from None
    if not all(0 <= place < count for place in places):
        raise GrokscopeError(f"{option} = {text!r} is not allowed: the {what} are 0 … {count - 1}")
    if len(places) > at_most:
        raise GrokscopeError(f"{option} = {text!r} is not allowed: name at most {at_most}")
    return places


def number(value: float) -> float | None:
    """The value with the digits of a float32; None for NaN, which JSON does not have.

    >>> number(1 / 3), number(500), number(float("nan"))
    (0.3333333, 500, None)
    """
    if isinstance(value, int):
        return value
    return None if math.isnan(value) else float(f"{value:.7g}")


def numbers(values: Iterable[float]) -> list[float | None]:
    """`number` of each value."""
    return [number(value) for value in values]


def print_json(content: dict[str, object]) -> None:
    """Print one object. Standard output must hold nothing else."""
    typer.echo(json.dumps(content, allow_nan=False))


def network_name(result: RunResult) -> str:
    """The name by which commands find this network."""
    spec = result.spec
    is_analytic = result.engine == "analytic"
    return f"analytic:{spec.task.modulus}:{spec.model.width}" if is_analytic else result.run_id


def file_name(result: RunResult, command: str) -> str:
    """The default name of a picture, without its ending."""
    return f"{network_name(result).replace(':', '-')}-{command}"


def input_columns(inputs: Inputs) -> dict[str, list[object]]:
    """The inputs of some examples as columns of a table: m and n of pairs, x1, x2, … of others.

    >>> import numpy as np
    >>> input_columns(np.array([[3, 4], [5, 6]]))
    {'m': [3, 5], 'n': [4, 6]}
    """
    names = ("m", "n") if inputs.shape[1] == 2 else tuple(f"x{place}" for place in range(1, inputs.shape[1] + 1))
    return {name: inputs[:, place].tolist() for place, name in enumerate(names)}


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """What `--set` says, by field.

    >>> assignments(["task.modulus=31", "model.width = 200"])
    {'task.modulus': '31', 'model.width': '200'}
    """
    fields: dict[str, str] = {}
    for text in texts:
        path, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise SpecError(f"--set = {text!r} is not allowed: must be a field and its value, such as task.modulus=31")
        if path in fields:
            raise SpecError(f"--set names {path} twice")
        fields[path] = value
    return fields

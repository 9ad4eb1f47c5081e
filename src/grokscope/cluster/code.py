"""A user's own files travel with the work: packed here by the coordinator, written down there by the worker.

>>> Traveller().pack(RunSpec())
{}
"""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grokscope.cluster.parcels import Code
from grokscope.extension import ExtensionError, Reference, is_reference
from grokscope.spec import FAMILIES, RunSpec


class Traveller:
    """Reads a user's files once: who edits a file during a sweep does not change the sweep."""

    def __init__(self) -> None:
        self._read: dict[str, dict[str, bytes]] = {}

    def pack(self, spec: RunSpec) -> Code:
        """The files that a spec names, each with those beside it that it imports. Installed modules do not travel."""
        places = {Reference.parse(kind).place for kind in spec.code()}
        return {place: self._files(place) for place in sorted(places) if place.endswith(".py")}

    def _files(self, place: str) -> dict[str, bytes]:
        if place not in self._read:
            self._read[place] = dict(_with_neighbours(Path(place).expanduser()))
        return self._read[place]


def _with_neighbours(path: Path, seen: frozenset[str] = frozenset()) -> Iterator[tuple[str, bytes]]:
    try:
        source = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ExtensionError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    yield path.name, source
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # importing it says more
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    seen = seen | {path.name}
    for name in sorted(f"{module.partition('.')[0]}.py" for module in modules):
        if name not in seen and (path.parent / name).is_file():
            yield from _with_neighbours(path.parent / name, seen)


def unpack_code(code: Code, directory: Path) -> dict[str, str]:
    """Write files down, each set of them in a directory of its own; where they are now, by the places of before."""
    return {place: str(_written(files, directory) / Path(place).name) for place, files in code.items()}


def _written(files: Any, directory: Path) -> Path:
    digest = hashlib.sha256(b"".join(name.encode() + b"\0" + source for name, source in sorted(files.items())))
    target = directory / digest.hexdigest()[:16]
    target.mkdir(parents=True, exist_ok=True)
    for name, source in files.items():
        file = target / Path(name).name  # never outside
        if not file.exists() or file.read_bytes() != source:
            file.write_bytes(source)
    return target


def moved(content: dict[str, Any], places: dict[str, str]) -> dict[str, Any]:
    """The spec with its own code where it is now. Its id stays the same: that counts the source, not the place."""

    def kind(text: Any) -> Any:
        if not isinstance(text, str) or not is_reference(text):
            return text
        reference = Reference.parse(text)
        return str(reference._replace(place=places.get(reference.place, reference.place)))

    changed = {name: dict(section) for name, section in content.items()}
    for name in FAMILIES:
        changed[name]["kind"] = kind(changed[name].get("kind"))
    changed["task"]["corruption_kind"] = kind(changed["task"].get("corruption_kind"))
    changed["training"]["measurements"] = [kind(text) for text in changed["training"].get("measurements", ())]
    return changed

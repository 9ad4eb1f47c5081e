"""A user's own code travels with the work: packed here by the coordinator, written down and imported there by a worker.

    >>> Traveller().pack(RunSpec())
    {}

What travels is the source that a spec names, and all of the user's own source that this imports: files and packages
that lie beside it. What is installed does not travel.
"""

import ast
import hashlib
import importlib
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from grokscope.cluster.parcels import Code
from grokscope.extension import ExtensionError, Reference, is_loaded_file, is_reference, source_file
from grokscope.spec import FAMILIES, RunSpec

MOST_BYTES = 1_000_000  # of source, which goes with every order

Files = Mapping[str, bytes]  # by their path, as it is beneath the directory that they are imported from


class Traveller:
    """Reads a user's files once: who edits a file during a sweep does not change the sweep."""

    def __init__(self) -> None:
        self._read: dict[str, Files] = {}

    def pack(self, spec: RunSpec) -> Code:
        """The source that a spec names, each with what it imports."""
        places = sorted({Reference.parse(kind).place for kind in spec.code()})
        return {place: files for place in places if (files := self._files(place))}

    def _files(self, place: str) -> Files:
        if place not in self._read:
            self._read[place] = _own_source(place)
        return self._read[place]


def _own_source(place: str) -> Files:
    """All that has to be there so that a file, or a module, can be imported; nothing if it is installed."""
    file = Path(os.path.abspath(source_file(place)))  # noqa: PTH100 (as imports do it: links are not followed)
    if place.endswith(".py"):
        root, waiting = file.parent, [file]
    elif _is_installed(file):
        return {}
    else:
        above = len(place.split(".")) - (file.name != "__init__.py")
        root = file.parents[above]
        waiting = _beside(place.partition(".")[0], root)
    files: dict[str, bytes] = {}
    while waiting:
        path = waiting.pop()
        if (name := path.relative_to(root).as_posix()) not in files:
            files[name] = _bytes_of(path)
            waiting += [own for module in sorted(_imported(files[name])) for own in _beside(module, root)]
    if (size := sum(map(len, files.values()))) > MOST_BYTES:
        raise ExtensionError(
            f"{place} and what it imports from {root} are {size / 1e6:.1f} MB of source, too much to travel to the "
            "workers of a cluster: make a package of it and install that on them"
        )
    return files


def _is_installed(file: Path) -> bool:
    return bool({"site-packages", "dist-packages"} & set(file.parts)) or file.is_relative_to(Path(ast.__file__).parent)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ExtensionError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _imported(source: bytes) -> set[str]:
    """The modules and packages that are imported anywhere in a file, without what follows the first dot.

    >>> sorted(_imported(b"import os.path, numpy as np\\nfrom helpers.sums import total\\nfrom . import near"))
    ['helpers', 'numpy', 'os']
    """
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return set()  # importing it says more
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    # A relative import stays within a package, which travels as a whole.
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in names} - {"grokscope"}


def _beside(module: str, root: Path) -> list[Path]:
    """The source of a module, or of all of a package, if that is what importing it from this directory finds."""
    found = PathFinder.find_spec(module, [str(root), *sys.path])
    if found is None:
        return []
    package = root / module
    if found.origin is None:  # a directory without __init__.py
        own = str(package) in list(found.submodule_search_locations or ())
        return sorted(package.rglob("*.py")) if own else []
    origin = Path(found.origin)
    if origin == package / "__init__.py":
        return sorted(package.rglob("*.py"))
    if origin.parent not in (root, package):
        return []
    if origin.suffix != ".py":
        raise ExtensionError(
            f"{origin} is not written in Python, so it cannot travel to the workers of a cluster: install it on them"
        )
    return [origin]


def unpack_code(code: Code, directory: Path) -> dict[str, str]:
    """Write source down and let it be imported from now on; where its files are, by the places of before."""
    roots = {place: _written(files, directory) for place, files in code.items()}
    _forget_all_but(set(roots.values()), directory)
    for path in [str(root) for place, root in roots.items() if not place.endswith(".py")]:
        if path in sys.path:
            sys.path.remove(path)
        sys.path.insert(0, path)  # before what other orders brought
    return {place: str(root / Path(place).name) for place, root in roots.items() if place.endswith(".py")}


def _written(files: Files, directory: Path) -> Path:
    """In a directory of its own, named by what is in it."""
    digest = hashlib.sha256(b"".join(f"{name}\0{len(files[name])}\0".encode() + files[name] for name in sorted(files)))
    root = directory / digest.hexdigest()[:16]
    for name, source in files.items():
        file = (root / name).resolve()
        if not file.is_relative_to(root.resolve()):
            raise ExtensionError(f"{name} lies outside of the directory that it is to be written to")
        if not file.exists() or file.read_bytes() != source:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(source)
            importlib.invalidate_caches()
    return root


def _forget_all_but(roots: set[Path], directory: Path) -> None:
    """Two users, or two versions, may have a `helpers.py` each: what came with other code is imported afresh."""
    inside, kept = f"{directory}{os.sep}", tuple(f"{root}{os.sep}" for root in roots)
    for name, module in list(sys.modules.items()):  # thousands, before every order: so as text, not as paths
        places = (getattr(module, "__file__", None), *getattr(module, "__path__", ()))
        came = [f"{place}{os.sep}" for place in places if place and str(place).startswith(inside)]
        if came and not came[0].startswith(kept) and not is_loaded_file(name):
            with suppress(KeyError):
                del sys.modules[name]


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

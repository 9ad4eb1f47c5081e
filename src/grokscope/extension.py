"""Your own code, by name: `my_rules.py:Parity`, or `package.module:Parity`.

    >>> reference = Reference.parse("my_rules.py:Parity")
    >>> reference.place, reference.name
    ('my_rules.py', 'Parity')

Code is known by the hash of its source file. The hash is part of the identity of every run that uses the code, and is
compared before the code is used again: an edited file is another rule. Nothing here imports anything but when it is
asked to load.
"""

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import types
from pathlib import Path
from typing import NamedTuple, TypeVar

from grokscope.errors import GrokscopeError, did_you_mean

T = TypeVar("T")
_MODULES = "grokscope_extension_"  # with the hash: how a file that was loaded by its path is called


class ExtensionError(GrokscopeError):
    """Code of the user's that cannot be found or imported, or that does not do what was promised."""


class Reference(NamedTuple):
    """A class in a file, or in an importable module."""

    place: str  # my_rules.py, or package.module
    name: str

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Read `file.py:Class` or `package.module:Class`."""
        place, _, name = text.rpartition(":")
        if not place or not name.isidentifier():
            raise ExtensionError(f"{text!r} names no code: write file.py:Class or package.module:Class")
        return cls(place, name)

    def __str__(self) -> str:
        return f"{self.place}:{self.name}"


def is_reference(kind: str) -> bool:
    """Whether a kind names code, and not a built-in.

    >>> is_reference("my_rules.py:Parity"), is_reference("mlp")
    (True, False)
    """
    return ":" in kind


def source_hash(place: str) -> str:
    """What the source of a file or module is known by: 16 hexadecimal digits."""
    return hashlib.sha256(_source(place)).hexdigest()[:16]


def load_module(place: str) -> types.ModuleType:
    """Import a file by its path, or a module by its name. A file is imported once for as long as it stays the same."""
    if not place.endswith(".py"):
        return _import(place)
    path, source = Path(place).expanduser(), _source(place)
    name = _MODULES + hashlib.sha256(str(path.resolve()).encode() + source).hexdigest()[:16]
    if name in sys.modules:
        return sys.modules[name]
    module = types.ModuleType(name)
    module.__file__ = str(path.resolve())
    module.__dict__["__grokscope_place__"] = place
    sys.modules[name] = module  # dataclasses and pydantic look their module up while it is made
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import files beside it
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        raise ExtensionError(f"{place} does not import: {_in_one_line(error, path)}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def load_class(text: str, base: type[T]) -> type[T]:
    """The class that a reference names, which must be a subclass of `base`."""
    reference = Reference.parse(text)
    found = getattr(load_module(reference.place), reference.name, None)
    if found is None:
        names = [
            name
            for name, value in vars(load_module(reference.place)).items()
            if isinstance(value, type) and issubclass(value, base)
        ]
        raise ExtensionError(
            f"{reference.place} has no class {reference.name}{did_you_mean(reference.name, names)}"
            if names
            else f"{reference.place} has no class {reference.name}, and no other subclass of {public_name(base)}"
        )
    if not (isinstance(found, type) and issubclass(found, base)):
        what = f"a subclass of {found.__base__.__name__}" if isinstance(found, type) else type(found).__name__
        raise ExtensionError(f"{reference} must be a subclass of {public_name(base)}, and is {what}")
    if inspect.isabstract(found):
        missing = ", ".join(f"{name}()" for name in sorted(found.__abstractmethods__))
        raise ExtensionError(f"{reference} lacks {missing}, which every subclass of {public_name(base)} has")
    return found


def reference_to(cls: type) -> str:
    """How a class is named so that another process can find it."""
    module = sys.modules.get(cls.__module__)
    if place := getattr(module, "__grokscope_place__", None):
        return f"{place}:{cls.__name__}"
    file = getattr(module, "__file__", None)
    if file is None or "<locals>" in cls.__qualname__:
        raise ExtensionError(
            f"the class {cls.__name__} is in no file, so that no other process can find it: "
            "save it to a file such as my_rules.py and import it from there"
        )
    # A module that is installed is found by its name from anywhere; one beside a script only by its path.
    if cls.__module__ != "__main__" and ("site-packages" in file or "." in cls.__module__):
        return f"{cls.__module__}:{cls.__name__}"
    return f"{_short(Path(file))}:{cls.__name__}"


def public_name(base: type) -> str:
    """How users write one of our classes.

    >>> public_name(Reference)
    'grokscope.Reference'
    """
    return f"grokscope.{base.__name__}"


def _short(path: Path) -> str:
    """Relative to the working directory if it lies there: then the name is the same on another machine."""
    resolved = path.resolve()
    here = Path.cwd().resolve()
    return str(resolved.relative_to(here)) if resolved.is_relative_to(here) else str(resolved)


def _source(place: str) -> bytes:
    path = Path(place).expanduser() if place.endswith(".py") else _file_of(place)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ExtensionError(f"there is no file {place} in {os.curdir if path.is_absolute() else Path.cwd()}") from None
    except OSError as error:
        raise ExtensionError(f"cannot read {place}: {error.strerror}") from None


def _file_of(module: str) -> Path:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise ExtensionError(f"there is no module {module}: {error}") from None
    if found is None or not found.origin or not found.origin.endswith(".py"):
        raise ExtensionError(f"there is no module {module} written in Python; a file is named with its .py")
    return Path(found.origin)


def _import(module: str) -> types.ModuleType:
    path = _file_of(module)
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise ExtensionError(f"{module} does not import: {_in_one_line(error, path)}") from error


def _in_one_line(error: Exception, path: Path) -> str:
    """What went wrong, and in which line of the file."""
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    traceback = error.__traceback__
    while traceback is not None:
        if Path(traceback.tb_frame.f_code.co_filename) == path:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" + (f" (line {line})" if line else "")

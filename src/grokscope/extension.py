"""Your own code, by name: `my_rules.py:Parity`, or `package.module:Parity`.

    >>> Reference.parse("my_rules.py:Parity@0123456789abcdef")
    Reference(place='my_rules.py', name='Parity', source='0123456789abcdef')

Code is known by the hash of its source file. A spec writes it behind the name, with an @, when it is made; it is part
of the identity of every run that uses the code, and is compared before the code is used again: an edited file is
another rule. Only `load_module` and `load_class` import anything.
"""

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.machinery import PathFinder
from pathlib import Path
from traceback import walk_tb
from typing import NamedTuple, Self, TypeVar

from grokscope.errors import GrokscopeError, did_you_mean, quoted

T = TypeVar("T")
_PLACE, _SOURCE = "__grokscope_place__", "__grokscope_source__"  # of a module: how it was named, and its hash
_MODULES = "grokscope_extension_"  # with the hash: how a file that was loaded by its path is called


class ExtensionError(GrokscopeError):
    """Code of the user's that cannot be found or imported, or that does not do what was promised."""


class Reference(NamedTuple):
    """A class in a file, or in an importable module."""

    place: str  # my_rules.py, or package.module
    name: str
    source: str = ""  # the hash of the file; empty if it does not matter which version it is

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Read `file.py:Class` or `package.module:Class`, either with a hash behind it or not."""
        place, _, rest = text.rpartition(":")
        name, _, source = rest.partition("@")
        if not place or not name.isidentifier():
            raise ExtensionError(f"{quoted(text)} names no code: write file.py:Class or package.module:Class")
        return cls(place, name, source)

    @property
    def pinned(self) -> "Reference":
        """With the hash of the source as it is now, if it has none."""
        return self if self.source else self._replace(source=source_hash(self.place))

    @property
    def identity(self) -> str:
        """What the code is, wherever its file lies."""
        return f"{self.name}@{self.source}"

    def __str__(self) -> str:
        return f"{self.place}:{self.name}" + (f"@{self.source}" if self.source else "")


def is_reference(kind: str) -> bool:
    """Whether a kind names code, and not a built-in.

    >>> is_reference("my_rules.py:Parity"), is_reference("mlp")
    (True, False)
    """
    return ":" in kind


_READING_A_STORE: ContextVar[bool] = ContextVar("reading a store", default=False)


@contextmanager
def reading_a_store() -> Iterator[None]:
    """While this is open no file that a spec names is looked at: the spec may be anybody's."""
    token = _READING_A_STORE.set(True)
    try:
        yield
    finally:
        _READING_A_STORE.reset(token)


def pinned(kind: str) -> str:
    """A kind as a spec keeps it: a user's code with the hash of its source.

    >>> pinned("mlp")
    'mlp'
    """
    if not is_reference(kind) or _READING_A_STORE.get():
        return kind
    return str(Reference.parse(kind).pinned)


def named(value: object) -> object:
    """A class that was passed in Python as its name and source; all else as it is."""
    return str(own_reference(value, reference_to(value))) if isinstance(value, type) else value


def short_name(kind: str) -> str:
    """A kind in a table or title: the class alone.

    >>> short_name("mlp"), short_name("my_rules.py:Parity@0123456789abcdef")
    ('mlp', 'Parity')
    """
    return Reference.parse(kind).name if is_reference(kind) else kind


def source_hash(place: str) -> str:
    """What the source of a file or module is known by: 16 hexadecimal digits."""
    return hashlib.sha256(_source(place)).hexdigest()[:16]


def load_module(place: str) -> types.ModuleType:
    """Import a file by its path, or a module by its name. A file is imported once for as long as it stays the same."""
    if not place.endswith(".py"):
        return _import(place)
    path, source = Path(place).expanduser().resolve(), _source(place)
    own_hash = hashlib.sha256(source).hexdigest()[:16]
    for module in list(sys.modules.values()):
        # Also one that was imported by its name, if it is of the same source: two copies of a class are two classes.
        if getattr(module, "__dict__", {}).get(_SOURCE) == own_hash and _file(module) == path:
            return module
    name = _MODULES + hashlib.sha256(str(path).encode() + source).hexdigest()[:16]
    module = types.ModuleType(name)
    module.__file__ = str(path)
    module.__dict__.update({_PLACE: place, _SOURCE: own_hash})
    sys.modules[name] = module  # dataclasses and pydantic look their module up while it is made
    sys.path.insert(0, str(path.parent))  # so that it can import files beside it
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        raise ExtensionError(f"{place} does not import: {_in_one_line(error, path)}") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def load_class(text: str, base: type[T]) -> type[T]:
    """The class that a reference names, which must be a subclass of `base`."""
    reference = Reference.parse(text)
    where = f"{reference.place}:{reference.name}"
    now = source_hash(reference.place)
    if reference.source not in ("", now):
        raise ExtensionError(
            f"{reference.place} has changed since: the source of {reference.name} was {reference.source} and is now "
            f"{now}; put the old file back, or train a new run with {where}"
        )
    module = load_module(reference.place)
    found = getattr(module, reference.name, None)
    if found is None:
        names = [name for name, value in vars(module).items() if isinstance(value, type) and issubclass(value, base)]
        raise ExtensionError(
            f"{reference.place} has no class {reference.name}{did_you_mean(reference.name, names)}"
            if names
            else f"{reference.place} has no class {reference.name}, and no other subclass of {public_name(base)}"
        )
    if not (isinstance(found, type) and issubclass(found, base)):
        what = f"one of {found.__mro__[1].__name__}" if isinstance(found, type) else f"of type {type(found).__name__}"
        raise ExtensionError(f"{where} must be a subclass of {public_name(base)}, and is {what}")
    if reason := why_incomplete(found):
        raise ExtensionError(f"{where} {reason}")
    if field := next((name for name, field in getattr(found, "model_fields", {}).items() if field.is_required()), None):
        raise ExtensionError(f"{where}: the field {field} needs a default, as in `{field}: int = 1`")
    if vars(module).get(_SOURCE, now) != now:
        raise ExtensionError(f"{reference.place} has changed since it was imported: start Python again to use it")
    return found


def why_incomplete(cls: type) -> str | None:
    """Which methods a user's class lacks, in words; None if it has all."""
    if not inspect.isabstract(cls):
        return None
    missing = ", ".join(f"{name}()" for name in sorted(getattr(cls, "__abstractmethods__", ())))
    ours = next(base for base in cls.__mro__ if base.__module__.split(".")[0] == "grokscope")
    return f"lacks {missing}, which every subclass of {public_name(ours)} has"


class Complete:
    """A base of what users write: a class that lacks a method is refused as everything else is, in one line."""

    def __new__(cls, /, *_: object, **__: object) -> Self:
        """Refuse a class that lacks a method."""
        if reason := why_incomplete(cls):
            raise ExtensionError(f"{cls.__name__} {reason}")
        return super().__new__(cls)


def remember_source(cls: type) -> None:
    """Note the source that a user's class is being made from, with its module."""
    module = sys.modules.get(cls.__module__)
    file = _file(module)
    if module is None or file is None or cls.__module__.split(".")[0] == "grokscope":
        return
    with suppress(OSError):
        vars(module).setdefault(_SOURCE, hashlib.sha256(file.read_bytes()).hexdigest()[:16])


def reference_to(cls: type) -> str:
    """How a class is named so that another process can find it."""
    module = sys.modules.get(cls.__module__)
    file = _file(module)
    if module is None or file is None or "<locals>" in cls.__qualname__:
        raise ExtensionError(
            f"the class {cls.__name__} is in no file, so that no other process can find it: "
            "save it to a file such as my_rules.py and import it from there"
        )
    if place := vars(module).get(_PLACE):
        return f"{place}:{cls.__name__}"
    # A module that is installed is found by its name from anywhere; one beside a script only by its path.
    if cls.__module__ != "__main__" and ("site-packages" in str(file) or "." in cls.__module__):
        return f"{cls.__module__}:{cls.__name__}"
    return f"{_short(file)}:{cls.__name__}"


def is_reference_to(cls: type, kind: object) -> bool:
    """Whether a kind names this class, by whatever path."""
    if not isinstance(kind, str) or not is_reference(kind):
        return False
    reference = Reference.parse(kind)
    file = Path(reference.place).expanduser().resolve() if reference.place.endswith(".py") else None
    same = cls.__module__ == reference.place if file is None else file == _file(sys.modules.get(cls.__module__))
    return same and reference.name == cls.__name__


def own_reference(cls: type, kind: str) -> Reference:
    """A kind that names this class, pinned to the source that the class was made from."""
    source = vars(sys.modules[cls.__module__]).get(_SOURCE, "")
    return Reference.parse(kind)._replace(source=source).pinned


def _file(module: types.ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


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


def source_file(place: str) -> Path:
    """The file of a place, found without importing anything. A path need not be that of a file."""
    return Path(place).expanduser() if place.endswith(".py") else _file_of(place)


def is_loaded_file(module: str) -> bool:
    """Whether a module was loaded by its path, and has a name that only `load_module` gives."""
    return module.startswith(_MODULES)


def _source(place: str) -> bytes:
    try:
        path = source_file(place)
        return path.read_bytes()
    except FileNotFoundError:
        raise ExtensionError(f"there is no file {place} in {os.curdir if path.is_absolute() else Path.cwd()}") from None
    except (OSError, ValueError, RuntimeError) as error:  # a name that no file can have, or of a home that is not there
        raise ExtensionError(f"cannot read {place}: {getattr(error, 'strerror', None) or error}") from None


def _file_of(module: str) -> Path:
    """The file of a module, found without importing anything: not even the packages that it lies in."""
    top, *rest = module.split(".")
    try:
        found = importlib.util.find_spec(top)
        for depth in range(len(rest)):
            if found is None:
                break
            name = ".".join([top, *rest[: depth + 1]])
            found = PathFinder.find_spec(name, list(found.submodule_search_locations or ()))
    except (ImportError, ValueError) as error:
        raise ExtensionError(f"there is no module {module}: {error}") from None
    if found is None or not found.origin or not found.origin.endswith(".py"):
        raise ExtensionError(f"there is no module {module} written in Python; a file is named with its .py")
    return Path(found.origin)


def _import(module: str) -> types.ModuleType:
    path, source = _file_of(module), source_hash(module)
    try:
        imported = importlib.import_module(module)
        vars(imported).setdefault(_SOURCE, source)
        return imported
    except Exception as error:
        raise ExtensionError(f"{module} does not import: {_in_one_line(error, path)}") from error


def _in_one_line(error: Exception, path: Path) -> str:
    """What went wrong while a file was imported, and in which line of it."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    if getattr(error, "code", None) == "model-field-missing-annotation":  # pydantic's, with advice that is not for here
        attribute = str(error).partition("`")[2].partition("`")[0]
        return f"`{attribute}` has no type: write it, as in `x: int = 1`" + _line_in(error, path)
    return _message(error) + _line_in(error, path)


def _line_in(error: Exception, path: Path) -> str:
    lines = [line for frame, line in walk_tb(error.__traceback__) if Path(frame.f_code.co_filename) == path]
    return f" (line {lines[-1]})" if lines else ""


def explained(error: Exception) -> str:
    """What went wrong in one line and, where it went wrong in a user's code, the file and the line.

    >>> explained(ValueError("no such rule")), explained(GrokscopeError("no such rule"))
    ('ValueError: no such rule', 'no such rule')
    """
    said = " ".join(str(error).split()) if isinstance(error, GrokscopeError) else _message(error)
    where = place_in_own_code(error)
    return said + (f" ({where})" if where else "")


def place_in_own_code(error: Exception) -> str:
    """The innermost line of a user's code that an error came through, such as "my_rules.py, line 12"; "" if none."""
    frames = ((frame, line) for frame, line in walk_tb(error.__traceback__) if _SOURCE in frame.f_globals)
    places = [f"{Path(frame.f_code.co_filename).name}, line {line}" for frame, line in frames]
    return places[-1] if places else ""


def _message(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())

"""Write the reference pages from the code: docs/api.md from docstrings, docs/commands.md from the help texts.

`make reference` runs it. `tests/unit/test_reference.py` fails while the pages are not what the code says.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from rich.text import Text

import grokscope
from grokscope.cli.commands import all_commands

DOCS = Path(__file__).parent
NOTE = "<!-- `make reference` writes this page from the code. -->"
LONG = 100  # columns that a signature may take before each argument gets a line

# The units of the package, in the order of the page, and what their public names are about. A unit that is not here
# comes last under its own name.
UNITS = {
    "training": "Training",
    "sweeping": "Training",
    "result": "Training",
    "spec": "Specs",
    "phases": "Phases",
    "store": "The store",
    "sweeps": "Sweeps and phase diagrams",
    "experiments": "Figures and claims",
    "measure": "Measuring",
    "waves": "Measuring",
    "tasks": "Tasks",
    "models": "Networks",
    "optimizers": "Optimisers",
    "regularizers": "Regularisers",
    "randomness": "Random numbers",
    "cluster": "Errors",
    "errors": "Errors",
    "extension": "Errors",
}
ELSEWHERE = {"Loss": "models"}  # names that do not know where they come from


def api_page() -> str:
    """Every public name of `grokscope`, by what it is about."""
    sections: dict[str, list[str]] = {}
    for unit in (*UNITS, *sorted({_unit(name) for name in grokscope.__all__} - UNITS.keys())):
        title = UNITS.get(unit, unit)
        sections.setdefault(title, []).extend(sorted((n for n in grokscope.__all__ if _unit(n) == unit), key=str.lower))
    parts = [
        "# Python reference",
        NOTE,
        "Every public name of `import grokscope as gs`, from its docstring. [In Python](python.md) shows how they fit "
        "together. Examples that begin with `>>>` are tested.",
        "\n".join(
            f"- {title}: " + ", ".join(f"[`{name}`](#gs{name.lower()})" for name in names)
            for title, names in sections.items()
        ),
    ]
    for title, names in sections.items():
        parts.append(f"## {title}")
        for name in names:
            parts += _entry(name)
    return "\n\n".join(part for part in parts if part) + "\n"


def _unit(name: str) -> str:
    module = ELSEWHERE.get(name) or getattr(grokscope, name).__module__.split(".")[1]
    return str(module)


def _entry(name: str) -> Iterator[str]:
    thing = getattr(grokscope, name)
    yield f"### `gs.{name}`"
    if inspect.isfunction(thing):
        yield _block(_signature(thing, name))
        yield _prose(thing)
    elif inspect.isclass(thing):
        yield _prose(thing)
        yield _fields(thing)
        yield "\n".join(_members(thing))
    else:
        yield _block(f"{name} = {str(thing).replace('typing.', '')}")


# ---- functions --------------------------------------------------------------------------------------------------


def _signature(function: Any, name: str) -> str:
    """As in the source, without `self`; one line if it fits."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    arguments = [argument for argument in _arguments(node.args) if argument not in ("self", "cls")]
    returns = f" -> {_annotation(node.returns)}" if node.returns else ""
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= LONG:
        return line
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){returns}"


def _arguments(node: ast.arguments) -> Iterator[str]:
    places = [*node.posonlyargs, *node.args]
    defaults = [None] * (len(places) - len(node.defaults)) + list(node.defaults)
    for argument, default in zip(places, defaults, strict=True):
        yield _argument(argument, default)
    if node.vararg:
        yield f"*{_argument(node.vararg, None)}"
    elif node.kwonlyargs:
        yield "*"
    for argument, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        yield _argument(argument, default)
    if node.kwarg:
        yield f"**{_argument(node.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    annotated = f"{argument.arg}: {_annotation(argument.annotation)}" if argument.annotation else argument.arg
    return f"{annotated} = {ast.unparse(default)}" if default else annotated


def _annotation(node: ast.expr) -> str:
    return ast.unparse(node).replace("'", "")


# ---- classes ----------------------------------------------------------------------------------------------------


def _own_classes(cls: type) -> list[type]:
    """The class, and those of its bases in the package that have no entry of their own."""
    public = {id(getattr(grokscope, name)) for name in grokscope.__all__}
    ours = [base for base in cls.__mro__ if base.__module__.startswith("grokscope")]
    return [base for base in ours if base is cls or id(base) not in public]


def _fields(cls: type) -> str:
    """The fields with their comments, as they stand in the source."""
    shown: list[str] = []
    for base in reversed(_own_classes(cls)):
        lines = textwrap.dedent(inspect.getsource(base)).splitlines()
        node = ast.parse("\n".join(lines)).body[0]
        assert isinstance(node, ast.ClassDef)
        for each in node.body:
            if _is_field(each, cls):
                first = each.lineno - 1
                while lines[first - 1].lstrip().startswith("#"):
                    first -= 1
                shown += lines[first : each.end_lineno]
    return _block("\n".join([f"class {cls.__name__}:", *shown])) if shown else ""


def _is_field(node: ast.stmt, cls: type) -> bool:
    if isinstance(node, ast.AnnAssign):
        name = ast.unparse(node.target)
        return not name.startswith("_") and not ast.unparse(node.annotation).startswith("ClassVar")
    return isinstance(node, ast.Assign) and issubclass(cls, Enum)


def _members(cls: type) -> Iterator[str]:
    """Public methods and properties, each with its docstring."""
    seen: set[str] = set()
    for base in _own_classes(cls):
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            function = getattr(member, "fget", None) or getattr(member, "func", None) or member
            function = getattr(function, "__func__", function)  # of class methods
            if not inspect.isfunction(function) or not (function.__module__ or "").startswith("grokscope"):
                continue
            seen.add(name)
            called = name if function is not member and not _is_bound(member) else _signature(function, name)
            words = " ".join(_paragraphs_before_examples(function))
            yield f"- `{' '.join(called.split())}`" + (f": {words}" if words else "")


def _is_bound(member: object) -> bool:
    return isinstance(member, classmethod | staticmethod)


# ---- text -------------------------------------------------------------------------------------------------------


def _block(code: str) -> str:
    return f"```py\n{code}\n```"


def _prose(thing: Any) -> str:
    """A docstring as Markdown: examples become blocks."""
    parts = []
    for paragraph in (inspect.getdoc(thing) or "").split("\n\n"):
        parts.append(f"```pycon\n{paragraph}\n```" if paragraph.lstrip().startswith(">>>") else paragraph)
    return "\n\n".join(parts)


def _paragraphs_before_examples(thing: Any) -> Iterator[str]:
    for paragraph in (inspect.getdoc(thing) or "").split("\n\n"):
        if paragraph.lstrip().startswith(">>>"):
            return
        yield " ".join(paragraph.split())


# ---- commands ---------------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Every command with its options."""
    every = list(_commands(all_commands(), ()))
    names = [words for words, _ in every]
    parts = [
        "# Commands",
        NOTE,
        "What `grokscope COMMAND --help` says. Every command has `--help` (`-h`). Errors are one line; "
        "[exit statuses](sweeps.md#what-happens-to-it) are the same everywhere. "
        "[A tour of the commands](tour.md) shows them at work.",
        "\n".join(f"- [`grokscope {' '.join(words)}`](#grokscope-{'-'.join(words)})" for words in names),
    ]
    for words, command in every:
        parts.append(f"## `grokscope {' '.join(words)}`")
        parts += _help(command)
    return "\n\n".join(parts) + "\n"


def _commands(known: Mapping[str, Any], words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, each in known.items():
        if each.hidden:
            continue
        if hasattr(each, "commands"):
            yield from _commands(each.commands, (*words, name))
        else:
            yield (*words, name), each


def _help(command: Any) -> Iterator[str]:
    text = Text.from_markup(inspect.cleandoc("\n\n".join(filter(None, (command.help, command.epilog))))).plain
    examples = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("grokscope "):
            examples.append(paragraph)
        elif paragraph.strip() not in ("Examples", "Example"):
            yield " ".join(paragraph.split())
    if examples:
        yield "```console\n" + "\n".join(f"$ {example}" for example in examples) + "\n```"
    rows = [row for parameter in command.params if not parameter.hidden for row in [_row(parameter)] if row]
    if rows:
        yield "| | |\n|---|---|\n" + "\n".join(rows)


def _row(parameter: Any) -> str:
    """A line of the table: the option or argument, and what it is for."""
    if "--help" in parameter.opts:
        return ""
    is_option = parameter.opts[0].startswith("-")
    name = ", ".join(parameter.opts + parameter.secondary_opts) if is_option else parameter.metavar
    value = f" {parameter.metavar}" if is_option and parameter.metavar else ""
    words = Text.from_markup(parameter.help or "").plain
    if parameter.envvar:
        words += f" Or the environment variable {parameter.envvar}."
    if parameter.show_default and parameter.default not in (None, False, [], ()):
        shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
        words += f" [{shown}]"
    return f"| `{name or parameter.name.upper()}{value}` | {words.replace('|', '&#124;')} |"


if __name__ == "__main__":
    (DOCS / "api.md").write_text(api_page(), encoding="utf-8")
    (DOCS / "commands.md").write_text(commands_page(), encoding="utf-8")

"""A module imports only lower levels, and units of one level do not import each other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import grokscope

PACKAGE = Path(__file__).parents[2] / "src" / "grokscope"

# As in docs/architecture.md.
LEVELS = {
    "errors": 0,
    "arrays": 0,
    "notes": 0,
    "compiled": 1,
    "documents": 1,
    "extension": 1,
    "groups": 1,
    "images": 1,
    "phases": 1,
    "randomness": 1,
    "tables": 1,
    "waves": 1,
    "section": 2,
    "tasks": 3,
    "optimizers": 3,
    "models": 4,
    "regularizers": 5,
    "spec": 6,
    "engines": 7,
    "measure": 7,
    "snapshots": 7,
    "result": 8,
    "settling": 8,
    "training": 9,
    "store": 9,
    "sweeps": 10,
    "outputs": 10,
    "labels": 10,
    "plots": 11,
    "cluster": 11,
    "doctor": 11,
    "exports": 11,
    "experiments": 12,
    "sweeping": 13,
    "explorer": 14,
    "animation": 14,
    "public": 15,
    "cli": 15,
    "__main__": 16,
}
COMPILED = {"_native"}
TORCH_MODULES = {
    "grokscope.models.attention",
    "grokscope.models.hooks",
    "grokscope.models.module",
    "grokscope.models.plain",
    "grokscope.engines.torch_engine",
    "grokscope.engines.stacked_engine",
}
FACADE = "__init__"  # the public names, nothing else


def unit_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_units(path: Path) -> set[str]:
    """Units of grokscope that a file imports anywhere, inside functions too; but a result may draw itself."""
    names = []
    for node in nodes_outside_drawing(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return {name.partition(".")[2].split(".")[0] or FACADE for name in names if name.split(".")[0] == "grokscope"}


def nodes_outside_drawing(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but imports of `grokscope.plots` inside a method called plot or _repr_…"""
    for node in ast.iter_child_nodes(tree):
        yield node
        if isinstance(tree, ast.ClassDef) and isinstance(node, ast.FunctionDef) and draws(node):
            yield from (found for found in ast.walk(node) if not imports_plots(found))
        else:
            yield from nodes_outside_drawing(node)


def draws(method: ast.FunctionDef) -> bool:
    return method.name == "plot" or method.name.startswith("_repr_")


def imports_plots(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("grokscope.plots.")


def test_only_methods_that_draw_may_import_plots() -> None:
    code = """
class Result:
    def plot(self):
        from grokscope.plots import draw
    def _repr_html_(self):
        from grokscope.plots.inline import image
        from grokscope.cli import app
    def to_pandas(self):
        from grokscope.plots import table
def plot():
    from grokscope.plots import other
"""
    seen = [node.module for node in nodes_outside_drawing(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    assert seen == ["grokscope.cli", "grokscope.plots", "grokscope.plots"]


def test_every_unit_has_a_level() -> None:
    assert {unit_of(path) for path in PACKAGE.rglob("*.py")} == {*LEVELS, FACADE}


def test_functions_and_modules_have_names_of_their_own() -> None:
    """`import grokscope.run` would give a function where a module was meant."""
    public = {name for name in grokscope.__all__ if not isinstance(getattr(grokscope, name), type)}
    assert not public & set(LEVELS)


def test_imports_point_downwards() -> None:
    for path in PACKAGE.rglob("*.py"):
        unit = unit_of(path)
        if unit == FACADE:
            continue
        # The command line prints the version, and the machines of a cluster compare theirs.
        allowed = {unit, FACADE} if unit in ("cli", "cluster") else {unit}
        for imported in imported_units(path) - allowed - COMPILED:
            assert LEVELS[imported] < LEVELS[unit], f"{path.relative_to(PACKAGE)} imports {imported}"


def test_only_marked_modules_import_torch_when_loaded() -> None:
    """So that --help answers at once, and an engine without torch does not load it."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
        modules += [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
        loads_torch = any(module.split(".")[0] == "torch" or module in TORCH_MODULES for module in modules)
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        assert loads_torch == (name in TORCH_MODULES), path


def test_the_page_on_architecture_and_the_tree_agree() -> None:
    root = PACKAGE.parents[1]
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, flags=re.MULTILINE)
    told = {unit: int(level) for level, units in rows for unit in re.findall(r"`(\w+)`", units)}
    assert told == {unit: level for unit, level in LEVELS.items() if unit != "__main__"}
    there = {
        path.name for folder in ("src", "native", "tests") for path in (root / folder).rglob("*") if path.is_file()
    }
    for name in re.findall(r"`(?:[\w/]+/)?(\w+\.(?:py|hpp|cpp))`", page):
        assert name in there, f"docs/architecture.md names {name}"

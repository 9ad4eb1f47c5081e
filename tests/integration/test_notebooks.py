"""The notebooks run, and what they show came from the code that they have."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

HERE = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(HERE.glob("*.ipynb"))
LARGEST_BYTES = 300_000

found = importlib.util.spec_from_file_location("execute", HERE / "execute.py")
assert found is not None
assert found.loader is not None
execute = importlib.util.module_from_spec(found)
found.loader.exec_module(execute)


def test_there_are_notebooks() -> None:
    assert [path.name for path in NOTEBOOKS] == ["anatomy_of_a_network.ipynb", "first_tour.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_shows_came_from_its_code(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata["grokscope"]["code"] == execute.code_hash(notebook), "run `make notebooks`"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert path.stat().st_size < LARGEST_BYTES


def test_a_change_of_the_code_shows() -> None:
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    before = execute.code_hash(notebook)
    text = next(cell for cell in notebook.cells if cell.cell_type == "markdown")
    text.source += " More words."
    assert execute.code_hash(notebook) == before
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.source += "\n"
    assert execute.code_hash(notebook) != before


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_in_a_notebook_lead_somewhere(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", cell.source if cell.cell_type == "markdown" else ""):
            assert (HERE / target).exists(), target


@pytest.mark.verify
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_fresh_kernel(path: Path) -> None:
    """Every cell without an error, each with outputs of the kinds that are committed.

    On standard error is the progress of runs that take longer than a second, which depends on the machine. A warning
    has no place there.
    """
    committed, again = nbformat.read(path, as_version=4), execute.executed(path)
    outputs = [output for cell in again.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output.text for output in outputs if output.get("name") == "stderr" and "Warning" in output.text]

    def kinds(notebook: nbformat.NotebookNode) -> list[list[object]]:
        return [
            [output.get("name") or sorted(output.data) for output in cell.outputs if output.get("name") != "stderr"]
            for cell in notebook.cells
            if cell.cell_type == "code"
        ]

    assert kinds(again) == kinds(committed)

"""Execute the notebooks of this directory in fresh kernels, and keep what they show.

    .venv/bin/python docs/notebooks/execute.py                          # all of them: `make notebooks`
    .venv/bin/python docs/notebooks/execute.py docs/notebooks/first_tour.ipynb

A notebook keeps a hash of the code that its outputs came from, so that a test sees when they are out of date.
"""

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
NOTEBOOKS = sorted(HERE.glob("*.ipynb"))
LONGEST_CELL_SECONDS = 600


def code_hash(notebook: Any) -> str:
    """Changes with the code of any cell, and with their order; texts may be improved without it."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()[:16]


def executed(path: Path) -> Any:
    """The notebook with the outputs of its code, from a fresh kernel in an empty directory; an error comes out."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.clear()
    with tempfile.TemporaryDirectory() as directory:
        client = NotebookClient(
            notebook,
            timeout=LONGEST_CELL_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": directory}},
            record_timing=False,
            coalesce_streams=True,
        )
        client.execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "grokscope": {"code": code_hash(notebook)},
    }
    return notebook


def main() -> None:
    """Execute the notebooks that are named, or all."""
    for path in [Path(argument) for argument in sys.argv[1:]] or NOTEBOOKS:
        nbformat.write(executed(path), path)
        sys.stderr.write(f"{path}: {path.stat().st_size / 1000:.0f} KB\n")


if __name__ == "__main__":
    main()

"""docs/api.md and docs/commands.md are what the code says."""

import importlib.util
from pathlib import Path
from typing import Any

import grokscope

DOCS = Path(__file__).parents[2] / "docs"


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generator = _generator()


def test_the_python_reference_is_up_to_date() -> None:
    assert (DOCS / "api.md").read_text(encoding="utf-8") == generator.api_page(), "run: make reference"


def test_the_reference_of_commands_is_up_to_date() -> None:
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == generator.commands_page(), "run: make reference"


def test_every_public_name_has_an_entry_with_words() -> None:
    page = generator.api_page()
    for name in grokscope.__all__:
        entry = page.split(f"### `gs.{name}`\n")[1].split("\n### ")[0]
        assert len(entry.split()) > 3, name

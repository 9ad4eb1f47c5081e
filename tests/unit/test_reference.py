"""docs/api.md and docs/commands.md are what the code says."""

import pytest
from tests.generators import ROOT, script

import grokscope

DOCS = ROOT / "docs"
generator = script("docs/make_reference.py")


@pytest.fixture(scope="module")
def api() -> str:
    return str(generator.api_page())


def test_the_python_reference_is_up_to_date(api: str) -> None:
    assert (DOCS / "api.md").read_text(encoding="utf-8") == api, "run: make reference"


def test_the_reference_of_commands_is_up_to_date() -> None:
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == generator.commands_page(), "run: make reference"


def test_every_public_name_has_an_entry_with_words(api: str) -> None:
    for name in grokscope.__all__:
        entry = api.split(f"### `gs.{name}`\n")[1].split("\n### ")[0]
        assert len(entry.split()) > 3, name

"""What is committed under docs/ is about the experiments and claims that the code has."""

import re
from pathlib import Path

import pytest

from grokscope.experiments.catalogue import CLAIMS, EXPERIMENTS
from grokscope.experiments.claim import Claim, Verdict
from grokscope.experiments.experiment import Experiment

DOCS = Path(__file__).parents[2] / "docs"
INDEX = (DOCS / "gallery" / "README.md").read_text()
LEDGER = (DOCS / "claims.md").read_text()
DRAWN = list(EXPERIMENTS.values())


@pytest.mark.parametrize("experiment", DRAWN, ids=lambda each: each.name)
def test_the_gallery_shows_every_figure_with_its_settings_and_its_command(experiment: Experiment) -> None:
    name = experiment.name
    assert f"![{experiment.title}]({name}.png)" in INDEX
    assert (DOCS / "gallery" / f"{name}.png").stat().st_size > 1000
    command = (DOCS / "gallery" / f"{name}.txt").read_text().splitlines()[-1]
    assert command.startswith(f"Made with: grokscope figure {name} --scale ")
    assert f"`{command.removeprefix('Made with: ')}`" in INDEX


def test_the_gallery_has_no_figure_that_the_code_has_not() -> None:
    pictures = {picture.stem for picture in (DOCS / "gallery").glob("*.png")}
    assert pictures == {each.name for each in DRAWN}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda each: each.id)
def test_the_ledger_has_every_claim_in_the_words_of_the_code_and_a_note_unless_it_holds(claim: Claim) -> None:
    row = re.search(rf"^\| \*\*{claim.id}\*\*: (.*) \|$", LEDGER, re.MULTILINE)
    assert row, "run: make pages"
    statement, paper, *_, words = row[1].split(" | ")
    assert (statement, paper) == (claim.statement, claim.paper)
    verdict = Verdict(words.partition(" (")[0])
    assert (verdict is Verdict.SUPERSEDED) == bool(claim.superseded)
    note = re.search(rf"^- \*\*{claim.id}\*\* \({re.escape(words)}\): (.*)$", LEDGER, re.MULTILINE)
    assert note or verdict is Verdict.HOLDS
    assert claim.note in (note[1] if note else "")
    assert claim.seen_before in LEDGER

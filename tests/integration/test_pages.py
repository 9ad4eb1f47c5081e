"""All pages of the documentation: what they show runs, what they name exists, and their links lead somewhere.

On every page, blocks of Python run one after the other in one namespace, and every `grokscope …` line is one that the
program understands. On the pages of `RUN`, the commands run too. A block whose first line is `# name.py` or
`# name.toml` is a file of that name.
"""

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import typer
from tests.generators import ROOT, script
from tests.integration.processes import here

from grokscope import Plan, RunSpec, Store
from grokscope.cli.commands import all_commands
from grokscope.cluster import ClusterRequest

website = script("docs/website/make.py")
PAGES = [str(page) for page in website.pages()]
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
RUN = [page for page in PAGES if page == "docs/tutorial.md" or page.startswith("docs/howto/")]
ELSEWHERE = ("docs/extending.md",)  # test_docs.py
GENERATED = ("docs/api.md", "docs/claims.md", "docs/commands.md", "docs/gallery/README.md", "docs/report.md")
NEEDS_MACHINES = ("--cluster", "--device")


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the code of each block."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", TEXTS[page], flags=re.MULTILINE | re.DOTALL)
    return [(language, code) for language, code in found]


def commands(code: str) -> list[list[str]]:
    """The `grokscope` lines of a block of shell, as arguments."""
    lines = code.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("grokscope ")]


@contextmanager
def importing_from(directory: Path) -> Iterator[None]:
    """Modules of a directory can be imported, and are forgotten afterwards."""
    before = set(sys.modules)
    with chdir(directory):
        sys.path.insert(0, str(directory))
        try:
            yield
        finally:
            sys.path.remove(str(directory))
            for name in set(sys.modules) - before:
                if str(directory) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]


# ---- code -------------------------------------------------------------------------------------------------------


def with_code(page: str) -> bool:
    languages = {language for language, _ in blocks(page)}
    return page not in ELSEWHERE and ("python" in languages or page in RUN)


@pytest.mark.parametrize("page", [page for page in PAGES if with_code(page)])
def test_what_a_page_shows_runs(page: str, tmp_path: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    with importing_from(tmp_path):
        for language, code in blocks(page):
            name = re.match(r"# (\w+\.(?:py|toml))\n", code)
            if name:
                Path(name[1]).write_text(code, encoding="utf-8")
            elif language == "python":
                exec(compile(code, page, "exec"), namespace)
            elif language == "sh" and page in RUN:
                for arguments in commands(code):
                    if not any(flag in arguments for flag in NEEDS_MACHINES):
                        _run(arguments, tmp_path)


def _run(arguments: list[str], directory: Path) -> None:
    if "RUN" in arguments:
        runs = Store(directory / "grokscope-runs").all()
        first = next((run for run in runs if run.has_weights), runs[0])  # one that can be taken apart
        arguments = [first.run_id if argument == "RUN" else argument for argument in arguments]
    done = here(tuple(arguments), directory)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
    assert "Warning" not in done.stderr


KNOWN = all_commands()
COMMANDS = [(page, arguments) for page in PAGES for _, code in blocks(page) for arguments in commands(code)]


@pytest.mark.parametrize("page", sorted({page for page, _ in COMMANDS}))
def test_commands_are_ones_that_the_program_understands(page: str) -> None:
    """Without running them: names, options and values."""
    for arguments in (own for own_page, own in COMMANDS if own_page == page):
        known, rest = KNOWN, list(arguments)
        while known:
            assert rest[0] in known, f"grokscope {' '.join(arguments)}"
            command = known[rest.pop(0)]
            known = getattr(command, "commands", {})
        try:
            command.make_context("grokscope", rest)
        except typer.TyperException as error:
            raise AssertionError(f"grokscope {' '.join(arguments)}: {error.format_message()}") from error


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for each in getattr(command, "commands", {}).values():
        yield from _options(each)


@pytest.mark.parametrize("page", PAGES)
def test_options_that_are_named_exist(page: str) -> None:
    known = {*chain(*map(_options, KNOWN.values())), "--help", "--quiet", "--verbose", "--version"}
    known |= {"--nthreads", "--nworkers", "--resources"}  # Dask's
    known |= {"--store"}
    named = re.findall(r"`[^`\n]*?(--[a-z][a-z0-9-]+)", TEXTS[page])
    assert set(named) <= known


def test_the_toml_of_the_tour_is_a_spec() -> None:
    (text,) = [code for language, code in blocks("docs/tour.md") if language == "toml"]
    assert RunSpec.from_toml(text).model.norm == "batch"


def test_the_toml_of_the_page_on_sweeps_is_a_sweep(tmp_path: Path) -> None:
    sizes = []
    for text in (code for language, code in blocks("docs/sweeps.md") if language == "toml"):
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        sizes.append(len(list(Plan.from_file(tmp_path / "mine.toml").specs())))
    assert sizes == [4 * 3 * 2 * 3, 3 * 5 * 2]


def test_the_toml_of_the_page_on_clusters_is_that_of_a_cluster(tmp_path: Path) -> None:
    (text,) = [code for language, code in blocks("docs/howto/cluster.md") if language == "toml"]
    (tmp_path / "cluster.toml").write_text(text, encoding="utf-8")
    assert ClusterRequest.parse("slurm", tmp_path / "cluster.toml").workers == 128


# ---- text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_links_and_anchors_lead_somewhere(page: str) -> None:
    tokens = website.parse(TEXTS[page])
    for link in website.links(tokens):
        target, _, anchor = website.target_of(link).partition("#")
        if re.match(r"https?:|mailto:", target):
            continue
        path = PurePosixPath(os.path.normpath(PurePosixPath(page).parent / target)) if target else PurePosixPath(page)
        assert (ROOT / path).exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in _anchors(str(path)), f"{page} links to {target}#{anchor}"


@cache
def _anchors(page: str) -> set[str]:
    return {heading.anchor for heading in website.headings(website.parse(TEXTS[page]))}


def test_the_map_lists_every_page() -> None:
    links = website.links(website.parse(TEXTS["docs/README.md"]))
    listed = {os.path.normpath(Path("docs") / website.target_of(link)) for link in links}
    missing = {page for page in PAGES if page.startswith("docs/")} - listed - {"docs/README.md"}
    assert not missing, f"add a line to docs/README.md for: {', '.join(sorted(missing))}"


@pytest.mark.parametrize("page", [page for page in PAGES if page not in GENERATED])
def test_lines_are_not_too_long_to_read_in_an_editor(page: str) -> None:
    prose = re.sub(r"^```.*?^```", "", TEXTS[page], flags=re.MULTILINE | re.DOTALL)
    long = [line for line in prose.splitlines() if len(line) > 160 and not line.startswith(("|", "!", "$$"))]
    assert not long


def test_extras_that_are_named_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {name for text in TEXTS.values() for name in re.findall(r"grokscope\[([\w,]+)\]", text)}
    assert {each for name in named for each in name.split(",")} <= extras.keys()


def test_the_speed_in_the_readme_is_the_measured_one() -> None:
    words = " ".join(TEXTS["README.md"].split())
    default, figure_3 = times_as_fast("amd-epyc-avx2")
    assert f"{default[0]:.1f} times as many steps as a straightforward PyTorch loop" in words
    assert f"and {default[1]:.1f} times as many as jitted JAX" in words
    assert f"{figure_3[0]:.1f} and {figure_3[1]:.1f} times as many over the 17 data fractions" in words
    for cpu in ("family-25-model-17", "family-26-model-2"):
        default, figure_3 = times_as_fast(f"amd-epyc-{cpu}-avx512")
        assert f" {default[0]:.1f} and {default[1]:.1f} ({figure_3[0]:.1f} and {figure_3[1]:.1f}" in words


def times_as_fast(cpu: str) -> list[list[float]]:
    """As eager code and as JAX, at the default setting and over the data fractions of Figure 3."""
    rows = json.loads((ROOT / "benchmarks" / f"results-{cpu}.json").read_text(encoding="utf-8"))["rows"]
    return [[row["grokscope"] / row[other] for other in ("eager", "jax")] for row in rows[:2]]


def test_the_readme_has_three_screens() -> None:
    lines = TEXTS["README.md"].splitlines()
    assert len(lines) <= 125
    assert {"make demo", "make test"} <= set(lines)

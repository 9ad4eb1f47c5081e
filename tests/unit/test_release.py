"""What a release is made of fits together: version, changelog, tag, workflow, source distribution."""

import datetime
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

import grokscope

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HEADING = re.compile(r"^## (.+)$", flags=re.MULTILINE)
RELEASE = re.compile(r"\[?(\d+)\.(\d+)\.(\d+)\]?\W+(\d{4}-\d{2}-\d{2})\W*")

Release = tuple[tuple[int, ...], datetime.date]


def releases_in(changelog: str) -> tuple[bool, list[Release]]:
    """Whether there is a section of what is not released yet, on top, and the releases."""
    headings = HEADING.findall(changelog)
    unreleased = headings[:1] == ["Unreleased"]
    found = []
    for heading in headings[unreleased:]:
        match = RELEASE.fullmatch(heading)
        assert match, f"CHANGELOG.md: '## {heading}' is not of the form '## 1.2.3 — 2026-01-31'"
        found.append((tuple(int(part) for part in match.groups()[:3]), datetime.date.fromisoformat(match[4])))
    return unreleased, found


def check_changelog(changelog: str, version: str) -> None:
    """A version is released, and then it is the newest in the changelog, or it is to come, and then it is above it."""
    numbers = tuple(int(part) for part in version.split("."))
    unreleased, releases = releases_in(changelog)
    assert releases == sorted(releases, reverse=True), "CHANGELOG.md: the newest release comes first"
    newest = releases[0][0] if releases else (0, 0, 0)
    assert numbers >= newest, f"CHANGELOG.md has a release after {version}"
    assert unreleased or numbers == newest, f"CHANGELOG.md says nothing of {version}"


def git(*arguments: str) -> list[str]:
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")


# ---- the version -----------------------------------------------------------------------------------------------------


def test_version_and_changelog_fit() -> None:
    check_changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), grokscope.__version__)


@pytest.mark.parametrize(
    ("headings", "version", "fits"),
    [
        (["Unreleased"], "0.1.0", True),
        (["0.1.0 — 2026-01-31"], "0.1.0", True),
        (["[0.1.0] - 2026-01-31"], "0.1.0", True),
        (["Unreleased", "0.1.0 (2026-01-31)"], "0.2.0", True),
        (["Unreleased", "0.1.0 — 2026-01-31"], "0.1.0", True),
        (["0.1.0 — 2026-01-31"], "0.2.0", False),  # nobody wrote what is new
        (["0.10.0 — 2026-01-31"], "0.9.0", False),  # the version was forgotten
        (["0.1.0"], "0.1.0", False),  # no date
        (["0.1.0 — 2026-01-31", "0.2.0 — 2026-02-28"], "0.2.0", False),  # the order
        (["0.1.0 — 2026-02-31"], "0.1.0", False),  # no such day
    ],
)
def test_changelogs(headings: list[str], version: str, fits: bool) -> None:
    changelog = "# Changelog\n\n" + "".join(f"## {heading}\n- something\n" for heading in headings)
    if fits:
        check_changelog(changelog, version)
    else:
        with pytest.raises((AssertionError, ValueError)):
            check_changelog(changelog, version)


def test_the_version_is_written_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert metadata.version("grokscope") == grokscope.__version__, "install again: make"
    (cited,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cited == grokscope.__version__


def test_a_tag_fits_the_version() -> None:
    """In a clone without tags there is nothing to compare."""
    tags = git("tag", "--points-at", "HEAD", "--format", "%(refname:short)%00")
    versions = [tag.strip() for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag.strip())]
    assert versions in ([], [f"v{grokscope.__version__}"])
    if versions:
        unreleased, releases = releases_in((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        assert not unreleased
        assert ".".join(map(str, releases[0][0])) == grokscope.__version__


def test_classifiers_say_what_is_tested() -> None:
    """All tests were run with these; the workflow would run them with more."""
    pythons = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if ":: Python ::" in line]
    assert pythons == ["3.11"]
    assert PROJECT["requires-python"] == ">=3.11"
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in workflow_pythons()


# ---- the workflow ----------------------------------------------------------------------------------------------------


def steps() -> list[dict[str, object]]:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def workflow_pythons() -> list[str]:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    (pythons,) = {tuple(job["strategy"]["matrix"]["python"]) for job in workflow["jobs"].values() if "strategy" in job}
    assert all(isinstance(python, str) for python in pythons), "3.10 without quotes is the number 3.1"
    return list(pythons)


def test_the_workflow_calls_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE))
    called = [str(step["run"]) for step in steps() if "run" in step]
    assert {"make test", "make dist", "make smoke"} <= set(called)
    for command in called:
        assert command.split()[0] == "make", f"{command}: what the workflow does, people can do with make"
        assert set(command.split()[1:]) <= targets, command


def test_every_target_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony, *_) = re.findall(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    explained = set(re.findall(r'echo "make ([a-z-]+)', makefile))
    assert set(phony.split()) - explained <= {"help", "lint", "types"}


# ---- the source distribution -----------------------------------------------------------------------------------------


def test_a_source_distribution_has_all_that_git_has(tmp_path: Path) -> None:
    files = [name for name in git("ls-files", "-z") if name and (ROOT / name).is_file()]
    for name in files:  # a copy, because building leaves files behind
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    code = "from setuptools import build_meta; print(build_meta.build_sdist('made'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = (tmp_path / "made").iterdir()
    assert archive.name == f"grokscope-{grokscope.__version__}.tar.gz"
    with tarfile.open(archive) as content:
        inside = {name.partition("/")[2] for name in content.getnames()}
    assert set(files) - inside == set()

"""Whatever somebody writes, the answer is a result or one short line: never a traceback, never a page of text."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.processes import here

from grokscope import GrokscopeError, Plan, RunSpec, Store, run
from grokscope.errors import MOST_CHARACTERS
from grokscope.spec import SECTIONS, field_of, field_paths
from grokscope.store import Condition
from grokscope.sweeping import named_sweep
from grokscope.sweeps.formula import Formula

DEEP_LIST = "[" * 5000 + "]" * 5000
DIGITS = "9" * 5000
MEGABYTES = "x" * 2_000_000


def done_or_refused(call: Callable[[], object]) -> str:
    """What it says if it refuses."""
    try:
        call()
    except GrokscopeError as error:
        message = str(error)
        assert 0 < len(message) <= MOST_CHARACTERS
        assert message.isprintable()
        return message
    return ""


# ---- what has brought it down before --------------------------------------------------------------------------------


SPECS = [
    (f"a = {DEEP_LIST}", "not valid TOML: it is nested too deeply"),
    (f"[task]\nmodulus = {DIGITS}", "not valid TOML: a number has too many digits"),
    (f"[task]\nmodulus = 0x{'f' * 5000}", "task.modulus = a value of type int is not allowed"),
    (f"[task]\nmodulus{'.a' * 5000} = 1", "task.modulus = a value of type dict is not allowed"),
    (f"[task]\nkind = '{MEGABYTES}'", "task.kind = 'xxx"),
    (f"[task]\nkind = '{MEGABYTES}:A'", "there is no module xxx"),
    (f"[task]\nkind = '{MEGABYTES}.py:A'", "cannot read xxx"),
    ('[task]\nkind = "a\\u0000.py:A"', "cannot read a\\x00.py: embedded null byte"),
    ("[task]\nkind = '~nobody-of-this-name/a.py:A'", "cannot read ~nobody"),
    (f"[task]\n{'x' * 5000} = 1", "unknown key task.xxx"),
    (f"[{'x' * 5000}]", "unknown key xxx"),
    ("[task]\nkind = 0xffff", "task.kind = 65535 is not allowed"),
    (f"[task]\nmodulus = '{MEGABYTES}'", "task.modulus = 'xxx"),
]


def test_specs() -> None:
    for text, message in SPECS:
        assert message in done_or_refused(partial(RunSpec.from_toml, text))


SPECS_IN_JSON = [
    (DEEP_LIST, "not valid JSON: it is nested too deeply"),
    (f'{{"task": {{"modulus": {DIGITS}}}}}', "not valid JSON: a number has too many digits"),
    (f'{{"task": {{"modulus": "{MEGABYTES}"}}}}', "task.modulus = 'xxx"),
    ('{"task": {"modulus": NaN}}', "task.modulus = nan is not allowed"),
    ("[]", "a spec is a table"),
]


def test_specs_in_json() -> None:
    for text, message in SPECS_IN_JSON:
        assert message in done_or_refused(partial(RunSpec.from_json, text))


WITHOUT_VALUE: list[tuple[object, str]] = [
    ("-" * 5000 + "1", "at most 1,000 characters"),
    ("**".join("2" * 1000), "at most 1,000 characters"),
    ("-" * 900 + "1", "derived model.width"),
    ("(" * 400 + "1" + ")" * 400, "not a formula"),
    ("+".join("1" * 300), "more than 100 operations in each other"),
    ("not " * 200 + "1", "is not allowed: a formula has numbers"),
    (DIGITS[:900], "derived model.width"),
    ("1\0", "not a formula"),
    (10**5000, "must be a text"),
]


def evaluate(formula: object) -> None:
    Formula(formula, "model.width", field_of).value(RunSpec().value_of, "whole number")


def test_formulas() -> None:
    for formula, message in WITHOUT_VALUE:
        assert message in done_or_refused(partial(evaluate, formula))


PLANS = [
    (f"axes = {DEEP_LIST}", "nested too deeply"),
    (f"seeds = 0x{'f' * 5000}\n[axes]\n'task.modulus' = [5]", "at most "),
    (f"[axes]\n'training.seed' = {{ from = 0, to = 1, count = 0x{'f' * 5000} }}", "needs a count"),
    (f"[axes]\n'training.seed' = [0x{'f' * 5000}]", "a value of type int, which no field takes"),
    (f"[axes]\n'training.seed' = ['{MEGABYTES}']", "training.seed = 'xxx"),
    ("seeds = 2\n[axes]\n'training.seed' = ['a']", "training.seed = 'a' is not allowed"),
    (f"[axes]\n'{'x' * 5000}' = [1]", "unknown key xxx"),
    (f"[axes]\n'task.modulus' = ['{MEGABYTES}', '{MEGABYTES}']", "twice"),
    (f"[axes]\n'task.modulus' = [5]\n[derived]\n'model.width' = '{MEGABYTES}'", "at most 1,000 characters"),
]


def test_plans(tmp_path: Path) -> None:
    for content, message in PLANS:
        (tmp_path / "mine.toml").write_text(content)
        assert message in done_or_refused(lambda: list(Plan.from_file(tmp_path / "mine.toml").specs()))


def test_plans_in_python() -> None:
    values: Any
    for values in ([10**5000], [[[1]]], [object()], [{}], [float("nan")], "x" * 5000):
        assert done_or_refused(partial(Plan.over, {"training.seed": values}))
    assert "cannot be called" in done_or_refused(lambda: Plan.over({"training.seed": [1]}, name="[" * 10**6))


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("x" * 5000, "x" * 5000 + ".toml", "\0", "\0.toml"):
        assert done_or_refused(partial(named_sweep, name, tmp_path))
        assert done_or_refused(partial(RunSpec.from_file, tmp_path / name))


# ---- what nobody has thought of -------------------------------------------------------------------------------------

TEXTS = st.text(max_size=12) | st.text(min_size=1, max_size=3).map(lambda text: text * 3000)
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, -1, 2**31, 2**63, 10**30, 10**4200, -(10**4200)])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda some: st.lists(some, max_size=3) | st.dictionaries(TEXTS, some, max_size=3), max_leaves=6
)
NAMES = st.sampled_from([path.partition(".")[2] for path in field_paths()])


def sections(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.dictionaries(NAMES | TEXTS, values, max_size=3)
    return st.dictionaries(st.sampled_from(SECTIONS) | TEXTS, fields | values, max_size=3)


@given(sections(VALUES))
def test_any_spec(content: dict[str, Any]) -> None:
    done_or_refused(lambda: RunSpec.from_dict(content).run_id)


@given(TEXTS | st.text(alphabet='[]{}".=,\n\\ae01-'))
def test_any_text(text: str) -> None:
    done_or_refused(lambda: RunSpec.from_toml(text))
    done_or_refused(lambda: RunSpec.from_json(text))


WITHOUT_NONE = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | TEXTS,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(TEXTS, some, max_size=3),
    max_leaves=5,
)
PATHS = st.sampled_from(field_paths()) | TEXTS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "base": sections(WITHOUT_NONE),
            "axes": st.dictionaries(PATHS, st.lists(WITHOUT_NONE, max_size=3) | WITHOUT_NONE, max_size=2),
            "zip": st.lists(st.dictionaries(PATHS, st.lists(WITHOUT_NONE, max_size=3), max_size=2), max_size=2),
            "derived": st.dictionaries(PATHS, TEXTS | WITHOUT_NONE, max_size=2),
            "seeds": st.integers(-1, 3) | WITHOUT_NONE,
        },
    )
)
def test_any_plan(tmp_path: Path, content: dict[str, Any]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(tomli_w.dumps(content), encoding="utf-8", errors="replace")
    done_or_refused(lambda: [spec.run_id for spec in Plan.from_file(file).specs()])


LEAVES = st.sampled_from(["1", "2.5", "1e308", "task.modulus", "training.batch_size", "model.heads", "x", "", "'a'"])
FORMULAS = st.recursive(
    LEAVES,
    lambda some: st.one_of(
        st.tuples(some, st.sampled_from(("+", "-", "*", "/", "**", "//", "<", "and", ",", "=")), some).map(" ".join),
        some.map("(-{})".format),
        st.tuples(st.sampled_from(["sqrt", "log", "exp", "min", "round", "open", "a.b"]), some).map(
            "{0[0]}({0[1]})".format
        ),
    ),
    max_leaves=30,
)


@given(FORMULAS | TEXTS | st.text(alphabet="-*+/()1.e "))
def test_any_formula(text: str) -> None:
    done_or_refused(partial(evaluate, text))


@given(st.tuples(PATHS, st.sampled_from(["=", "!=", "<", ">=", ""]), TEXTS).map("".join))
def test_any_condition(text: str) -> None:
    done_or_refused(lambda: Condition.from_text(text))


COMMANDS = [
    ("train", "--engine", "none", "--set", "{path}={text}"),
    ("train", "--engine", "none", "--modulus", "{text}", "--corrupted-operands", "{text}", "--measure", "{text}"),
    ("train", "--engine", "none", "--spec", "{text}"),
    ("sweep", "{text}", "--engine", "none"),
    ("sweep", "mine.toml", "--engine", "none", "--set", "{path}={text}"),
    ("sweep", "mine.toml", "--engine", "none", "--grid", "{text}"),
    ("sweep", "mine.toml", "--engine", "none", "--seeds", "{text}"),
    ("sweep", "mine.toml", "--engine", "none", "--workers", "{text}"),
    ("sweep", "mine.toml", "--engine", "none", "--name", "{text}"),
    ("figure", "{text}", "--engine", "none"),
    ("figure", "fig01", "--engine", "none", "--scale", "{text}", "--grid", "{text}"),
    ("claims", "--only", "{text}", "--engine", "none"),
    ("status", "{text}"),
    ("phase-diagram", "{text}", "--out", "{text}.csv"),
    ("runs", "list", "--where", "{path}={text}"),
    ("runs", "show", "{text}"),
    ("runs", "export", "{run}", "--out", "{text}"),
    ("show", "{run}", "--attention", "{text}"),
    ("prune", "{text}"),
    ("spectrum", "analytic:{text}"),
    ("{text}",),
]
# What a command line can hold: no zero, and bytes that are no text as Python escapes them.
ARGUMENTS: st.SearchStrategy[str] = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10)
ARGUMENTS |= st.sampled_from(["x" * 5000, DIGITS, "-1", "0", "²", "../..", "[red]", "\udcff"])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    cwd = tmp_path_factory.mktemp("stored")
    spec = RunSpec().updated({"task.modulus": 5, "model.width": 4, "training.steps": 1})
    Store(cwd / "grokscope-runs").save(run(spec), weights=True)
    (cwd / "mine.toml").write_text("[axes]\n'task.data_fraction' = [0.3]\n'task.corruption' = [0.1]\n")
    return cwd, spec.run_id


@settings(max_examples=150)
@given(st.sampled_from(COMMANDS), PATHS, ARGUMENTS)
def test_any_argument(stored: tuple[Path, str], command: tuple[str, ...], path: str, text: str) -> None:
    cwd, run_id = stored
    path = path.replace("\0", "")
    done = here(tuple(word.format(path=path, text=text, run=run_id) for word in command), cwd)
    assert done.returncode in (0, 2), json.dumps(done.args)
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert len(done.stderr.splitlines()) == 1
        assert len(done.stderr) <= MOST_CHARACTERS + len("grokscope: \n")

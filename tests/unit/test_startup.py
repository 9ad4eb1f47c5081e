"""What is loaded before anything is done. `grokscope --help` answers at once because it is little."""

import inspect
import json
import os
import subprocess
import sys

import pytest
import typer

import grokscope
from grokscope.cli import app
from grokscope.cli.commands import COMMANDS, loaded

HEAVY = {
    "torch", "matplotlib", "numpy", "pydantic", "safetensors", "sqlite3", "pandas", "xarray", "pyarrow", "sklearn",
    "scipy", "fastapi", "uvicorn", "plotly", "dask", "distributed", "asyncssh", "PIL",
}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """The packages that a fresh Python has loaded after some code, and the modules of grokscope."""
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names = json.loads(done.stdout.splitlines()[-1])
    return {name.split(".")[0] for name in names} | {name for name in names if name.startswith("grokscope.")}


def test_importing_grokscope_loads_nothing_else() -> None:
    names = loaded_by("import grokscope; grokscope.__version__")
    assert not names & HEAVY
    assert not [name for name in names if name.startswith("grokscope.")]


# To read the value of an option, typer itself loads pydantic.
@pytest.mark.parametrize(("argument", "needed"), [("--help", set()), ("--version", {"pydantic"})])
def test_help_loads_no_command(argument: str, needed: set[str]) -> None:
    names = loaded_by(f"from grokscope.cli import app; app(['{argument}'], standalone_mode=False)")
    assert names & HEAVY == needed
    ours = {name for name in names if name.startswith("grokscope.")}
    assert ours == {
        f"grokscope.{name}" for name in ("cli", "cli.commands", "cli.hints", "errors", "extension", "notes")
    }


def test_the_test_would_see_it() -> None:
    assert loaded_by("import grokscope; grokscope.RunSpec") >= {"numpy", "pydantic", "grokscope.spec"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    command = loaded(name)
    assert command.name == name
    assert " ".join(inspect.cleandoc(command.help).split("\n\n")[0].split()) == COMMANDS[name]


def test_commands_are_listed_and_not_registered() -> None:
    """A command that is registered with the app is imported by --help: it belongs into cli/commands.py."""
    assert not app.registered_commands
    assert not app.registered_groups


def test_commands_registered_with_the_app_work_too() -> None:
    """So that a command is never lost, only slow to load."""
    said = []
    other = typer.Typer(cls=app.info.cls)
    other.callback()(lambda: None)
    other.command("another")(lambda: said.append("heard"))
    other(["another"], standalone_mode=False)
    assert said == ["heard"]


def test_public_names_are_there() -> None:
    assert {*grokscope.__all__} <= {*dir(grokscope)}
    for name in grokscope.__all__:
        assert getattr(grokscope, name) is getattr(grokscope.public, name)
    names: dict[str, object] = {}
    exec("from grokscope import *", names)
    assert names.keys() >= {*grokscope.__all__}


@pytest.mark.parametrize("name", ["RunSpecs", "_private", "__wrapped__"])
def test_names_that_are_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'grokscope' has no attribute '{name}'"):
        getattr(grokscope, name)


@pytest.mark.parametrize(
    ("words", "completed"), [("grokscope tra", "train"), ("grokscope train --weight-d", "--weight-decay")]
)
def test_shells_complete_commands_and_their_options(words: str, completed: str) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_GROKSCOPE_COMPLETE": "complete_bash"}
    script = "import sys; sys.argv = ['grokscope']; from grokscope.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [completed]

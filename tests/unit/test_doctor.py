"""`grokscope doctor` where things are as they should be, and where they are not."""

import importlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from tests.integration.processes import here

import grokscope
from grokscope import RunSpec, Store, run
from grokscope.cli.doctor import doctor
from grokscope.doctor import Check, State, kernel, machine, parts, speed
from grokscope.doctor.check import guarded
from grokscope.doctor.stores import check_store
from grokscope.store import DEFAULT_STORE
from grokscope.store.schema import SCHEMA_VERSION


def only(checks: Iterable[Check], state: State) -> Check:
    """The one check in this state. Whatever is not as it should be says in one line what to do."""
    found = list(checks)
    for check in found:
        assert check.state is State.OK or check.advice, check
        assert "\n" not in check.says + (check.advice or "")
    (wanted,) = (check for check in found if check.state is state)
    return wanted


def broken_in(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> list[str]:
    """What a whole report, made by a process, calls broken."""
    done = subprocess.run(
        [sys.executable, "-m", "grokscope", "doctor", "--no-speed", "--json", *arguments],
        cwd=cwd, env=os.environ | (env or {}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    report = json.loads(done.stdout)
    broken = [check["name"] for check in report["checks"] if check["state"] == "broken"]
    assert report["works"] == (not broken)
    assert done.returncode == bool(broken)
    return broken


@pytest.fixture
def quick_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if torch had been loaded."""
    monkeypatch.setattr(parts, "TORCH", "print('2.6.0; --device cpu')")


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick_torch")
def test_a_sound_installation(tmp_path: Path, tiny: RunSpec) -> None:
    Store(tmp_path / "grokscope-runs").save(run(tiny))
    done = here(("doctor", "--no-speed"), tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith(f"Everything that grokscope {grokscope.__version__} needs works.\n")
    for words in ("ok     engine: native", "ok     store: grokscope-runs: 1 runs, 0 sweeps, 0 failures", "Python"):
        assert words in done.stdout


@pytest.mark.usefixtures("quick_torch")
def test_the_report_as_json(tmp_path: Path) -> None:
    done = here(("doctor", "--no-speed", "--json"), tmp_path)
    report = json.loads(done.stdout)
    assert report["version"] == grokscope.__version__
    assert report["works"] is True
    assert {check["name"] for check in report["checks"]} >= {"Python", "torch", "engine", "cores", "disk", "store"}
    assert {key for check in report["checks"] for key in check} == {"name", "says", "state", "advice", "numbers"}


@pytest.mark.usefixtures("quick_torch")
def test_what_is_broken_is_named_at_the_end_and_in_the_exit_status(tmp_path: Path) -> None:
    (tmp_path / "grokscope-runs").write_text("not a directory")
    done = here(("doctor", "--no-speed"), tmp_path)
    assert done.returncode == 1
    assert done.stdout.endswith("Broken: store.\n")
    assert "       → name another store with --store\n" in done.stdout


def test_the_default_store_is_that_of_the_other_commands() -> None:
    assert doctor.__defaults__ is not None
    assert doctor.__defaults__[0] == DEFAULT_STORE


def test_a_package_that_cannot_be_loaded_does_not_stop_the_report(tmp_path: Path) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('built for another processor')")
    assert "numpy" in broken_in(cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})


def test_an_environment_without_anything_but_a_narrow_terminal_of_few_letters(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grokscope", "doctor", "--no-speed"],
        cwd=tmp_path, env={"PYTHONIOENCODING": "ascii", "COLUMNS": "1"}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"note   terminal: not a terminal" in done.stdout
    assert b"? letters such as" in done.stdout


def test_a_directory_that_was_removed(tmp_path: Path) -> None:
    script = (
        "import os, sys, grokscope.cli\n"
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "sys.argv = ['grokscope', 'doctor', '--no-speed']\n"
        "grokscope.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "broken disk: this could not be looked at: FileNotFoundError" in done.stdout


def test_an_error_that_nobody_expected_is_a_finding() -> None:
    def check() -> Iterable[Check]:
        yield Check("this", "is seen")
        raise RuntimeError("first line\nsecond line")

    seen, broken = guarded("that", check)
    assert seen == Check("this", "is seen")
    assert broken.state is State.BROKEN
    assert broken.says == "this could not be looked at: RuntimeError: first line second line"


# ---- stores ----------------------------------------------------------------------------------------------------------


def test_stores_that_are_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the first run makes it" in only(check_store(tmp_path / "a" / "b"), State.OK).says
    assert "the first run makes it one" in only(check_store(tmp_path), State.OK).says
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert "none can be made" in only(check_store(tmp_path / "a" / "b"), State.BROKEN).says


def test_a_store_that_can_only_be_read(tmp_path: Path, tiny: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path).save(run(tiny))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "it can only be read" in only(check_store(tmp_path), State.NOTE).says


@pytest.mark.parametrize("index", [b"", b"not a database at all" * 100, "pipe", "directory", "link to nothing"])
def test_an_index_that_is_none(tmp_path: Path, tiny: RunSpec, index: bytes | str) -> None:
    store = Store(tmp_path)
    store.save(run(tiny))
    store.close()
    for file in tmp_path.glob("index.sqlite*"):
        file.unlink()
    path = tmp_path / "index.sqlite"
    if isinstance(index, bytes):
        path.write_bytes(index)
    elif index == "pipe":
        os.mkfifo(path)
    elif index == "directory":
        path.mkdir()
    else:
        path.symlink_to("nothing")
    assert "store check" in str(only(check_store(tmp_path), State.BROKEN).advice)


def test_a_store_without_its_index(tmp_path: Path, tiny: RunSpec) -> None:
    store = Store(tmp_path)
    store.save(run(tiny))
    store.close()
    for file in tmp_path.glob("index.sqlite*"):
        file.unlink()
    assert "has runs but no index" in only(check_store(tmp_path), State.BROKEN).says


def test_a_store_of_a_newer_release(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / "index.sqlite") as index:
        index.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    index.close()
    assert "written by a newer grokscope" in only(check_store(tmp_path), State.BROKEN).says


def test_a_run_whose_file_is_gone(tmp_path: Path, tiny: RunSpec) -> None:
    store, result = Store(tmp_path), run(tiny)
    store.save(result)
    store.close()
    (file,) = (tmp_path / "runs").glob("*/*")
    file.unlink()
    assert result.run_id in only(check_store(tmp_path), State.BROKEN).says


def test_a_changed_sweep(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.record_sweep("mine", {"axes": []}, [], refined=False)
    store.close()
    with sqlite3.connect(tmp_path / "index.sqlite") as index:
        index.execute("UPDATE sweeps SET definition = '{}'")
    index.close()
    assert "damaged in the store" in only(check_store(tmp_path), State.BROKEN).says


# ---- packages --------------------------------------------------------------------------------------------------------


def test_packages_that_are_missing_or_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"numpy": "1.26.4", "torch": "2.13.0+cpu", "plotly": "6.0"}
    wanted = ["torch>=2.6", "numpy>=2.0", "tomli-w>=1.1", 'plotly>=6; extra == "explore"', 'pytest>=8; extra == "dev"']

    def version(package: str) -> str:
        if package not in there:
            raise metadata.PackageNotFoundError(package)
        return there[package]

    monkeypatch.setattr(metadata, "requires", lambda _: wanted)
    monkeypatch.setattr(metadata, "version", version)
    broken = only(parts.check_needed(), State.BROKEN)
    assert broken.says == "numpy 1.26.4 is older than 2.0, tomli-w is missing"
    assert broken.advice == "pip install 'numpy>=2.0' 'tomli-w>=1.1'"
    assert [check.says for check in parts.check_optional()] == ["plotly 6.0"]
    del there["plotly"]
    absent = only(parts.check_optional(), State.ABSENT)
    assert absent.advice == "if you want it: pip install 'grokscope[explore]'"


def test_all_requirements_are_understood() -> None:
    """Or the report would leave some out."""
    lines = metadata.requires("grokscope") or []
    assert lines
    assert [line for line in lines if parts.Requirement.parse(line) is None] == []


def test_grokscope_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(_: str) -> None:
        raise metadata.PackageNotFoundError("grokscope")

    monkeypatch.setattr(metadata, "requires", requires)
    assert "not installed" in only(parts.check_needed(), State.NOTE).says
    assert list(parts.check_optional()) == []


def test_torch_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, words in (
        ("raise ImportError('libcudart.so.12: no such file')", "libcudart.so.12: no such file (exit status 1)"),
        ("import os; os.kill(os.getpid(), 4)", "it said nothing (exit status -4)"),  # an illegal instruction
    ):
        monkeypatch.setattr(parts, "TORCH", code)
        broken = only(parts.check_torch(), State.BROKEN)
        assert words in broken.says
        assert broken.advice == "pip install --force-reinstall torch"
    monkeypatch.setattr(parts, "TORCH", "import time; time.sleep(60)")
    monkeypatch.setattr(parts, "LONG", 0.1)
    assert "not done after" in only(parts.check_torch(), State.BROKEN).says


# ---- kernel and speed ------------------------------------------------------------------------------------------------


def test_a_package_without_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grokscope._native", None)
    assert "C++ compiler" in str(only(kernel.check_kernel(), State.NOTE).advice)
    monkeypatch.setattr("grokscope.compiled.native_module", lambda: None)
    assert "no kernel" in only(speed.check_speed(), State.OK).says


def test_a_kernel_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(_: str) -> None:
        raise ImportError("version `GLIBC_2.99' not found")

    monkeypatch.setattr(importlib, "import_module", import_module)
    assert "GLIBC_2.99" in only(kernel.check_kernel(), State.BROKEN).says


def test_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    native = importlib.import_module("grokscope._native")
    monkeypatch.delenv("GROKSCOPE_ISA", raising=False)
    monkeypatch.setattr(kernel, "compiled_levels", lambda: ["plain", "avx2", "avx512"])
    monkeypatch.setattr(native, "available_levels", lambda: ["plain", "avx2"])
    assert "avx2, the fastest of both" in [*kernel.check_kernel()][1].says
    monkeypatch.setenv("GROKSCOPE_ISA", "plain")
    assert only(kernel.check_kernel(), State.NOTE).advice == "unset GROKSCOPE_ISA to use avx2"
    monkeypatch.setenv("GROKSCOPE_ISA", "avx1024")
    assert only(kernel.check_kernel(), State.BROKEN).advice == "unset GROKSCOPE_ISA"
    assert list(speed.check_speed()) == []
    monkeypatch.delenv("GROKSCOPE_ISA")
    monkeypatch.setattr(native, "available_levels", lambda: ["plain"])
    assert "this CPU has no AVX2" in only(kernel.check_kernel(), State.NOTE).says


def test_the_speed_is_measured_at_every_level(level: str) -> None:
    measured = speed.measure(level, 0.01)
    assert min(measured) > 0
    assert measured.share <= 1
    # 6·n·N·p operations a step: three products of [n, N] with [N, p], each number a multiplication and an addition.
    assert measured.gigaflops == pytest.approx(measured.steps * 6 * 4704 * 500 * 97 / 1e9)


@pytest.mark.parametrize(
    ("of_peak", "share", "load", "state", "words"),
    [
        (0.81, 1.0, 0.0, State.OK, "as it should be"),
        (0.81, 0.4, 9.0, State.NOTE, "as it should be, in the time that this process got"),
        (0.31, 0.4, 9.0, State.NOTE, "other programs took 60% of the core's time"),
        (0.31, 1.0, 9.0, State.NOTE, "load 9.0 on 2"),
        (0.31, 1.0, 0.0, State.NOTE, "hot or saving power"),
    ],
)
def test_verdicts(
    monkeypatch: pytest.MonkeyPatch, of_peak: float, share: float, load: float, state: State, words: str
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    found, verdict, advice = speed.judged(speed.Speed(60, of_peak * 50, 50, share))
    assert found is state
    assert words in f"{verdict} {advice}"


# ---- the machine -----------------------------------------------------------------------------------------------------


def test_limits_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr("grokscope.sweeps.running.available_cores", lambda: 8)
    assert all(check.state is State.OK for check in machine.check_cores())
    (tmp_path / "cpu.max").write_text("250000 100000\n")
    assert str(only(machine.check_cores(), State.NOTE).advice).startswith("use --workers 2")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert all(check.state is State.OK for check in machine.check_cores())
    (tmp_path / "memory.max").write_text("1000000000\n")
    (tmp_path / "memory.current").write_text("500000000\n")
    assert only(machine.check_memory(), State.NOTE).advice == "use --workers 3"


def test_a_system_that_says_nothing_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: (_ for _ in ()).throw(OSError("no such file")))
    assert "cannot be told" in only(machine.check_memory(), State.OK).says


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LITTLE_DISK", 1e30)
    assert "free some" in str(only(machine.check_disk(tmp_path / "not" / "there"), State.NOTE).advice)

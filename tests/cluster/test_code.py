"""A user's own code on workers that cannot see the directory it is in."""

import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from tests.cluster.dask_processes import DaskProcesses, check_stored_once, do_all

import grokscope as gs
from grokscope import RunSpec, Store
from grokscope.cluster import code
from grokscope.cluster.code import Traveller, unpack_code
from grokscope.extension import ExtensionError
from grokscope.sweeps import Running

MEASURING = """
import grokscope as gs
{imports}


class {name}(gs.Measurement):
    columns = ("{column}",)

    def measure(self, moment):
        return {{"{column}": {expression}}}
"""


def measuring(file: str, name: str, imports: str, expression: str) -> None:
    """Write a file with a measurement in it."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = MEASURING.format(imports=imports, name=name, column=name.lower(), expression=expression)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a directory of its own, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def with_measurements(spec: RunSpec, *kinds: str) -> RunSpec:
    return spec.updated({"training.measurements": list(kinds), "training.steps": 3})


@pytest.mark.usefixtures("_here")
def test_your_own_files_and_packages_travel(
    whole: DaskProcesses, tiny: RunSpec, tmp_path: Path, serial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with one beside it, with a package, with a directory without __init__.py; and a module by its name."""
    Path("moments.py").write_text("from further import power\n\ndef second(x):\n    return float(power(x).mean())\n")
    Path("further.py").write_text("def power(x):\n    return x**2\n")
    measuring("mine.py", "Beside", "from moments import second", "second(moment.weights['U'])")
    Path("helpers").mkdir()
    Path("helpers/__init__.py").write_text("")
    Path("helpers/sums.py").write_text("from .parts import half\n\ndef total(x):\n    return half(float(x.sum()))\n")
    Path("helpers/parts.py").write_text("def half(x):\n    return x / 2\n")
    measuring("packed.py", "Package", "from helpers.sums import total", "total(moment.weights['U'])")
    Path("plain").mkdir()
    Path("plain/least.py").write_text("def least(x):\n    return float(x.min())\n")
    measuring("bare.py", "Plain", "import plain.least", "plain.least.least(moment.weights['U'])")
    measuring("apart/own/measures.py", "Module", "from .most import most", "most(moment.weights['U'])")
    Path("apart/own/most.py").write_text("def most(x):\n    return float(x.max())\n")
    monkeypatch.syspath_prepend(tmp_path / "apart")
    kinds = ("mine.py:Beside", "packed.py:Package", "bare.py:Plain", "own.measures:Module")
    spec = with_measurements(tiny, *kinds)
    with whole.cluster() as cluster:
        do_all([spec], tmp_path / "store", Running(cluster=cluster))
    stored = Store(tmp_path / "store").resolve(spec.run_id)
    assert stored.spec.training.measurements == spec.training.measurements
    assert stored.final is not None
    assert all(stored.final[column] is not None for column in ("beside", "package", "plain", "module"))
    check_stored_once([spec], tmp_path / "store", serial)


@pytest.mark.usefixtures("_here")
def test_a_worker_takes_each_sweeps_own_version_of_what_a_file_imports(
    whole: DaskProcesses, tiny: RunSpec, tmp_path: Path
) -> None:
    """The file that the spec names stays the same, and so does the name of the one beside it."""
    measuring("steady.py", "Steady", "from changing import number", "number")
    spec = with_measurements(tiny, "steady.py:Steady")
    seen: list[set[float | None]] = []
    for number in (1.0, 2.0, 1.0):
        Path("changing.py").write_text(f"number = {number}\n")
        store = tmp_path / f"store{len(seen)}"
        with whole.cluster() as cluster:
            do_all([spec.updated({"training.seed": seed}) for seed in range(4)], store, Running(cluster=cluster))
        seen.append({run.final["steady"] for run in Store(store).all() if run.final})
    assert seen == [{1.0}, {2.0}, {1.0}]


@pytest.mark.usefixtures("_here")
def test_what_is_installed_does_not_travel(tiny: RunSpec) -> None:
    measuring("mine.py", "Alone", "import json\nimport numpy as np\nimport torch", "float(np.sum(moment.weights['U']))")
    assert list(Traveller().pack(with_measurements(tiny, "mine.py:Alone"))["mine.py"]) == ["mine.py"]


@pytest.mark.usefixtures("_here")
def test_what_cannot_travel_is_refused_before_anything_is_submitted(
    tiny: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring("mine.py", "Fast", "import fast", "fast.number")
    Path("fast.py").write_text("number = 1.0\n")
    base = with_measurements(tiny, "mine.py:Fast")  # imports both
    compiled = Path("fast.py").rename(f"fast{EXTENSION_SUFFIXES[0]}")
    nobody = "tcp://127.0.0.1:1"  # is never asked
    with pytest.raises(ExtensionError, match=r"fast.* is not written in Python.*: install it on them"):
        gs.sweep({"training.seed": [0]}, base=base, cluster=nobody, progress=False)
    compiled.rename("fast.py")
    monkeypatch.setattr(code, "MOST_BYTES", 100)
    with pytest.raises(ExtensionError, match=r"MB of source, too much to travel.* install that on them"):
        gs.sweep({"training.seed": [0]}, base=base, cluster=nobody, progress=False)
    assert not Path("grokscope-runs").exists()


def test_nothing_is_written_outside_of_the_directory_for_it(tmp_path: Path) -> None:
    with pytest.raises(ExtensionError, match="lies outside"):
        unpack_code({"mine.py": {"mine.py": b"", "../other.py": b""}}, tmp_path / "code")
    assert not list(tmp_path.rglob("other.py"))

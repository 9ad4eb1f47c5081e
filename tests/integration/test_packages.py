"""What `make dist` builds, as users get it: installed into empty environments, and used outside of the source."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import grokscope

ROOT = Path(__file__).parents[2]
PROJECT_NEEDS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "dependencies"
]
TRAIN = ("train", "--modulus", "11", "--width", "24", "--steps", "30", "--json")

pytestmark = pytest.mark.verify  # a build of the kernel takes most of a minute


def completed(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=outside | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` makes of a copy of the source, which it may litter."""
    copy = tmp_path_factory.mktemp("source")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    completed("make", "-o", ".venv/installed-dev", f"BIN={sys.prefix}/bin", "dist", cwd=copy)
    return copy / "dist"


def environment(path: Path, package: Path, **settings: str) -> Path:
    """An empty environment with a package in it; what the package needs, torch above all, is borrowed from this one."""
    completed(sys.executable, "-m", "venv", "--without-pip", path, cwd=path.parent)
    (site,) = (path / "lib").glob("python3.*/site-packages")
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    assert torch.origin is not None
    (site / "borrowed.pth").write_text(str(Path(torch.origin).parents[1]))
    completed(
        *(sys.executable, "-m", "pip", "--python", path / "bin" / "python", "install", "--quiet"),
        *("--no-deps", "--no-index", "--no-build-isolation", package),
        cwd=path.parent,
        **settings,
    )
    return path / "bin" / "grokscope"


def test_the_wheel_trains_with_its_kernel(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert "-manylinux_" in wheel.name
    command = environment(tmp_path / "env", wheel)
    place = completed(
        tmp_path / "env" / "bin" / "python", "-c", "import grokscope; print(grokscope.__file__)", cwd=tmp_path
    )
    assert Path(place.stdout.strip()).is_relative_to(tmp_path / "env")
    assert completed(command, "--version", cwd=tmp_path).stdout == f"grokscope {grokscope.__version__}\n"
    trained = completed(command, *TRAIN, cwd=tmp_path)
    assert json.loads(trained.stdout)["engine"] == "native"
    assert trained.stderr.count("kernel") == 0
    report = json.loads(completed(command, "doctor", "--no-speed", "--json", cwd=tmp_path).stdout)
    assert {"engine": "ok", "instructions": "ok"}.items() <= {c["name"]: c["state"] for c in report["checks"]}.items()
    run_id = json.loads(trained.stdout)["run_id"]
    completed(command, "show", run_id, "--out", "run.png", cwd=tmp_path)  # the style of the pictures is in the wheel


def test_the_wheel_has_every_file_of_the_package_and_no_other(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    source = ROOT / "src"
    expected = {
        str(path.relative_to(source))
        for path in (source / "grokscope").rglob("*")
        if path.is_file() and path.suffix not in (".so", ".pyc")
    }
    with zipfile.ZipFile(wheel) as content:
        inside = {name for name in content.namelist() if ".dist-info/" not in name and name[-1] != "/"}
    (kernel,) = inside - expected
    assert kernel.startswith("grokscope/_native.")
    assert expected - inside == set()


def test_the_source_installs_without_a_compiler_and_says_so_once(dist: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    command = environment(tmp_path / "env", sdist, CC="false", CXX="false")
    trained = completed(command, *TRAIN, cwd=tmp_path)
    assert json.loads(trained.stdout)["engine"] == "torch"
    assert trained.stderr.count("the native kernel is not built") == 1
    report = json.loads(completed(command, "doctor", "--no-speed", "--json", cwd=tmp_path).stdout)
    assert report["works"] is True
    assert [check["name"] for check in report["checks"] if "kernel is not built" in check["says"]] == ["engine"]


def test_the_source_installs_where_there_is_no_compiler_on_the_path(dist: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    command = environment(tmp_path / "env", sdist, PATH="/nonexistent")
    assert json.loads(completed(command, *TRAIN, cwd=tmp_path).stdout)["engine"] == "torch"


def python_called(version: str) -> str | None:
    """One that runs: on the path, or among those of pyenv, which has scripts on the path for versions that are off."""
    of_pyenv = (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")
    for found in (shutil.which(f"python{version}"), *map(str, sorted(of_pyenv))):
        if found and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0:
            return found
    return None


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_other_pythons_train_with_the_kernel(dist: Path, tmp_path: Path, version: str) -> None:
    """Without torch, whose builds without CUDA are not in every index; the native engine does not need it."""
    found = python_called(version)
    if found is None:
        pytest.skip(f"there is no Python {version} here")
    (sdist,) = dist.glob("*.tar.gz")
    completed(found, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    needed = [line for line in PROJECT_NEEDS if not line.startswith("torch")]
    completed(python, "-m", "pip", "install", "--quiet", *needed, "setuptools>=77", "pybind11>=2.13", cwd=tmp_path)
    completed(
        *(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", sdist),
        cwd=tmp_path,
    )
    (package,) = (tmp_path / "env" / "lib").glob("python3.*/site-packages/grokscope")
    completed(python, "-W", "error", "-m", "compileall", "-q", "-f", package, cwd=tmp_path)
    trained = completed(python, "-W", "error", "-m", "grokscope", *TRAIN, cwd=tmp_path)
    assert json.loads(trained.stdout)["engine"] == "native"
    listed = completed(python, "-W", "error", "-m", "grokscope", "runs", "list", cwd=tmp_path)
    assert "Warning" not in trained.stderr + listed.stderr  # one in a destructor is printed, and does not stop anything

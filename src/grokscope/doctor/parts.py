"""Python and the packages that grokscope needs or can use, as its own metadata lists them."""

import importlib
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import NamedTuple

from grokscope.doctor.check import Check, State
from grokscope.errors import in_one_line

TORCH = """
import torch
devices = ["cpu"]
if torch.cuda.is_available():
    devices += [f"cuda:{index} ({torch.cuda.get_device_name(index)})" for index in range(torch.cuda.device_count())]
if torch.backends.mps.is_available():
    devices.append("mps")
print(f"{torch.__version__}; --device {', '.join(devices)}")
"""
LONG = 120  # seconds
MODULES = {"pillow": "PIL"}  # of packages whose module has another name
NOT_SHOWN = {"dev"}  # the extra for working on grokscope itself


class Requirement(NamedTuple):
    """A package, the least version that will do, and the extra that it belongs to."""

    package: str
    least: str
    extra: str

    @classmethod
    def parse(cls, line: str) -> "Requirement | None":
        """Read a line of a package's metadata. What it says of systems and of newest versions is left aside.

        >>> Requirement.parse('plotly[express]<8,>=6; extra == "explore"')
        Requirement(package='plotly', least='6', extra='explore')
        """
        name = re.match(r"[\w.-]+", line)
        least, extra = re.search(r">=\s*([\w.]+)", line.split(";")[0]), re.search(r"extra == ['\"]([\w-]+)", line)
        return cls(name[0], least[1] if least else "0", extra[1] if extra else "") if name else None

    def __str__(self) -> str:
        return f"{self.package}>={self.least}"


def check_python() -> Iterator[Check]:
    """The interpreter."""
    where = (
        f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    yield Check("Python", f"{where}, {sys.prefix}")


def check_needed() -> Iterator[Check]:
    """The packages without which nothing works."""
    requirements = [each for each in _requirements() if not each.extra]
    if not requirements:
        advice = "install it: pip install grokscope, or pip install -e . in its source"
        yield Check("packages", "grokscope is not installed, so what it needs is not known", State.NOTE, advice)
        return
    unfit = [each for each in requirements if not _is_there(each)]
    if unfit:
        says = ", ".join(_status(each) for each in unfit)
        yield Check("packages", says, State.BROKEN, f"pip install {shlex.join(str(each) for each in unfit)}")
    fit = [each for each in requirements if each not in unfit]
    for each in fit:
        module = MODULES.get(each.package, each.package.replace("-", "_"))
        if each.package != "torch" and (reason := _why_not_loaded(module)):
            yield _not_loaded(each.package, reason)
    yield Check("packages", ", ".join(f"{each.package} {_version(each.package)}" for each in fit))


def check_torch() -> Iterator[Check]:
    """Whether torch can be loaded, and which devices it has. Loading it can end a process, so another one does it."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", TORCH], capture_output=True, text=True, errors="replace", timeout=LONG, check=False
        )
    except subprocess.TimeoutExpired:
        yield _not_loaded("torch", f"it was not done after {LONG} seconds")
        return
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        yield _not_loaded("torch", in_one_line(f"{last} (exit status {done.returncode})"))
    else:
        yield Check("torch", done.stdout.strip().splitlines()[-1])


def check_optional() -> Iterator[Check]:
    """Each extra: the versions of its packages, or how to install them."""
    extras: dict[str, list[Requirement]] = {}
    for each in _requirements():
        if each.extra and each.extra not in NOT_SHOWN:
            extras.setdefault(each.extra, []).append(each)
    for extra, requirements in sorted(extras.items()):
        missing = [each for each in requirements if not _is_there(each)]
        says = ", ".join(_status(each) for each in requirements)
        advice = f"if you want it: pip install 'grokscope[{extra}]'" if missing else None
        yield Check(f"optional: {extra}", says, State.ABSENT if missing else State.OK, advice)


def _requirements() -> list[Requirement]:
    try:
        lines = metadata.requires("grokscope") or []
    except metadata.PackageNotFoundError:
        return []
    return [each for each in map(Requirement.parse, lines) if each]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _is_there(each: Requirement) -> bool:
    version = _version(each.package)
    return version is not None and _numbers(version) >= _numbers(each.least)


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers in front, enough to compare releases: 2.13.0+cpu is (2, 13, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def _why_not_loaded(module: str) -> str | None:
    """The error of importing it: a library of another Python or processor, or one that is missing."""
    try:
        importlib.import_module(module)
    except Exception as error:
        return in_one_line(f"{type(error).__name__}: {error}")
    return None


def _not_loaded(package: str, reason: str) -> Check:
    advice = f"pip install --force-reinstall {package}"
    return Check(package, f"{package} cannot be loaded: {reason}", State.BROKEN, advice)


def _status(each: Requirement) -> str:
    version = _version(each.package)
    if version is None:
        return f"{each.package} is missing"
    return f"{each.package} {version}" if _is_there(each) else f"{each.package} {version} is older than {each.least}"

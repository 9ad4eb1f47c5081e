"""Cores, memory, disk and terminal."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from grokscope.doctor.check import Check, State

MEGABYTES_OF_A_WORKER = 150  # with the native engine; benchmarks/results-amd-epyc-avx2.json has 78
LITTLE_DISK = 1e9  # bytes
CGROUP = Path("/sys/fs/cgroup")


def check_cores() -> Iterator[Check]:
    """How many runs are trained side by side."""
    from grokscope.sweeps.running import available_cores

    cores, there, quota = available_cores(), os.cpu_count() or 1, _cpu_quota()
    says = f"{cores} of {there} cores may be used; --workers auto trains {cores} runs at once, one thread each"
    if quota is not None and quota < cores:
        advice = f"use --workers {max(1, int(quota))}: more would only wait for each other"
        yield Check("cores", f"{says}, but the container may use only {quota:g}", State.NOTE, advice)
    else:
        yield Check("cores", says, numbers={"available": cores, "there": there})
    if hasattr(os, "getloadavg"):
        load = os.getloadavg()[0]
        busy = load > 0.5 * there
        slower = "sweeps are slower and their estimates too short while other programs run" if busy else None
        says = f"{load:.1f} programs wanted one of the {there} cores in the last minute"
        yield Check("load", says, State.NOTE if busy else State.OK, slower, {"load": load})


def check_memory() -> Iterator[Check]:
    """Whether there is enough for a worker on every core."""
    from grokscope.sweeps.running import available_cores

    free = _free_memory()
    if free is None:
        yield Check("memory", "how much is free cannot be told on this system")
        return
    needed = available_cores() * MEGABYTES_OF_A_WORKER * 1e6
    says = f"{free / 1e9:.1f} GB free; a sweep here needs about {needed / 1e9:.1f} GB"
    few = free < needed
    advice = f"use --workers {max(1, int(free / MEGABYTES_OF_A_WORKER / 1e6))}" if few else None
    yield Check("memory", says, State.NOTE if few else State.OK, advice, {"free_bytes": free})


def check_disk(store: Path) -> Iterator[Check]:
    """Whether there is room where the store is, or will be."""
    place = store.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    says = f"{free / 1e9:.1f} GB free for the store at {store}"
    little = free < LITTLE_DISK
    advice = "free some, or name a store elsewhere with --store; a run takes 0.1 to 10 MB" if little else None
    yield Check("disk", says, State.NOTE if little else State.OK, advice, {"free_bytes": float(free)})


def check_terminal() -> Iterator[Check]:
    """What pictures and symbols in the terminal will look like."""
    from rich.console import Console

    console = Console()
    encoding = getattr(sys.stdout, "encoding", None) or "none"
    plain = console.no_color or not console.color_system
    colours = "no colours" if plain else f"{console.color_system} colours"
    kind = "a terminal" if console.is_terminal else "not a terminal"
    why = next((f" ({name} is set)" for name in ("NO_COLOR", "FORCE_COLOR") if os.environ.get(name)), "")
    says = f"{kind}, TERM = {os.environ.get('TERM', '')!r}, {colours}{why}, {encoding}, {console.width} columns"
    if encoding.lower().replace("-", "").replace("_", "") != "utf8":
        advice = "letters such as α are shown as ?; for them: export LC_ALL=C.UTF-8, or PYTHONIOENCODING=utf-8"
        yield Check("terminal", says, State.NOTE, advice)
    else:
        yield Check("terminal", says)


def _cpu_quota() -> float | None:
    """How many cores a container may use; None if there is no limit."""
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _free_memory() -> float | None:
    """Bytes that can be had without swapping, and that a container may have; None where that cannot be told."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = float(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return None
    try:
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return free
    return min(free, float(limit - used))

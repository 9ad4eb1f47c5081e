"""Processes under test."""

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from grokscope.cli import main

# Commands that look at what is there and start no process. They run in this one, with torch and matplotlib loaded
# once for all; `test_cli.py` has them as processes.
LOOKING = {
    "runs", "show", "status", "store", "sweeps", "figures", "phase-diagram",
    "prune", "spectrum", "logits", "dynamics", "ablate", "audit",
}  # fmt: skip


def grokscope(*arguments: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    looking = arguments[0] in LOOKING or "--dry-run" in arguments
    done = here(arguments, cwd) if looking else _in_a_process(arguments, cwd)
    assert not check or done.returncode == 0, done.stderr
    return done


def _in_a_process(arguments: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "grokscope", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def here(arguments: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in this process."""
    out, err = StringIO(), StringIO()
    status: int | str | None = 0
    with (
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", ["grokscope", *arguments]),
        patch.object(warnings, "formatwarning", warnings.formatwarning),  # `main` sets its own
        patch.object(warnings, "showwarning", _show_warning),  # pytest would keep them
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as end:
            status = end.code
    return subprocess.CompletedProcess(arguments, int(status or 0), out.getvalue(), err.getvalue())


def _show_warning(message: Warning | str, category: type[Warning], file: str, line: int, *_: object) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, file, line))


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, "-m", "grokscope", *arguments],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def children(pid: int) -> set[int]:
    """The processes that a process has started and that have not ended."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return {int(child) for child in listed.stdout.split()}


def command_line(pid: int) -> str:
    """What a process was started as, whole (-ww: not cut to the width of a terminal); empty if it has ended."""
    listed = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout


def is_running(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state) and not state.startswith("Z")


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Look again and again, and fail after a time that is long even on a busy machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.05)

"""Which process holds a lease, and whether it is still alive.

>>> is_alive(owner_name(), expires=0)
True
"""

import os
import re
import socket
import time
from functools import cache
from pathlib import Path

_FARTHEST = 3600.0  # seconds; no lease lasts as long, and a clock that is farther off is no clock


@cache
def owner_name() -> str:
    """This process: its host, its number and its start. The start is needed because process numbers are reused."""
    return f"{_here()}/{os.getpid()}/{_start_of(os.getpid())}"


def describe_owner(owner: str) -> str:
    """For a person who may want to look at the process, or end it.

    >>> describe_owner("elsewhere/4711/99")
    'process 4711 on elsewhere'
    """
    host, pid, _ = owner.rsplit("/", 2)
    return f"process {pid}" if host == _here() else f"process {pid} on {host.partition('~')[0]}"


def is_alive(owner: object, expires: object) -> bool:
    """Whether the owner of a lease still works on it.

    A process of this host can be looked up, so a killed process frees its runs at once. A process of another host
    counts as alive until its lease expires. What is not the name of a process holds nothing: a damaged index may have
    anything in its place.
    """
    if not isinstance(owner, str) or not isinstance(expires, int | float):
        return False
    if not (name := re.fullmatch(r"(.+)/([0-9]{1,9})/(\w+)", owner, re.DOTALL)):
        return False
    host, pid, start = name.groups()
    if host != _here():
        return time.time() < expires < time.time() + _FARTHEST
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is alive, and belongs to another user
    return _start_of(int(pid)) == start


@cache
def _here() -> str:
    """This host and, on Linux, which of its process tables: a container has its own, often with the host's name."""
    try:
        table = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}~{re.sub(r'[^0-9]', '', table)}"


def _start_of(pid: int) -> str:
    """When a process started, in the units of the system; "unknown" where the system does not say."""
    try:
        # The second field is the program's name in brackets, which may contain anything. After it come the state …
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return "unknown"
    return "ended" if fields[0] in "ZX" else fields[19]  # … and, as the 20th, the start

"""Who holds a lease, and whether they are still there.

>>> is_alive(owner_name(), expires=0)
True
"""

import os
import socket
import time
from functools import cache
from pathlib import Path


@cache
def owner_name() -> str:
    """This process: its host, its number, and when it started, because numbers are used again."""
    return f"{socket.gethostname()}/{os.getpid()}/{_start_of(os.getpid())}"


def describe_owner(owner: str) -> str:
    """For a person who may want to look at the process, or end it.

    >>> describe_owner("elsewhere/4711/99")
    'process 4711 on elsewhere'
    """
    host, pid, _ = owner.rsplit("/", 2)
    return f"process {pid}" if host == socket.gethostname() else f"process {pid} on {host}"


def is_alive(owner: str, expires: float) -> bool:
    """Whether the owner of a lease still works on it.

    A process of this host is looked up, so a killed one frees its runs at once. Of another host nothing is known but
    that it has not renewed its lease.
    """
    host, pid, start = owner.rsplit("/", 2)
    if host != socket.gethostname():
        return expires > time.time()
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is there, and somebody else's
    return _start_of(int(pid)) == start


def _start_of(pid: int) -> str:
    """When a process started, in the system's own units; the same word for all where the system does not say."""
    try:
        # The second field is the program's name in brackets and may hold anything; after it come the state …
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return "unknown"
    return "ended" if fields[0] in "ZX" else fields[19]  # … and, 20th, the start

"""A real SSH server on 127.0.0.1, in a process of its own, that runs commands as the user of the tests does."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncssh


@contextmanager
def ssh_server(directory: Path) -> Iterator[str]:
    """While it listens: the table [ssh.connect_options] with which it can be reached."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        port, public = server.stdout.readline().split(maxsplit=1)
        known = directory / "known_hosts"
        known.write_text("".join(f"[{host}]:{port} {public}" for host in ("127.0.0.1", "localhost")))
        try:
            yield f'[ssh.connect_options]\nport = {port}\nusername = "me"\nknown_hosts = "{known}"\nconfig = []\n'
        finally:
            server.stdin.close()  # which it waits for


class _Open(asyncssh.SSHServer):  # type: ignore[misc]
    def begin_auth(self, username: str) -> bool:
        return False  # nobody has to prove who they are: it lives for a test, on this machine


async def _run(process: "asyncssh.SSHServerProcess[bytes]") -> None:
    """Run a command, and end it with the connection."""
    child = await asyncio.create_subprocess_shell(
        process.command or "", start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip

    async def pass_on(source: asyncio.StreamReader | None, to: "asyncssh.SSHWriter[bytes]") -> None:
        while source and (data := await source.read(4096)):
            to.write(data)

    async def to_its_end() -> None:
        await asyncio.gather(pass_on(child.stdout, process.stdout), pass_on(child.stderr, process.stderr))
        process.exit(await child.wait())

    running = [asyncio.ensure_future(to_its_end()), asyncio.ensure_future(process.wait_closed())]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


async def _serve() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(
        _Open, "127.0.0.1", 0, server_host_keys=[key], process_factory=_run, encoding=None
    )
    sys.stdout.write(f"{server.get_port()} {key.export_public_key().decode()}")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())

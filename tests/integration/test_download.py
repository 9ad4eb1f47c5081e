"""Downloads from a server on this machine: whole, interrupted, wrong."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from grokscope.images import ImageDataError
from grokscope.images.download import download_mnist

FILES = {f"file{i}.gz": np.random.default_rng(i).bytes(300_000 + i) for i in range(2)}
CHECKSUMS = {name: hashlib.md5(content).hexdigest() for name, content in FILES.items()}


class Handler(BaseHTTPRequestHandler):
    """Serves FILES; `breaks_after` ends an answer early, `ranges` says whether it can begin in the middle."""

    breaks_after: int | None = None
    ranges = True
    requests: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        name, wanted = self.path.rsplit("/", 1)[-1], self.headers.get("Range")
        type(self).requests.append((name, wanted))
        if name not in FILES:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        content = FILES[name]
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : None if self.breaks_after is None else start + self.breaks_after])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name that http.server gives it)
        """Nothing on the terminal."""


@pytest.fixture
def server() -> Iterator[tuple[type[Handler], str]]:
    handler = type("Own", (Handler,), {"requests": []})
    served = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield handler, f"http://127.0.0.1:{served.server_port}/mnist/"
    served.shutdown()
    thread.join()
    served.server_close()


def test_all_files_come_with_progress_and_are_not_fetched_twice(
    server: tuple[type[Handler], str], tmp_path: Path
) -> None:
    handler, mirror = server
    seen: list[tuple[str, int, int]] = []
    paths = download_mnist(
        tmp_path / "new", mirror=mirror, checksums=CHECKSUMS, on_progress=lambda *step: seen.append(step)
    )
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert seen[-1] == ("file1.gz", 300_001, 300_001)
    assert [done for name, done, _ in seen if name == "file0.gz"] == sorted({d for n, d, _ in seen if n == "file0.gz"})
    download_mnist(tmp_path / "new", mirror=mirror, checksums=CHECKSUMS)
    assert len(handler.requests) == 2


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_goes_on(ranges: bool, server: tuple[type[Handler], str], tmp_path: Path) -> None:
    handler, mirror = server
    handler.ranges, handler.breaks_after = ranges, 100_000
    with pytest.raises(ImageDataError, match="the same command goes on"):
        download_mnist(tmp_path, mirror=mirror, checksums=CHECKSUMS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file0.gz.part"]  # nothing that looks whole
    handler.breaks_after = None
    paths = download_mnist(tmp_path, mirror=mirror, checksums=CHECKSUMS)
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert ("file0.gz", "bytes=100000-") in handler.requests
    assert not list(tmp_path.glob("*.part"))


def test_a_part_that_is_whole_or_too_long(server: tuple[type[Handler], str], tmp_path: Path) -> None:
    handler, mirror = server
    (tmp_path / "file0.gz.part").write_bytes(FILES["file0.gz"])
    (tmp_path / "file1.gz.part").write_bytes(FILES["file1.gz"] + b"more")
    paths = download_mnist(tmp_path, mirror=mirror, checksums=CHECKSUMS)
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert [name for name, _ in handler.requests] == ["file1.gz", "file1.gz"]


def test_a_wrong_file_is_not_kept(server: tuple[type[Handler], str], tmp_path: Path) -> None:
    _, mirror = server
    with pytest.raises(ImageDataError, match="its MD5 is another"):
        download_mnist(tmp_path, mirror=mirror, checksums={"file0.gz": "0" * 32})
    assert not list(tmp_path.iterdir())


def test_what_is_not_there_is_one_line(server: tuple[type[Handler], str], tmp_path: Path) -> None:
    _, mirror = server
    with pytest.raises(ImageDataError, match=r"cannot get .*missing\.gz: Not Found"):
        download_mnist(tmp_path, mirror=mirror, checksums={"missing.gz": "0" * 32})
    with pytest.raises(ImageDataError, match="cannot get"):
        download_mnist(tmp_path, mirror="http://127.0.0.1:1/", checksums=CHECKSUMS)

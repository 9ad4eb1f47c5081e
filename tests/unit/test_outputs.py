"""What is written for users is there whole or not at all, for whom the user's umask says."""

import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from grokscope.errors import GrokscopeError
from grokscope.outputs import check_writable, write_file, write_table, write_text
from grokscope.plots import save_figure


def test_text_replaces_a_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.md"
    for text in ("ξ = 0.2\n", "α\n"):
        assert write_text(path, text) == path.resolve()
        assert path.read_bytes() == text.encode()
    assert list(path.parent.iterdir()) == [path]


def test_a_file_can_be_read_by_those_who_may_read_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "page.md", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "page.md").stat().st_mode) == 0o640


def test_a_write_that_fails_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_text(tmp_path / "page.md", "before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GrokscopeError, match=r"cannot write .*page\.md: No space left on device"):
        write_text(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link.md").symlink_to("page.md")
    write_text(tmp_path / "link.md", "text")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "page.md").read_text() == "text"


def test_a_check_leaves_no_file(tmp_path: Path) -> None:
    check_writable([tmp_path / "new" / "page.md"])
    assert [path.name for path in tmp_path.rglob("*")] == ["new"]
    (tmp_path / "file").write_text("")
    with pytest.raises(GrokscopeError, match="name another --out"):
        check_writable([tmp_path / "file" / "page.md"])


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow beyond some bytes, which is as with a disk that fills up in the middle of a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("run.safetensors", lambda path: write_file(path, bytes(1000))),
        ("ledger.md", lambda path: write_text(path, "x" * 1000)),
        ("cells.csv", lambda path: write_table(path, {"step": range(1000)})),
        *((f"run.{kind}", lambda path: save_figure(Figure(), path)) for kind in ("png", "pdf", "svg")),
    ],
)
def test_a_full_disk_leaves_what_was_there(name: str, write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("before")
    with full_disk(), pytest.raises(GrokscopeError, match=rf"cannot write .*{name}: File too large"):
        write(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    write(path)
    assert path.stat().st_size > 100


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    path = write_text(tmp_path / "page.md", "before")
    path.chmod(0o600)
    write_text(path, "after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_may_not_be_written_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_text(tmp_path / "page.md", "before")
    path.chmod(0o400)
    monkeypatch.setattr(os, "access", lambda *_: False)  # as for everybody but root
    with pytest.raises(GrokscopeError, match=r"cannot write .*page\.md: Permission denied"):
        write_text(path, "after")
    assert path.read_text() == "before"


def test_devices_and_pipes_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "nowhere.csv").symlink_to("/dev/null")
    check_writable([tmp_path / "nowhere.csv"])
    assert write_text(tmp_path / "nowhere.csv", "text") == tmp_path / "nowhere.csv"
    assert Path("/dev/null").is_char_device()
    os.mkfifo(tmp_path / "pipe.csv")
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe.csv").read_text()))
    reader.start()
    write_text(tmp_path / "pipe.csv", "text")
    reader.join()
    assert heard == ["text"]
    assert (tmp_path / "pipe.csv").is_fifo()


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "circle.md").symlink_to("circle.md")
    for path in (tmp_path / "circle.md", tmp_path / ("x" * 5000), tmp_path, Path("/dev/full")):
        with pytest.raises(GrokscopeError, match="cannot write ") as caught:
            write_text(path, "text")
        assert len(str(caught.value)) < 500

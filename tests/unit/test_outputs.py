"""Text is written whole or not at all, for whom the user's umask says."""

import os
import stat
from pathlib import Path

import pytest

from grokscope.errors import GrokscopeError
from grokscope.outputs import check_writable, write_text


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

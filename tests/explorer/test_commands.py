"""`grokscope explore` and `grokscope report` as processes."""

import re
import signal
import socket
import sys
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest
from tests.explorer.conftest import Filled
from tests.integration.processes import grokscope, start, wait_until

from grokscope.cli.explore import _check_extra
from grokscope.errors import GrokscopeError
from grokscope.spec import RunSpec
from grokscope.store import Store


def test_explore_serves_until_ctrl_c_even_while_a_page_listens(filled: Filled, tmp_path: Path) -> None:
    process = start("explore", "--store", str(filled.path), "--port", "0", "--no-browser", cwd=tmp_path)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/", line)
    assert found, line
    assert httpx.get(f"{found[0]}api/sweeps", timeout=30).json()["sweeps"][0]["name"] == "small"
    with httpx.stream("GET", f"{found[0]}api/events", timeout=30) as listening:
        assert next(listening.iter_lines()).startswith("data:")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err.strip() == "The explorer has ended."


def test_ctrl_c_while_it_trains_writes_a_checkpoint(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs", create=True)
    process = start("explore", "--store", "runs", "--port", "0", "--no-browser", "--allow-train", cwd=tmp_path)
    assert process.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
    assert found
    fields = {"task.modulus": 31, "model.width": 100, "training.steps": 50_000}
    run_id = httpx.post(f"{found[0]}api/trainings", json=fields, timeout=30).json()["run_id"]
    wait_until(
        lambda: httpx.get(f"{found[0]}api/trainings/{run_id}", timeout=30).json()["step"] > 100, "it is being trained"
    )
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.strip()) == (0, "The explorer has ended.")
    checkpoint = store.load_checkpoint(RunSpec().updated(fields))
    assert checkpoint is not None
    assert checkpoint.state.step > 100
    assert store.running() == set()


def test_troubles_are_one_line_that_says_what_to_do(filled: Filled, tmp_path: Path) -> None:
    missing = grokscope("explore", "--store", "nowhere", "--no-browser", cwd=tmp_path, check=False)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "there is no store at nowhere" in missing.stderr
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        taken = grokscope(
            "explore", "--store", str(filled.path), "--port", str(port), "--no-browser", cwd=tmp_path, check=False
        )
    assert (taken.returncode, taken.stderr.count("\n")) == (2, 1)
    assert "--port 0" in taken.stderr


def test_without_the_extra_it_says_what_to_install() -> None:
    with patch.dict(sys.modules, {"uvicorn": None}), pytest.raises(GrokscopeError, match=r"grokscope\[explore\]"):
        _check_extra()


def test_a_report_is_one_small_file_and_names_what_it_cannot_do(filled: Filled, tmp_path: Path) -> None:
    done = grokscope("report", "small", "--store", str(filled.path), "--out", "small.html", cwd=tmp_path)
    assert "small.html" in done.stdout
    text = (tmp_path / "small.html").read_text(encoding="utf-8")
    assert len(text) < 15_000_000
    assert "default-src 'none'" in text
    assert not re.search(r'<(script|link|img)[^>]*\b(src|href)="(?!data:)', text.replace("\\", ""))
    wrong = grokscope("report", "other", "--store", str(filled.path), cwd=tmp_path, check=False)
    assert (wrong.returncode, "there is no sweep 'other'" in wrong.stderr) == (2, True)
    named = grokscope("report", "small", "--out", "small.pdf", "--store", str(filled.path), cwd=tmp_path, check=False)
    assert (named.returncode, "must end in .html" in named.stderr) == (2, True)
    empty = tmp_path / "empty"
    empty.mkdir()
    for cells, words in ((empty, "there is no table of cells"), (tmp_path / "none.csv", "cannot read")):
        done = grokscope(
            "report", "small", "--cells", str(cells), "--store", str(filled.path), cwd=tmp_path, check=False
        )
        assert (done.returncode, words in done.stderr, done.stderr.count("\n")) == (2, True, 1)

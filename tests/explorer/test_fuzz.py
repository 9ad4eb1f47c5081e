"""Every endpoint with thousands of odd requests, from its own OpenAPI description."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.explorer.conftest import Filled
from tests.explorer.serving import Server

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_odd_requests_get_the_answers_that_are_described(filled: Filled, tmp_path: Path) -> None:
    server = Server(Path(shutil.copytree(filled.path, tmp_path / "copy")), allow_train=True)
    done = subprocess.run(
        [Path(sys.executable).with_name("schemathesis"), "run", f"{server.address}openapi.json",
         "--url", server.address.rstrip("/"),
         "--exclude-path", "/api/events", "--max-examples", "20", "--phases", "coverage,fuzzing",
         "--checks", CHECKS, "--generation-deterministic"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    server.stop()
    assert done.returncode == 0, done.stdout[-3000:]

"""The server over HTTP: what it answers, and what it refuses."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from httpx import Client
from hypothesis import given
from hypothesis import strategies as st
from tests.explorer.conftest import Filled
from tests.explorer.serving import Server

from grokscope.explorer.security import MOST_BYTES
from grokscope.store import Store


@contextmanager
def serving(store: Path, *, allow_train: bool = False, token: str | None = None) -> Iterator[Client]:
    server = Server(store, allow_train=allow_train, token=token)
    with Client(base_url=server.address, timeout=30) as client:
        yield client
    server.stop()


@pytest.fixture(scope="module")
def client(filled: Filled) -> Iterator[Client]:
    with serving(filled.path) as client:
        yield client


def test_everything_is_answered(client: Client, filled: Filled) -> None:
    for path in ("/", "/app.js", "/style.css", "/plotly.js", "/openapi.json", "/api/store", "/api/sweeps", "/api/runs"):
        assert client.get(path).status_code == 200, path
    assert client.get("/api/sweeps/small").json()["columns"]["numbers"] == [0.3, 0.5, 0.8]
    for color in ("corrupted_accuracy", "recovered_accuracy", "mean_ipr", "grokked_step"):
        assert len(client.get(f"/api/sweeps/small/colors/{color}?panel=1").json()["values"]) == 6
    network = client.get(f"/api/runs/{filled.with_weights}/network").json()
    assert {order["name"] for order in network["pruning"]["orders"]} == {"lowest_ipr", "highest_ipr", "norm", "random"}
    assert client.get(f"/api/runs/{filled.with_weights}/neurons/3").json()["neuron"] == 3


def test_troubles_are_answers_in_words(client: Client, filled: Filled) -> None:
    assert client.get(f"/api/runs/{filled.damaged}").json()["state"] == "damaged"
    assert client.get(f"/api/runs/{filled.failed}").json()["state"] == "failed"
    for path in (f"/api/runs/{filled.damaged}/network", f"/api/runs/{filled.missing}/network", "/api/sweeps/none"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert isinstance(answer.json()["detail"], str)
    assert "without weights" in client.get(f"/api/runs/{filled.without_weights}/network").json()["detail"]
    assert client.get(f"/api/runs/{filled.with_weights}/neurons/24").status_code == 400
    assert client.get("/api/sweeps/small/colors/nonsense").status_code == 400


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8642", "0.0.0.0", "[::2]:8642"])
def test_other_hosts_are_refused(client: Client, host: str) -> None:
    """A name that was made to point here (DNS rebinding) must not reach the store."""
    assert client.get("/api/sweeps", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:9999", "[::1]:8642"])
def test_this_machine_is_answered(client: Client, host: str) -> None:
    assert client.get("/api/sweeps", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_pages_are_refused(client: Client, headers: dict[str, str]) -> None:
    assert client.get("/api/sweeps", headers=headers).status_code == 403
    assert client.post("/api/trainings", headers=headers, json={}).status_code == 403


def test_a_link_from_elsewhere_opens_the_page_but_reaches_no_data(client: Client) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=followed).status_code == 200
    assert client.get("/api/sweeps", headers=followed).status_code == 403


def test_without_permission_nothing_is_trained(client: Client, filled: Filled) -> None:
    before = Store(filled.path, create=False).version()
    assert client.post("/api/trainings", json={}).status_code == 404
    assert client.post(f"/api/runs/{filled.without_weights}/train").status_code == 404
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert client.request(method, "/api/runs").status_code == 405
    assert Store(filled.path, create=False).version() == before


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/..%2f..%2fetc/passwd", "/page/app.js", "/%2e%2e/x", "/index.html/../../x", "/__init__.py"],
)
def test_no_path_reaches_the_file_system(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("run", ["..", "%2e%2e", "0" * 15, "0" * 17, "G" * 16, "' OR 1=1 --", "%00", "../../index"])
def test_what_is_no_id_is_no_run(client: Client, run: str) -> None:
    assert client.get(f"/api/runs/{run}").status_code in (404, 422)


def test_large_requests_are_refused(client: Client) -> None:
    assert client.post("/api/trainings", content=b"x" * (MOST_BYTES + 1)).status_code == 413


def test_every_answer_forbids_strange_scripts(client: Client) -> None:
    for path in ("/", "/app.js", "/api/sweeps", "/nothing"):
        headers = client.get(path).headers
        assert "script-src 'self';" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/api/sweeps", headers={"host": "evil.example"}).headers["content-security-policy"]


def test_elsewhere_a_token_is_needed(filled: Filled) -> None:
    token = "0123456789abcdef"
    with serving(filled.path, token=token) as client:
        client.headers["host"] = "lab.example:8642"
        assert client.get("/api/sweeps").status_code == 401
        assert client.get("/api/sweeps?token=wrong").status_code == 401
        assert client.get("/api/sweeps?token=ü").status_code == 401
        assert client.get(f"/?token={token}").status_code == 200
        assert client.get("/api/sweeps").status_code == 200  # the cookie
        assert client.get("/api/sweeps", headers={"origin": "http://evil.example"}).status_code == 403


@given(search=st.text(max_size=60), name=st.text(min_size=1, max_size=30).filter(lambda name: "/" not in name))
def test_any_text_is_answered_without_a_failure(client: Client, search: str, name: str) -> None:
    assert client.get("/api/runs", params={"search": search}).status_code in (200, 422)
    path = "".join(f"%{byte:02x}" for byte in name.encode("utf-8", "surrogatepass"))
    assert client.get(f"/api/sweeps/{path}").status_code in (200, 400, 404, 405, 422)


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Client]:
    Store(tmp_path / "runs", create=True).close()
    with serving(tmp_path / "runs", allow_train=True) as client:
        yield client


SMALL = {"task.modulus": 11, "model.width": 16, "training.steps": 60, "optimizer.weight_decay": 1}


def _wait(client: Client, run_id: str) -> dict[str, object]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        view: dict[str, object] = client.get(f"/api/trainings/{run_id}").json()
        if view["state"] not in ("waiting", "training"):
            return view
        time.sleep(0.05)
    raise AssertionError("waited in vain for a training")


def test_a_trained_run_lands_in_the_store_with_its_history(trainer: Client, tmp_path: Path) -> None:
    run_id = trainer.post("/api/trainings", json=SMALL).json()["run_id"]
    view = _wait(trainer, run_id)
    assert view["state"] == "stored", view
    assert Store(tmp_path / "runs").load(run_id).weights is not None
    run = trainer.get(f"/api/runs/{run_id}").json()
    assert run["curve"]["step"][-1] == 60
    assert [sum(counts) for counts in run["ipr_history"]] == [16] * len(run["curve"]["step"])
    again = trainer.post(f"/api/runs/{run_id}/train").json()
    assert again["run_id"] == run_id
    assert _wait(trainer, run_id)["state"] == "stored"
    assert [one["run_id"] for one in trainer.get("/api/trainings").json()] == [run_id]


def test_a_training_can_be_stopped_and_goes_on_later(trainer: Client, tmp_path: Path) -> None:
    long = SMALL | {"training.steps": 400_000, "model.width": 64}
    run_id = trainer.post("/api/trainings", json=long).json()["run_id"]
    while trainer.get(f"/api/trainings/{run_id}").json()["step"] < 10:
        time.sleep(0.02)
    trainer.post(f"/api/trainings/{run_id}/stop")
    assert _wait(trainer, run_id)["state"] == "stopped"
    store = Store(tmp_path / "runs")
    assert list(store.checkpoints()) == [run_id]
    assert not store.running()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"task.modulus": "x"}, "task.modulus"),
        ({"training.measurements": "evil.py:Class"}, "cannot be set here"),
        ({"model.activation": "evil.py:Class"}, "model.activation"),
        ({"model.width": 10**9}, ""),
        ({"training.steps": 4 * 10**9}, "very long"),
    ],
)
def test_what_cannot_be_trained_is_refused(trainer: Client, fields: dict[str, object], words: str) -> None:
    answer = trainer.post("/api/trainings", json=fields)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]
    assert trainer.get("/api/trainings").json() == []


def test_only_so_many_runs_wait(trainer: Client) -> None:
    started = [
        trainer.post("/api/trainings", json=SMALL | {"training.steps": 400_000, "training.seed": seed})
        for seed in range(10)
    ]
    assert [answer.status_code for answer in started] == [200] * 8 + [429] * 2
    for answer in started[:8]:
        trainer.post(f"/api/trainings/{answer.json()['run_id']}/stop")
    for answer in started[:8]:
        assert _wait(trainer, answer.json()["run_id"])["state"] == "stopped"


def test_claims_and_figures_say_what_they_need(client: Client) -> None:
    claims, figures = (client.get(f"/api/{kind}").json()["items"] for kind in ("claims", "figures"))
    assert {"fig01", "fig03a"} <= {figure["name"] for figure in figures}
    claim = client.get(f"/api/claims/{claims[-1]['name']}").json()
    assert claim["verdict"] in ("not run", "holds", "fails", "inconclusive")
    assert client.get("/api/figures/fig06").json()["missing"] > 0
    assert client.get("/api/figures/fig06/picture").status_code == 400
    assert client.get("/api/figures/analytic/picture", timeout=300).headers["content-type"] == "image/png"
    for path in ("/api/claims/none", "/api/figures/none", "/api/figures/none/picture"):
        assert client.get(path).status_code == 404

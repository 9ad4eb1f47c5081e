"""The server of the explorer: typed JSON for the page, and the page itself.

app = make_app(Path("grokscope-runs"))
serve(app, "127.0.0.1", 8642, on_started=lambda: None)

No path of a request reaches the file system: the files of the page are read when the server starts, runs are found by
their ids and sweeps by their names, in the index.
"""

import asyncio
import signal
import socket
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import uvicorn
from fastapi import Body, FastAPI, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from grokscope.errors import GrokscopeError, StoreError
from grokscope.explorer import diagrams, networks, page, paper, runs, views
from grokscope.explorer import models as m
from grokscope.explorer.live import Listeners
from grokscope.explorer.security import Guard
from grokscope.explorer.training import TooManyError, Trainings, TrainingView, spec_from
from grokscope.store import Store

RunId = Annotated[str, PathParameter(pattern="^[0-9a-f]{16}$")]
Name = Annotated[str, PathParameter(max_length=200)]
GROKKED_AT_ONCE = 150  # curves that one request reads
_CACHED = 24  # networks whose pruning, logits and audit stay in memory


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": m.Problem, "description": "What was asked for makes no sense"},
    401: {"model": m.Problem, "description": "The token is missing"},
    403: {"model": m.Problem, "description": "From another host or another page"},
    404: {"model": m.Problem, "description": "It is not in the store"},
    413: {"model": m.Problem, "description": "The request is too large"},
    429: {"model": m.Problem, "description": "Too much is waiting already"},
}


class _Cache:
    """The last answers that took long to compute, by the file that they were computed from."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, compute: Callable[[], BaseModel]) -> bytes:
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        answer = compute().model_dump_json().encode()
        with self._lock:
            self._answers[key] = answer
            if len(self._answers) > _CACHED:
                self._answers.popitem(last=False)
        return answer


def make_app(store_path: Path, *, allow_train: bool = False, token: str | None = None) -> FastAPI:
    """The application on one store. Without `allow_train` nothing can be changed through it."""
    app = FastAPI(
        title="grokscope explorer", version=version("grokscope"), docs_url=None, redoc_url=None, responses=_PROBLEMS
    )
    listeners = app.state.listeners = Listeners(store_path)
    app.state.trainings = None
    networks_cache, computing = _Cache(), threading.Semaphore(2)
    grokked: dict[str, float | None] = {}

    @contextmanager
    def opened() -> Iterator[Store]:
        """The store, for one request: connections to SQLite stay in one thread."""
        store = Store(store_path, create=False)
        try:
            yield store
        finally:
            store.close()

    @app.exception_handler(GrokscopeError)
    def _problem(_: Request, error: GrokscopeError) -> JSONResponse:
        status = 404 if isinstance(error, StoreError) else 429 if isinstance(error, TooManyError) else 400
        return JSONResponse({"detail": str(error)}, status)

    @app.get("/api/store", response_model=m.StoreView)
    def get_store() -> Response:
        with opened() as store:
            return _json(views.store_view(store, allow_train=allow_train, report=False))

    @app.get("/api/sweeps", response_model=m.SweepList)
    def get_sweeps() -> Response:
        with opened() as store:
            return _json(views.sweep_list(store))

    @app.get("/api/runs", response_model=m.RunList)
    def get_runs(
        search: Annotated[str, Query(max_length=200)] = "",
        limit: Annotated[int, Query(ge=1, le=views.MOST_LISTED)] = 50,
        offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    ) -> Response:
        with opened() as store:
            return _json(views.run_list(store, search, limit=limit, offset=offset))

    @app.get("/api/sweeps/{name}", response_model=m.DiagramView)
    def get_diagram(name: Name) -> Response:
        with opened() as store:
            return _json(diagrams.diagram_view(store, name))

    @app.get("/api/sweeps/{name}/colors/{quantity}", response_model=m.ColorView)
    def get_color(
        name: Name,
        quantity: Annotated[str, PathParameter(max_length=40)],
        panel: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        with opened() as store:
            if quantity == diagrams.GROKKED:
                return _json(diagrams.grokked_view(store, name, panel, grokked, GROKKED_AT_ONCE))
            if quantity not in diagrams.FINAL_COLUMNS:
                raise GrokscopeError(f"there is no colour {quantity!r}")
            return _json(diagrams.color_view(store, name, panel, quantity))

    @app.get("/api/runs/{run_id}", response_model=m.RunView)
    def get_run(run_id: RunId) -> Response:
        with opened() as store:
            return _json(runs.run_view(store, run_id))

    @app.get("/api/runs/{run_id}/network", response_model=m.NetworkView)
    def get_network(run_id: RunId) -> Response:
        with opened() as store, computing:
            file = store.resolve(run_id).file
            return _raw(networks_cache.get(file, lambda: networks.network_view(networks.network_of(store, run_id))))

    @app.get("/api/runs/{run_id}/neurons/{neuron}", response_model=m.NeuronView)
    def get_neuron(run_id: RunId, neuron: Annotated[int, PathParameter(ge=0, le=10_000_000)]) -> Response:
        with opened() as store:
            return _json(networks.neuron_view(networks.network_of(store, run_id), neuron))

    @app.get("/api/runs/{run_id}/examples", response_model=m.ExampleView)
    def get_example(
        run_id: RunId, inputs: Annotated[list[Annotated[int, Query(ge=0, le=10_000_000)]], Query(max_length=64)]
    ) -> Response:
        with opened() as store, computing:
            return _json(networks.example_view(networks.network_of(store, run_id), inputs))

    @app.get("/api/events")
    async def get_events(request: Request) -> Response:
        if listeners.full:
            return JSONResponse({"detail": "too many pages are listening; reload by hand"}, 503)
        return StreamingResponse(listeners.events(request.is_disconnected), media_type="text/event-stream")

    _add_paper(app, opened)
    if allow_train:
        _add_training(app, store_path, opened)
    _add_page(app)
    threading.Thread(target=_load_torch, daemon=True).start()
    app.add_middleware(Guard, token=token)
    return app


def _add_paper(app: FastAPI, opened: Callable[[], AbstractContextManager[Store]]) -> None:
    computing = threading.Semaphore(1)

    @app.get("/api/claims", response_model=paper.PaperList)
    def get_claims() -> Response:
        return _json(paper.claim_list())

    @app.get("/api/claims/{name}", response_model=paper.ClaimView)
    def get_claim(name: Name) -> Response:
        with opened() as store, computing:
            return _json(paper.claim_view(store, name))

    @app.get("/api/figures", response_model=paper.PaperList)
    def get_figures() -> Response:
        return _json(paper.figure_list())

    @app.get("/api/figures/{name}", response_model=paper.FigureView)
    def get_figure(name: Name) -> Response:
        with opened() as store, computing:
            return _json(paper.figure_view(store, name))

    @app.get("/api/figures/{name}/picture")
    def get_picture(name: Name) -> Response:
        with opened() as store, computing:
            return Response(paper.figure_picture(store, name), media_type="image/png")


def _add_training(app: FastAPI, store_path: Path, opened: Callable[[], AbstractContextManager[Store]]) -> None:
    trainings = app.state.trainings = Trainings(store_path)

    @app.get("/api/trainings", response_model=list[TrainingView])
    def get_trainings() -> list[TrainingView]:
        return trainings.all()

    @app.post("/api/trainings", response_model=TrainingView)
    def post_training(fields: Annotated[dict[str, str | int | float], Body(max_length=20)]) -> TrainingView:
        return trainings.start(spec_from(fields))

    @app.get("/api/trainings/{run_id}", response_model=TrainingView)
    def get_training(run_id: RunId) -> TrainingView:
        return trainings.status(run_id)

    @app.post("/api/trainings/{run_id}/stop", response_model=TrainingView)
    def post_stop(run_id: RunId) -> TrainingView:
        return trainings.stop(run_id)

    @app.post("/api/runs/{run_id}/train", response_model=TrainingView)
    def post_train_again(run_id: RunId) -> TrainingView:
        with opened() as store:
            return trainings.start(store.resolve(run_id).spec)


def _add_page(app: FastAPI) -> None:
    for name, (content, kind) in page.files().items():
        keep = "max-age=3600" if name == page.PLOTLY else "no-cache"  # the large one changes only with its package
        app.get("/" if name == "index.html" else f"/{name}", include_in_schema=False)(_always(content, kind, keep))


def _always(content: bytes, kind: str, keep: str) -> Callable[[], Awaitable[Response]]:
    async def answer() -> Response:
        return Response(content, media_type=kind, headers={"cache-control": keep})

    return answer


def _load_torch() -> None:
    """Beforehand, so that the first network does not wait seconds for it."""
    import grokscope.models.module  # noqa: F401


def _json(view: BaseModel) -> Response:
    """A view as it is: it was checked when it was made."""
    return _raw(view.model_dump_json().encode())


def _raw(content: bytes) -> Response:
    return Response(content, media_type="application/json", headers={"cache-control": "no-store"})


def serve(app: FastAPI, host: str, port: int, on_started: Callable[[], None]) -> None:
    """Answer until Ctrl-C. `on_started` is called once requests are answered."""
    config = uvicorn.Config(
        app, host, port, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=2
    )
    EndingServer(config, on_started).run()


class EndingServer(uvicorn.Server):
    """Says when it has begun, and tells the pages that are listening before it ends: otherwise they would keep it."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self._on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on Ctrl-C and on a request to end. uvicorn would raise the signal again after it has ended."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer no more, and stop what is being trained."""
        await super().shutdown(sockets)
        trainings = self.config.app.state.trainings  # type: ignore[union-attr]
        if trainings is not None:
            await asyncio.to_thread(trainings.close)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Somebody wants it to end."""
        self.end()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """End soon."""
        self.config.app.state.listeners.closing = True  # type: ignore[union-attr]
        self.should_exit = True

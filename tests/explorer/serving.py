"""The explorer's server under test."""

import socket
import threading
import time
from pathlib import Path

import uvicorn

from grokscope.explorer.server import EndingServer, make_app


class Server:
    """The application on a free port, in a thread."""

    def __init__(self, store: Path, *, allow_train: bool = False, token: str | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/"
        app = make_app(store, allow_train=allow_train, token=token)
        config = uvicorn.Config(app, port=port, log_level="warning", timeout_graceful_shutdown=1, ws="none")
        self._server = EndingServer(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)

    def stop(self) -> None:
        self._server.end()
        self._thread.join(timeout=20)

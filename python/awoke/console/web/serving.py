"""Serves the console: on this thread, or on a thread `awoke-console-web` beside an app."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

from starlette.types import ASGIApp

from awoke.console.web.application import asgi
from awoke.observe.web import http
from awoke.preconditions.extras import needs
from awoke.settings import Settings

GRACE_S = 2
"""Streams of browsers have no end: they are cut after this time."""
logger = logging.getLogger(__name__)
PORT = 8686


class Server:
    """A console that is served."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        uvicorn: Any = needs("uvicorn", "console")
        options = {"log_level": "warning", "timeout_graceful_shutdown": GRACE_S, "server_header": False}
        self._socket = http.listening_socket(host, port, "port")
        config = uvicorn.Config(app, lifespan="on", access_log=False, proxy_headers=False, **options)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.run, name="awoke-console-web", daemon=True)
        self.url = f"http://{http.authority(host, self._socket.getsockname()[1])}"

    def run(self) -> None:
        """Serves until a signal comes, or `close` is called. Blocks."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Serves on a thread of its own. Does not block."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread. Blocks until requests under way have ended."""
        self._server.should_exit = True
        self._thread.join()


class ShownApp(Protocol):
    """The app that runs."""

    name: str

    @property
    def settings(self) -> Settings: ...
    def use(self, **settings: Any) -> None: ...
    def on_startup(self, function: Callable[[], None]) -> Any: ...
    def on_shutdown(self, function: Callable[[], None]) -> Any: ...


def show_beside(app: ShownApp, port: int = PORT) -> None:
    """Makes an app report, and serve its console on loopback while it runs. To be called before it runs."""
    app.use(console=True)
    servers: list[Server] = []

    def start() -> None:
        server = Server(asgi(app), "127.0.0.1", port)
        servers.append(server)
        server.start()
        logger.info("the console of %s is at %s", app.name, server.url)

    def end() -> None:
        servers.pop().close()

    app.on_startup(start)
    app.on_shutdown(end)

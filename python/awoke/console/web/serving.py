"""Serves the console: on this thread, or on a thread `awoke-console-web` beside an app."""

from __future__ import annotations

import asyncio
import logging
import resource
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
CONNECTIONS_MAX = 200
"""The most connections. Each browser has a stream of changes, and some more for a moment."""
REQUEST_WITHIN_S = 10.0
"""The longest time for a client to send the head of a request."""


def connections_max() -> int:
    """Returns the most connections: an app beside the console needs descriptors, too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(4, min(CONNECTIONS_MAX, soft // 8)) if soft > 0 else CONNECTIONS_MAX


def bounded(protocol: Any, most: int) -> Any:
    """Returns a class of uvicorn's connections of which there are at most `most`, none of them with a slow request.

    If there are too many, the one that has waited longest for its client is closed, or else the oldest one.
    """
    all_open: dict[Any, None] = {}

    class Bounded(protocol):  # type: ignore[misc]
        """A connection of a client."""

        slow_task: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Makes room for the connection."""
            while len(all_open) >= most:
                oldest = next((each for each in all_open if each.waits), next(iter(all_open)))
                all_open.pop(oldest)
                oldest.transport.abort()
            all_open[self] = None
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            """Takes what the client sends. The time for a request begins with its first byte, or its connection."""
            super().data_received(data)
            self._watch()

        def connection_lost(self, error: Exception | None) -> None:
            """Forgets the connection."""
            all_open.pop(self, None)
            self._stop_watching()
            super().connection_lost(error)

        @property
        def waits(self) -> bool:
            """True while it waits for its client's request. Without uvicorn's `cycle` it is not known: it does not."""
            cycle = getattr(self, "cycle", ...)
            return cycle is None or getattr(cycle, "response_complete", False)

        def _watch(self) -> None:
            if not self.waits:
                self._stop_watching()
            elif self.slow_task is None:
                self.slow_task = asyncio.get_running_loop().call_later(REQUEST_WITHIN_S, self._end_slow)

        def _stop_watching(self) -> None:
            if self.slow_task is not None:
                self.slow_task.cancel()
                self.slow_task = None

        def _end_slow(self) -> None:
            self.slow_task = None
            if self.waits:
                self.transport.abort()

    return Bounded


class Server:
    """A console that is served."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        uvicorn: Any = needs("uvicorn", "console")
        auto: Any = needs("uvicorn.protocols.http.auto", "console")
        connections = bounded(auto.AutoHTTPProtocol, connections_max())
        options: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": GRACE_S, "server_header": False}
        options |= {"http": connections, "ws": "none"}
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

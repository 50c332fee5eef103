"""Serves the console beside an app that runs in this process: from its start until its stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from awoke.console.web.application import asgi
from awoke.console.web.serving import Server
from awoke.settings import Settings

logger = logging.getLogger(__name__)

PORT = 8686


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

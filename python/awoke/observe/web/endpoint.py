"""Metrics, health and threads of a running app over HTTP, for Prometheus, an orchestrator and `awoke threads`.

The thread:
1. waits until a client connects or sends, the deadline of a client is due, or the notifier is notified;
2. answers each request as soon as it is complete, so that slow clients delay no others;
3. ends when it has been notified.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from awoke._native import Notifier
from awoke.observe.metrics.recorder import Health
from awoke.observe.web import http
from awoke.observe.web.http import HttpListener
from awoke.observe.web.listener import Respond
from awoke.observe.web.loop import Loop
from awoke.text.printable import harmless_json

STATUSES = {200: "200 OK", 404: "404 Not Found", 503: "503 Service Unavailable"}


class Thread(Protocol):
    """A thread and its owner."""

    @property
    def owner(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def started_at(self) -> str: ...


class EndpointSource(Protocol):
    """The app, as the endpoint shows it."""

    def health(self) -> Health: ...
    def why_not_ready(self) -> str | None: ...
    def status(self) -> dict[str, Any]: ...
    def threads(self) -> Sequence[Thread]: ...
    def metrics_text(self) -> bytes: ...


class Endpoint:
    """Serves `/live`, `/ready`, `/health` (200, or 503 with the reasons), `/metrics`, `/threads` and `/status`.

    Raises:
        ConfigError: The port is taken, or this user may not take it.
    """

    def __init__(self, port: int, shown: EndpointSource, host: str = "127.0.0.1", allowed_hosts: str = "") -> None:
        self._shown, self._hosts = shown, http.names_in(allowed_hosts, host)
        self._listening = http.listening_socket(host, port)
        self.port: int = self._listening.getsockname()[1]
        """The port that is bound, also if the setting was 0."""
        self._notifier = Notifier()
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="awoke-web", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ends and joins the thread."""
        self._is_closing = True
        self._notifier.notify()
        if self._thread.ident is not None:
            self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        with contextlib.closing(Loop()) as loop:
            loop.watch(self._notifier.fileno(), lambda: None)
            with contextlib.closing(HttpListener(loop, self._listening, self._hosts, self._answer)):
                while not self._is_closing:
                    loop.turn()

    def _answer(self, path: str, respond: Respond) -> None:
        match path:
            case "/metrics":
                kind = "text/plain; version=0.0.4; charset=utf-8"
                respond(http.answer(STATUSES[200], self._shown.metrics_text(), kind))
            case "/health":
                health = self._shown.health()
                respond(page(200 if health.is_healthy else 503, health._asdict()))
            case "/live":
                respond(page(200, {"is_alive": True}))
            case "/ready":
                why = self._shown.why_not_ready()
                respond(page(200 if why is None else 503, {"is_ready": why is None, "reason": why}))
            case "/status":
                respond(page(200, self._shown.status()))
            case "/threads":
                threads = self._shown.threads()
                entries = [{"owner": each.owner, "name": each.name, "started_at": each.started_at} for each in threads]
                respond(page(200, entries))
            case _:
                respond(page(404, {"paths": ["/live", "/ready", "/health", "/metrics", "/threads", "/status"]}))


def page(status: int, document: Any) -> bytes:
    """Returns an HTTP answer with a JSON document."""
    return http.answer(STATUSES[status], harmless_json(json.dumps(document)), "application/json")

"""Middleware for requests over HTTP: their deadlines and traces are those of their calls, and errors get a status."""

from __future__ import annotations

import contextlib
import json
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from http import HTTPStatus
from typing import Any

from awoke.asgi.lifespan import found_app
from awoke.errors import AwokeError, RpcError
from awoke.observe.tracing import continued
from awoke.rpc import deadline, http_status

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TIMEOUT_HEADER = "x-envoy-expected-rq-timeout-ms"


class CallsMiddleware:
    """Middleware of ASGI: `api.add_middleware(CallsMiddleware)`.

    - No call over Kafka waits longer than the request has time. Its time stands in `timeout_header`, in milliseconds
      (left out: the header of Envoy), and is at most `timeout_s`. A header that is no such number is ignored. The time
      is that until the response begins: the rest of a stream, background tasks and WebSockets have no deadline.
    - With the setting `tracing`, calls and messages continue the trace of the request.
    - An error of a call that reaches the middleware becomes its HTTP status, with the error's code as JSON. So does
      an error of Kafka's: 503 or 504, with its text in the log only. The rest goes on to the web application.
    """

    def __init__(
        self, app: Application, *, timeout_header: str = TIMEOUT_HEADER, timeout_s: float | None = None
    ) -> None:
        self._next, self._header, self._timeout_s = app, timeout_header.lower().encode(), timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request, or passes on what is none."""
        if scope["type"] not in ("http", "websocket"):
            await self._next(scope, receive, send)
            return
        time_s = self._time_of(scope) if scope["type"] == "http" else None
        with deadline(time_s) as limit, continued_trace(scope):
            response = Response(send, limit.lift)
            try:
                await self._next(scope, receive, response.send)
            except AwokeError as error:
                status = http_status(error)
                is_known = isinstance(error, RpcError) or status != HTTPStatus.INTERNAL_SERVER_ERROR
                if scope["type"] != "http" or response.has_begun or not is_known:
                    raise
                await response.answer(error, status)

    def _time_of(self, scope: Scope) -> float | None:
        """Returns the time of a request in seconds; None where it is unlimited."""
        times = [] if self._timeout_s is None else [self._timeout_s]
        for name, value in scope["headers"]:
            if name == self._header:
                with contextlib.suppress(ValueError):
                    times.append(float(value) / 1000)
        return min((each for each in times if each >= 0 and math.isfinite(each)), default=None)


class Response:
    """The response of one request."""

    def __init__(self, send: Send, on_begin: Callable[[], None]) -> None:
        self._send, self._on_begin = send, on_begin
        self.has_begun = False
        """True if the client has got a status already."""

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Sends a part of the response."""
        if not self.has_begun:
            self.has_begun = True
            self._on_begin()
        await self._send(message)

    async def answer(self, error: AwokeError, status: int) -> None:
        """Sends an error as the response."""
        headers = [(b"content-type", b"application/json")]
        if isinstance(error, RpcError):
            content = {"detail": str(error), "code": error.code, "details": error.details}
            if error.retry_after_s is not None:
                headers.append((b"retry-after", b"%d" % math.ceil(error.retry_after_s)))
        else:
            logger.warning("a request ends with the status %d: %s", status, error)
            content = {"detail": HTTPStatus(status).phrase, "code": type(error).__name__}
        body = json.dumps(content, default=str).encode()
        headers.append((b"content-length", b"%d" % len(body)))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def continued_trace(scope: Scope) -> Iterator[None]:
    """Continues the trace of a request within the block, if the app of the request traces."""
    app = found_app(scope)
    if app is None or not app.settings.tracing:
        yield
        return
    with continued({name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}):
        yield

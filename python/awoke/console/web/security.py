"""Limits what a browser may do with the console: the checks of each request, and the headers of each answer."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from awoke.observe.web.http import is_allowed

CONTENT_SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OF_STREAMS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
"""A proxy that collects or compresses a stream of events shows them late, or never."""
LOOPBACK = frozenset({"localhost"})
SAFE = frozenset({"GET", "HEAD"})


class Guard:
    """Refuses requests of other sites, and adds the headers to each answer."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, LOOPBACK | {each.lower() for each in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if headers.get("Content-Type", "").startswith("text/event-stream"):
                    headers.update(OF_STREAMS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        problem = self._problem(scope["method"], Headers(scope=scope))
        if problem is None:
            await self._app(scope, receive, send_with_headers)
        else:
            await PlainTextResponse(problem + "\n", 403)(scope, receive, send_with_headers)

    def _problem(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if "*" not in self._hosts and not is_allowed(host, self._hosts):
            return "ask by an IP address, as localhost, or by an allowed host (--host-name)"
        if method not in SAFE and not is_same_origin(headers, host):
            return "this form was not sent by the console's own page"
        return None


def is_same_origin(headers: Headers, host: str) -> bool:
    """Tells whether a page of this host sent the request, or no page at all; not where the browser does not say."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None or host == "":
        return False
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False

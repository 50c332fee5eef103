"""Asks a web application for each route of the console that is mounted in it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import pytest

from awoke.console.web import application, live
from awoke.console.web.page import Asked, NoSuchPage

HOST = "shop.example"
Asking = tuple[str, str]
"""A method and a path."""


def routes_of(prefix: str) -> Iterator[Asking]:
    """Yields a request to each route of a console below a path."""
    for method, each in [("GET", page.path) for page in application.PAGES] + [
        ("POST", act.path) for act in application.ACTIONS
    ]:
        yield method, prefix + re.sub(r"{(\w+)(:path)?}", r"\1", each)
    yield "GET", f"{prefix}/live"
    yield "GET", f"{prefix}/static/console.css"


def without_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each page and act answer with status 404, and wait for nothing: who gets it has passed the policy."""

    def answer(asked: Asked) -> Any:
        raise NoSuchPage("it is not here")

    monkeypatch.setattr(live, "FIRST_S", 0.1)  # The end of a console waits for its question to the brokers.
    monkeypatch.setattr(application, "PAGES", [each._replace(function=answer) for each in application.PAGES])
    monkeypatch.setattr(application, "ACTIONS", [each._replace(function=answer) for each in application.ACTIONS])


async def status_of(app: Any, asking: Asking, headers: Mapping[str, str]) -> int:
    """Returns the status of one answer, whose body is not waited for: the events of a console have no end."""
    method, path = asking
    body = b"sure=on&reason=a+test"
    sent = {
        "host": HOST,
        "sec-fetch-site": "same-origin",
        "content-type": "application/x-www-form-urlencoded",
        **headers,
    }
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        "server": (HOST, 80),
        "client": ("127.0.0.1", 1),
    }
    status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    left = asyncio.Event()
    """The browser goes."""
    messages = [{"type": "http.request", "body": body if method == "POST" else b"", "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and not status.done():
            status.set_result(message["status"])

    running = asyncio.ensure_future(app(scope, receive, send))
    try:
        await asyncio.wait([running, status], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        return status.result()
    finally:
        left.set()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

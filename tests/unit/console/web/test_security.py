"""The limits of a browser: hosts, forms of other sites, and the headers of each answer."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.responses import StreamingResponse

from awoke.console.web.security import CONTENT_SECURITY, Guard, is_same_origin
from tests.unit.console.web.fakes import console

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.mark.parametrize("path", ["/", "/nothing", "/static/nothing.js"])
def test_each_answer_has_the_policy_for_content(path: str) -> None:
    with console() as client:
        headers = client.get(path).headers
    assert headers["content-security-policy"] == POLICY == CONTENT_SECURITY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


async def test_proxies_neither_collect_nor_compress_a_stream_of_events() -> None:
    sent = list[Any]()

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(iter(["data: -\n\n"]), media_type="text/event-stream")(scope, receive, send)

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    await Guard(stream, ())(scope, receive, send)
    headers = Headers(raw=sent[0]["headers"])
    assert headers["x-accel-buffering"] == "no"
    assert headers["cache-control"] == "no-cache, no-transform"


@pytest.mark.parametrize(
    ("host", "status"), [("localhost:80", 200), ("127.0.0.1", 200), ("[::1]:9", 200), ("evil.example", 403), ("", 403)]
)
def test_the_host_is_checked(host: str, status: int) -> None:
    with console() as client:
        assert client.get("/", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("headers", "is_same"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site", "origin": "http://here:8080"}, False),
        ({"origin": "http://here:8080"}, True),
        ({"origin": "http://here"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://[here"}, False),
        ({}, False),
    ],
)
def test_a_form_must_come_from_the_same_origin(headers: dict[str, str], is_same: bool) -> None:
    assert is_same_origin(Headers(headers), "here:8080") is is_same


def test_a_form_of_another_site_is_refused() -> None:
    with console() as client:
        answer = client.post("/", headers={"Sec-Fetch-Site": "cross-site"})
        assert (answer.status_code, "own page" in answer.text) == (403, True)
        assert client.post("/", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 405

"""Requests and answers of HTTP."""

from __future__ import annotations

from awoke.observe.web import http


def test_http_requests_are_read_to_the_end_of_their_head() -> None:
    assert not http.is_complete(bytearray(b"GET /live HTTP/1.1\r\n"))
    assert http.request_of(b"GET /live?x=1 HTTP/1.1\r\nHost: x\r\n\r\n") == ("GET", "/live", "x")
    assert http.request_of(b"POST /live HTTP/1.0\r\n\r\n") == ("POST", "/live", None)
    assert http.request_of(b"GET /live\r\n\r\n") is None
    assert http.answer("200 OK", "hello").endswith(b"Content-Length: 5\r\nConnection: close\r\n\r\nhello")

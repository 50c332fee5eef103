"""Requests and answers of HTTP."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.observe.web import http

needs_ipv6 = pytest.mark.skipif(not http.has_ipv6(), reason="this machine has no IPv6")


def test_http_requests_are_read_to_the_end_of_their_head() -> None:
    assert not http.is_complete(bytearray(b"GET /live HTTP/1.1\r\n"))
    assert http.request_of(b"GET /live?x=1 HTTP/1.1\r\nHost: x\r\n\r\n") == ("GET", "/live", "x")
    assert http.request_of(b"POST /live HTTP/1.0\r\n\r\n") == ("POST", "/live", None)
    assert http.request_of(b"GET /live\r\n\r\n") is None
    assert http.answer("200 OK", "hello").endswith(b"Content-Length: 5\r\nConnection: close\r\n\r\nhello")


def reached(listening: socket.socket, *hosts: str) -> bool:
    """Returns whether clients reach a socket at all of these addresses."""
    for host in hosts:
        with socket.create_connection((host, listening.getsockname()[1]), 20):
            listening.accept()[0].close()
    return True


@needs_ipv6
@pytest.mark.parametrize("host", ["::", "[::]"])
def test_every_address_means_those_of_ipv4_too(host: str) -> None:
    with http.listening_socket(host, 0) as listening:
        assert reached(listening, "::1", "127.0.0.1")


@needs_ipv6
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_one_address_of_ipv6_may_be_listened_on(host: str) -> None:
    with http.listening_socket(host, 0) as listening:
        assert reached(listening, "::1")


def test_a_name_may_be_listened_on() -> None:
    with http.listening_socket("localhost", 0) as listening:
        assert reached(listening, "localhost")


def test_every_address_is_those_of_ipv4_on_a_machine_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutIpv6(socket.socket):
        def __init__(self, family: int = -1, *arguments: int, **options: Any) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
            super().__init__(family, *arguments, **options)

    monkeypatch.setattr(socket, "socket", WithoutIpv6)
    with http.listening_socket("::", 0) as listening:
        assert reached(listening, "127.0.0.1")
    with pytest.raises(ConfigError, match=r"can't listen on \[::1\]:9404: .*give an address of this machine"):
        http.listening_socket("::1", 9404)


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host"])
def test_an_address_that_is_not_this_machines_is_named(host: str) -> None:
    with pytest.raises(ConfigError, match="give an address of this machine as the host") as refused:
        http.listening_socket(host, 9404)
    assert refused.value.property == "metrics_host"


def test_a_port_that_is_taken_is_named() -> None:
    with http.listening_socket("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="another metrics_port"):
        http.listening_socket("127.0.0.1", taken.getsockname()[1])


def test_small_answers_do_not_wait_for_acknowledgements() -> None:
    with http.listening_socket("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP, "asyncio sets TCP_NODELAY only then"


def test_host_and_port_are_written_as_in_a_url() -> None:
    assert http.authority("::1", 80) == http.authority("[::1]", 80) == "[::1]:80"
    assert http.authority("localhost", 80) == "localhost:80"

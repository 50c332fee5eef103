"""HTTP for health and metrics: one request for each connection, GET and HEAD only, from hosts that are allowed.

A page of another site must not read answers from loopback. The browser sends the site's name as `Host`, even if that
name resolves to this machine (DNS rebinding). An IP address can't be rebound, so each is allowed.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from collections.abc import Callable
from typing import NamedTuple

from awoke.errors import ConfigError
from awoke.observe.web import listener
from awoke.observe.web.listener import Respond, SocketListener
from awoke.observe.web.loop import Loop

HOST = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::\d*)?")
Answer = Callable[[str, Respond], object]
"""Gets the path of a request."""


class Request(NamedTuple):
    """The head of a request, as far as it is read."""

    method: str
    path: str
    """The path without the query."""
    host: str | None
    """The header `Host`; `None` if the client sent none. Browsers always send one."""


class HttpListener(SocketListener):
    """A listening socket for HTTP."""

    def __init__(self, loop: Loop, listening: socket.socket, hosts: frozenset[str], answer: Answer) -> None:
        self._hosts, self._answer_path = hosts, answer
        super().__init__(loop, listening, is_complete, self._on_head)

    def _on_head(self, head: bytes, respond: Respond) -> None:
        request = request_of(head)
        if request is None:
            respond(answer("400 Bad Request", "this is no HTTP/1 request\n"))
        elif request.method not in ("GET", "HEAD"):
            respond(answer("405 Method Not Allowed", "only GET and HEAD are allowed\n"))
        elif not is_allowed(request.host, self._hosts):
            text = "ask by an IP address, as localhost, or by a name in the setting metrics_allowed_hosts\n"
            respond(answer("403 Forbidden", text))
        elif request.method == "HEAD":
            self._answer_path(request.path, lambda found: respond(without_body(found)))
        else:
            self._answer_path(request.path, respond)


def listening_socket(host: str, port: int, setting: str = "metrics_port") -> socket.socket:
    """Returns a socket that listens for HTTP. `::` is every address of this machine, of IPv4 as well as IPv6.

    Raises:
        ConfigError: The port is taken, this user may not take it, or the host is not an address of this machine.
    """
    name = host.removeprefix("[").removesuffix("]")
    if name == "::" and not has_ipv6():
        name = "0.0.0.0"
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        # With the number of the protocol, asyncio turns off Nagle's algorithm for the connections: without it a page
        # waits 40 ms for the acknowledgement of its headers.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.bind(address)
            listening.listen(listener.QUEUE_MAX)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        why = f"can't listen on {authority(host, port)}: {error.strerror}"
        if isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            text = f"{why}; give an address of this machine as the host, or :: for all of them"
            raise ConfigError(text, setting.replace("port", "host")) from None
        raise ConfigError(f"{why}; choose another {setting}", setting) from None
    return listening


def has_ipv6() -> bool:
    """Returns whether this machine has IPv6: a kernel may lack it, and a container may have it turned off."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as tried:
            tried.bind(("::", 0))
    except OSError:
        return False
    return True


def authority(host: str, port: int) -> str:
    """Returns host and port as in a URL."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def is_complete(request: bytearray) -> bool:
    """Returns whether the head of a request is complete. No request needs a body."""
    return b"\r\n\r\n" in request


def request_of(head: bytes) -> Request | None:
    """Returns a client's request; `None` if it is none, or names two hosts."""
    first, *lines = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    headers = (line.partition(":") for line in lines)
    hosts = [value.strip() for name, _, value in headers if name.lower() == "host"]
    if len(hosts) > 1:
        return None
    return Request(words[0], words[1].partition("?")[0], hosts[0] if hosts else None)


def names_in(text: str, bound: str) -> frozenset[str]:
    """Returns the names of a setting, separated by commas, with the address that is bound and `localhost`."""
    return frozenset(name.strip().rstrip(".").lower() for name in (*text.split(","), bound, "localhost")) - {""}


def is_allowed(host: str | None, names: frozenset[str]) -> bool:
    """Returns whether a request for this host may be answered."""
    if host is None:
        return True  # No browser sends such a request, so no page of another site does.
    found = HOST.fullmatch(host)
    if found is None:
        return False
    name = found["host"].rstrip(".").lower()
    return name in names or is_address(name.removeprefix("[").removesuffix("]"))


def is_address(text: str) -> bool:
    """Returns whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def answer(status: str, text: str | bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    """Returns an answer over HTTP."""
    body = text.encode() if isinstance(text, str) else text
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def without_body(answer: bytes) -> bytes:
    """Returns the head of an answer."""
    head, end, _ = answer.partition(b"\r\n\r\n")
    return head + end

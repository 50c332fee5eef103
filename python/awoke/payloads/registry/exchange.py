"""One exchange over HTTP: an address, a request, its answer, or the reason for none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from awoke.errors import ConfigError
from awoke.payloads.registry.errors import RegistryRefused

ANSWER_BYTES_MAX = 32 * 1024 * 1024
"""The largest answer: several hundred thousand subjects fit."""


class Address(NamedTuple):
    """An address of a server."""

    url: str
    """Without user and password, and without a slash at the end."""
    user: str | None
    password: str

    def __repr__(self) -> str:
        return f"Address({self.url!r})"


class HttpRequest(NamedTuple):
    """A request."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None

    def __repr__(self) -> str:
        return f"HttpRequest({self.method!r}, {self.url!r})"


class HttpAnswer(NamedTuple):
    """An answer."""

    status: int
    content: bytes
    location: str = ""
    """Where a redirection leads."""


class Unanswered(Exception):
    """There was no answer, or not all of it in time."""

    def __init__(self, reason: str, *, is_unsent: bool = False) -> None:
        super().__init__(reason)
        self.is_unsent = is_unsent
        """True when the server can't have got the request."""


class Body:
    """Collects the content of an answer, up to a size and until a time."""

    def __init__(self, request: HttpRequest, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._request = request
        self._timeout_s = timeout_s
        self._clock = clock
        self._until_s = clock() + timeout_s
        self._content = bytearray()

    def add(self, part: bytes) -> None:
        """Adds the next part.

        Raises:
            Unanswered: The time is up.
            RegistryRefused: The answer is too large.
        """
        self._content += part
        method, url = self._request.method, self._request.url
        if len(self._content) > ANSWER_BYTES_MAX:
            text = f"{RegistryRefused.what}: {method} {url}: more than {ANSWER_BYTES_MAX} bytes; check the address"
            raise RegistryRefused(text, url)
        if self._clock() > self._until_s:
            raise Unanswered(f"no complete answer within {self._timeout_s:g} s")

    def content(self) -> bytes:
        """Returns all parts."""
        return bytes(self._content)


def address_of(option: str, text: object, *, is_query_allowed: bool = False) -> Address:
    """Returns the parts of an address.

    Raises:
        ConfigError: It is none. The text does not quote it, because it may hold a password.
    """
    parts = _split(text)
    is_whole = parts is not None and parts.scheme in ("http", "https") and parts.hostname and not parts.fragment
    if parts is None or not is_whole or "@" in parts.path + parts.query or (parts.query and not is_query_allowed):
        advice = "as in http://host:8081; user and password in it must be percent-encoded"
        raise ConfigError(f"schema registry: {option} has an address that is not understood; it is {advice}", option)
    host = parts.netloc.rpartition("@")[2]
    query = f"?{parts.query}" if parts.query else ""
    user = None if parts.username is None else unquote(parts.username)
    return Address(f"{parts.scheme}://{host}{parts.path.rstrip('/')}{query}", user, unquote(parts.password or ""))


def _split(text: object) -> SplitResult | None:
    if not isinstance(text, str) or not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
        return parts if parts.port != 0 else None  # Reading the port checks it.
    except ValueError:
        return None

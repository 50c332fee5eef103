"""Two transports over httpx2: one that blocks its thread, and one for event loops. Both count their requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from awoke.errors import ClosedError, ConfigError
from awoke.payloads.registry.access import BasicAuth, RegistryLogin
from awoke.payloads.registry.errors import (
    InvalidSchema,
    RegistryError,
    RegistryRefused,
    RegistryUnavailable,
    SchemaIncompatible,
    SchemaNotFound,
    clean,
    error_of_answer,
    parsed,
)
from awoke.payloads.registry.exchange import Address, Body, HttpAnswer, HttpRequest, Unanswered, address_of
from awoke.payloads.registry.options import TIMEOUT_S, RegistryOptions, check
from awoke.text.printable import harmless

try:
    import httpx2
except ImportError:
    raise ConfigError("a schema registry needs httpx2: pip install 'awoke[registry]'", "registry") from None

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
IDLE_MAX = 10
"""The most clients that are kept for later requests."""
ECHO_MIN = 8
"""The value of a header of the options is kept out of errors, if an answer repeats it and it is this long."""
ANSWERS = (SchemaNotFound, SchemaIncompatible, InvalidSchema)
"""Errors that are answers to the question."""


class RequestCounts:
    """The counters of one client. Any thread, any event loop; blocks for no longer than a lock is held."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._requests = self._errors = 0
        """Under the lock, as the time."""
        self._wait_s = 0.0

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Counts a request when it ends, and its time. It is one, also if several addresses are tried for it."""
        began_s, is_error = self._clock(), True
        try:
            yield
            is_error = False
        except RegistryError as error:
            is_error = not isinstance(error, ANSWERS)
            raise
        finally:
            with self._lock:
                self._requests += 1
                self._errors += is_error
                self._wait_s += self._clock() - began_s

    def values(self) -> dict[str, float]:
        """Returns the counters: `requests`, `errors`, and `wait_s`."""
        with self._lock:
            return {"requests": self._requests, "errors": self._errors, "wait_s": self._wait_s}

    def renew_lock(self) -> None:
        """Makes a new lock in a forked process: a thread of the parent may have held the old one."""
        self._lock = threading.Lock()


class HttpTransport:
    """Sends requests to the first address that answers; each later request goes there first.

    Raises:
        ConfigError: A wrong address or option, or certificates that can't be used.
        TypeError: An unknown option.
    """

    def __init__(self, urls: str, options: RegistryOptions) -> None:
        check(options)
        self._addresses = addresses_of(urls)
        self._first = 0
        """The index of the address that answered last. Without a lock: a lost update costs one attempt."""
        self.timeout_s = options.get("timeout_s", TIMEOUT_S)
        tls = options.get("tls")
        self._verify = True if tls is None else tls.context()
        self._headers = {name.lower(): value for name, value in options.get("headers", {}).items()}
        user = next((each for each in self._addresses if each.user is not None), None)
        auth = options.get("auth")
        if user is not None and user.user is not None:
            if auth is not None:
                raise ConfigError("schema registry: there is a user in the address, and the option 'auth'", "auth")
            auth = BasicAuth(user.user, user.password)
        self._login = RegistryLogin(auth, self.exchange)
        self.counts = RequestCounts()
        self.is_closed = False

    @property
    def urls(self) -> str:
        """The addresses without user and password, separated by commas."""
        return ",".join(each.url for each in self._addresses)

    def url_of(self, path: str) -> str:
        """Returns the address for a path, as errors show it."""
        return self._addresses[self._first].url + path

    async def send(self, method: str, path: str, body: object | None = None) -> Any:
        """Sends a request and returns the JSON of its answer. Tries each address, with `timeout_s` for each.

        A DELETE that may have arrived is not sent again: its second answer would be that there is nothing.

        Raises:
            RegistryError: There is no answer, or it is an error. ClosedError: The client is closed.
        """
        with self.counts.request():
            return await self._send(method, path, body)

    async def _send(self, method: str, path: str, body: object | None) -> Any:
        headers = await self._headers_of(body)
        content = None if body is None else msgspec.json.encode(body)
        failures = []
        for index in self._order():
            request = HttpRequest(method, self._addresses[index].url + path, headers, content)
            try:
                answer = await self.exchange(request)
            except Unanswered as error:
                failures.append(f"{request.url}: {error}")
                if method == "DELETE" and not error.is_unsent:
                    break
                continue
            self._prefer(index)
            return self._result(request, answer)
        text = (
            f"the schema registry does not answer: {method} {'; '.join(failures)}; check the address, and that it runs"
        )
        raise RegistryUnavailable(text, self.url_of(path))

    async def exchange(self, request: HttpRequest) -> HttpAnswer:
        """Sends a request once.

        Raises:
            Unanswered: There is no answer. RegistryRefused: It is too large. ClosedError: The client is closed.
        """
        raise NotImplementedError

    def forget_parent(self) -> None:
        """Drops, in a forked process, the parent's connections; they are not closed, for the parent goes on."""
        self._login.renew_locks()
        self.counts.renew_lock()

    def _order(self) -> list[int]:
        """Returns the indexes of the addresses, in the order in which they are tried."""
        first, count = self._first, len(self._addresses)
        return [(first + offset) % count for offset in range(count)]

    def _prefer(self, index: int) -> None:
        before = self._first
        if index != before:
            self._first = index
            urls = [each.url for each in self._addresses]
            logger.warning("schema registry %s does not answer; using %s", urls[before], urls[index])

    async def _headers_of(self, body: object | None) -> dict[str, str]:
        headers = {**self._headers, "accept": MEDIA_TYPE}
        if body is not None:
            headers["content-type"] = MEDIA_TYPE
        authorization = await self._login.header()
        if authorization is not None:
            headers["authorization"] = authorization
        return headers

    def _result(self, request: HttpRequest, answer: HttpAnswer) -> Any:
        if 200 <= answer.status < 300:
            with contextlib.suppress(ValueError):
                return parsed(answer.content)
        raise self._error(request, answer)

    def _error(self, request: HttpRequest, answer: HttpAnswer) -> RegistryError:
        authorization = request.headers.get("authorization", "")
        if answer.status == 401:
            self._login.refused(authorization)
        secrets = [each for each in self._headers.values() if len(each) >= ECHO_MIN]
        secrets += filter(None, [authorization.partition(" ")[2]])
        error = error_of_answer(request.method, request.url, answer.status, answer.content, secrets)
        if answer.location and type(error) is RegistryRefused:
            text = f"{error}; it redirects to {clean(answer.location, secrets)}, which is not followed"
            return RegistryRefused(text, request.url, answer.status)
        return error

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turns errors of httpx2 to those of an exchange. Their own text is left out where it may have a header."""
        try:
            yield
        # `ssl.SSLError` is an OSError: on a loop, httpx2 passes it on when the server refuses the certificate.
        except (httpx2.HTTPError, OSError, RuntimeError) as error:
            if self.is_closed:
                raise closed_error() from None
            if isinstance(error, RuntimeError):
                raise
            unsent = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
            raise Unanswered(self._reason(error), is_unsent=isinstance(error, unsent)) from None

    def _reason(self, error: Exception) -> str:
        if isinstance(error, (httpx2.TimeoutException, TimeoutError)):
            return f"no answer within {self.timeout_s:g} s"
        is_quoted = isinstance(error, (httpx2.NetworkError, httpx2.RemoteProtocolError, OSError)) and str(error)
        return harmless(str(error)) if is_quoted else type(error).__name__


class BlockingTransport(HttpTransport):
    """A transport for threads: its flows never suspend. Any thread; blocks.

    httpx2 bounds the time of each read, and an answer may come byte by byte. So each request has a client of its own
    while it lasts, whose connection is shut down when the time of the request is up.
    """

    def __init__(self, urls: str, options: RegistryOptions) -> None:
        super().__init__(urls, options)
        self._lock = threading.Lock()
        self._idle: list[CutClient] = []
        """Under the lock, as what follows."""
        self._busy: set[CutClient] = set()

    async def exchange(self, request: HttpRequest) -> HttpAnswer:
        """Sends a request once. Blocks. See `HttpTransport.exchange`."""
        body = Body(request, self.timeout_s)
        client = self._taken()
        try:
            with self._failures(), client.stream(request) as answer:
                for part in answer.iter_bytes():
                    body.add(part)
                return HttpAnswer(answer.status_code, body.content(), answer.headers.get("location", ""))
        except Unanswered:
            if client.is_late:
                raise Unanswered(f"no answer within {self.timeout_s:g} s") from None
            raise
        finally:
            self._give_back(client)

    def close(self) -> None:
        """Closes the connections. Closing again does nothing."""
        with self._lock:
            self.is_closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for client in idle:
            client.close()
        for client in busy:  # Their threads close them.
            client.cut()

    def forget_parent(self) -> None:
        """Drops the parent's connections. See `HttpTransport.forget_parent`."""
        super().forget_parent()
        self._lock, self._idle, self._busy = threading.Lock(), [], set()

    def _taken(self) -> CutClient:
        with self._lock:
            if self.is_closed:
                raise closed_error()
            client = self._idle.pop() if self._idle else CutClient(self._context(), self.timeout_s)
            self._busy.add(client)
            return client

    def _give_back(self, client: CutClient) -> None:
        with self._lock:
            self._busy.discard(client)
            if not self.is_closed and len(self._idle) < IDLE_MAX:
                self._idle.append(client)
                return
        client.close()

    def _context(self) -> Any:
        if self._verify is True:  # Made once: that takes longer than a request.
            self._verify = httpx2.create_ssl_context()
        return self._verify


class CutClient:
    """A client for one request at a time, whose connection is cut when the time of that is up."""

    def __init__(self, verify: Any, timeout_s: float) -> None:
        self._client = httpx2.Client(verify=verify, timeout=timeout_s)
        self._timeout_s = timeout_s
        self._streams: dict[str, Any] = {}
        """The connection to each server: it is used again, and only a new one is told of."""
        self._server = ""
        self.is_late = False
        """True if the time of the last request was up."""

    @contextlib.contextmanager
    def stream(self, request: HttpRequest) -> Iterator[httpx2.Response]:
        """Sends a request and gives its answer, of which the content is not read yet. Blocks."""
        self._server, self.is_late = "/".join(request.url.split("/", 3)[:3]), False
        watch = threading.Timer(self._timeout_s, self._on_time_up)
        watch.name, watch.daemon = "awoke-registry-time", True
        watch.start()
        parts: dict[str, Any] = {
            "headers": request.headers,
            "content": request.content,
            "extensions": {"trace": self._on_event},
        }
        try:
            with self._client.stream(*request[:2], **parts) as answer:
                yield answer
        finally:
            watch.cancel()
            watch.join()

    def cut(self) -> None:
        """Shuts the connection down, so that a thread that reads it goes on. Any thread; does not block."""
        stream = self._streams.get(self._server)
        connection = None if stream is None else stream.get_extra_info("socket")
        if connection is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # Not that of TLS, which the reader uses.

    def close(self) -> None:
        """Closes the connections. Not while a request is under way."""
        self._client.close()

    def _on_time_up(self) -> None:
        self.is_late = True
        self.cut()

    def _on_event(self, name: str, info: dict[str, Any]) -> None:
        if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._streams[self._server] = info["return_value"]


class LoopTransport(HttpTransport):
    """A transport for an event loop. A program that runs one loop after another may use it on each."""

    def __init__(self, urls: str, options: RegistryOptions) -> None:
        super().__init__(urls, options)
        self._client: httpx2.AsyncClient | None = None
        """Made on first use on a loop: its connections are the loop's."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def exchange(self, request: HttpRequest) -> HttpAnswer:
        """Sends a request once. See `HttpTransport.exchange`."""
        body = Body(request, self.timeout_s)
        client = self._opened()
        with self._failures():
            async with (
                asyncio.timeout(self.timeout_s),
                client.stream(*request[:2], headers=request.headers, content=request.content) as answer,
            ):
                async for part in answer.aiter_bytes():
                    body.add(part)
                return HttpAnswer(answer.status_code, body.content(), answer.headers.get("location", ""))

    async def close(self) -> None:
        """Closes the connections. Closing again does nothing."""
        self.is_closed = True
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    def forget_parent(self) -> None:
        """Drops the parent's connections. See `HttpTransport.forget_parent`."""
        super().forget_parent()
        self._client = None

    def _opened(self) -> httpx2.AsyncClient:
        if self.is_closed:
            raise closed_error()
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = httpx2.AsyncClient(verify=self._verify, timeout=self.timeout_s), loop
        return self._client


def addresses_of(urls: str) -> list[Address]:
    """Returns the addresses, which are separated by commas.

    Raises:
        ConfigError: There is none, one is wrong, or they have several users.
    """
    parts = map(str.strip, urls.split(",")) if isinstance(urls, str) else ()
    found = [address_of("url", each) for each in parts if each]
    if not found:
        raise ConfigError("schema registry: url is empty; it is as in http://host:8081", "url")
    if len({(each.user, each.password) for each in found if each.user is not None}) > 1:
        raise ConfigError("schema registry: the addresses in url have several users; give the option 'auth'", "url")
    for each in found:
        try:
            httpx2.URL(each.url)
        except httpx2.InvalidURL as error:
            raise ConfigError(f"schema registry: url {each.url!r}: {error}", "url") from None
    return found


def closed_error() -> ClosedError:
    """Returns the error for a client that is closed."""
    return ClosedError("this client of a schema registry is closed; make a new one")

"""Ways into a schema registry: basic, bearer and OAuth, and TLS with a certificate of the client."""

from __future__ import annotations

import base64
import inspect
import os
import re
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar
from urllib.parse import quote_plus, urlencode

import msgspec

from awoke.errors import ConfigError
from awoke.payloads.registry.errors import (
    RegistryUnauthorized,
    RegistryUnavailable,
    error_of_answer,
)
from awoke.payloads.registry.exchange import HttpAnswer, HttpRequest, Unanswered, address_of
from awoke.payloads.registry.single_flight import SingleFlight
from awoke.text.secrets import HIDDEN, without_userinfo
from awoke.waiting.clock import monotonic_s
from awoke.waiting.drive import elsewhere

RENEW_BEFORE_S = 30.0
"""A token is replaced this time before its end, or after half of its time if that is longer than its rest."""
TOKEN_TIME_S = 300.0
"""The time of a token whose endpoint does not tell it."""
TOKEN = re.compile(r"[\x21-\x7e]+")
"""The characters that a header can carry, without spaces."""


TokenGiver = Callable[[], str | Awaitable[str]]
"""Returns a token; `def` or `async def`."""


class _Shown(msgspec.Struct, frozen=True):
    """A base whose `repr` shows no fields but those that are named."""

    _open: ClassVar[frozenset[str]] = frozenset()

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, self._shown(name, getattr(self, name))) for name in self.__struct_fields__]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def _shown(self, name: str, value: object) -> object:
        if value is not None and name not in self._open:
            return HIDDEN
        return without_userinfo(value) if isinstance(value, str) else value


class BasicAuth(_Shown, frozen=True):
    """A user with a password (RFC 7617); Confluent Cloud's API key with its secret.

    Raises:
        ConfigError: The user has a colon.
    """

    user: str
    password: str

    def __post_init__(self) -> None:
        if ":" in self.user:
            raise ConfigError("schema registry: the user of BasicAuth must not have a colon", "auth")

    def header(self) -> str:
        """Returns the value of the header `Authorization`."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


class BearerToken(_Shown, frozen=True):
    """A token, or a function that returns one.

    The function is called before each request, on the thread that makes it; for an `AsyncSchemaRegistry` on another
    thread. It may block or be `async def`, and should keep its token while it is valid.

    Raises:
        ConfigError: The token is empty, or has characters that a header can't carry.
    """

    token: str | TokenGiver

    def __post_init__(self) -> None:
        if not callable(self.token) and not _is_token(self.token):
            raise ConfigError("schema registry: the token of BearerToken is no text that a header can carry", "auth")


class OAuth(_Shown, frozen=True):
    """A client that gets its tokens from an authorization server, by the client credentials grant (RFC 6749).

    The client shows its id and secret by the basic scheme. The settings of `Tls` hold for the server, too.

    Raises:
        ConfigError: The address of the server is none.
    """

    _open = frozenset({"token_url", "client_id", "scope"})

    token_url: str
    client_id: str
    client_secret: str
    scope: str | None = None
    """Scopes, separated by spaces; None asks for none."""

    def __post_init__(self) -> None:
        if address_of("token_url", self.token_url, is_query_allowed=True).user is not None:
            raise ConfigError(
                "schema registry: token_url must not have a user; give client_id and client_secret", "auth"
            )

    def request(self) -> HttpRequest:
        """Returns the request for a token."""
        form = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        own = BasicAuth(quote_plus(self.client_id), quote_plus(self.client_secret)).header()
        headers = {
            "accept": "application/json",
            "authorization": own,
            "content-type": "application/x-www-form-urlencoded",
        }
        return HttpRequest("POST", self.token_url, headers, urlencode(form).encode())


Auth = BasicAuth | BearerToken | OAuth


class Tls(_Shown, frozen=True):
    """Certificates for TLS: paths of PEM files.

    Raises:
        ConfigError: A key without its certificate.
    """

    _open = frozenset({"ca", "certificate", "key"})

    ca: str | None = None
    """The authorities of the servers' certificates: a file, or a folder as of `openssl rehash`. None takes the
    system's. The authority of OAuth's token endpoint must be among them."""
    certificate: str | None = None
    """The client's certificate, for mutual TLS; its chain may follow it in the file."""
    key: str | None = None
    """The key of `certificate`; None when it is in the same file."""
    key_password: str | None = None

    def __post_init__(self) -> None:
        if self.certificate is None and (self.key is not None or self.key_password is not None):
            raise ConfigError("schema registry: Tls has a key, and no certificate for it", "tls")

    def context(self) -> ssl.SSLContext:
        """Returns the settings for a connection. Reads the files.

        Raises:
            ConfigError: A file can't be read, or is not what it should be; says which.
        """
        try:
            context = self._trusting()
        except OSError as error:  # Also `ssl.SSLError`.
            raise ConfigError(f"schema registry: ca {self.ca!r} can't be used: {_why(error)}", "tls") from None
        if self.certificate is not None:
            try:
                # An empty password: with none, OpenSSL would ask the terminal for that of an encrypted key.
                context.load_cert_chain(self.certificate, self.key, self.key_password or "")
            except OSError as error:
                files = f"certificate {self.certificate!r}" + (f" with key {self.key!r}" if self.key else "")
                advice = "check both, and key_password"
                raise ConfigError(f"schema registry: {files} can't be used: {_why(error)}; {advice}", "tls") from None
        return context

    def _trusting(self) -> ssl.SSLContext:
        if self.ca is None:
            import httpx2  # Here, because it is optional.

            return httpx2.create_ssl_context()
        if os.path.isdir(self.ca):
            return ssl.create_default_context(capath=self.ca)
        return ssl.create_default_context(cafile=self.ca)


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__


class _TokenAnswer(msgspec.Struct):
    """The answer of a token endpoint."""

    access_token: str
    expires_in: float | str | None = None


class RegistryLogin:
    """Makes the header `Authorization` of each request; keeps OAuth's token. Any thread, or one event loop."""

    def __init__(
        self,
        auth: Auth | None,
        exchange: Callable[[HttpRequest], Awaitable[HttpAnswer]],
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._auth = auth
        self._exchange = exchange
        self._clock = clock
        self._kept: tuple[str, float] | None = None
        """OAuth's token, and the time of the clock at which it is replaced. One value: read and written as a whole."""
        self._flights = SingleFlight[str]()

    async def header(self) -> str | None:
        """Returns the header's value, or None. Asks for a token if there is none that is valid.

        Raises:
            RegistryUnauthorized: A token could not be had.
            RegistryUnavailable: The token endpoint does not answer, or can't serve now.
        """
        if self._auth is None:
            return None
        if isinstance(self._auth, BasicAuth):
            return self._auth.header()
        if isinstance(self._auth, BearerToken):
            return f"Bearer {await _token_of(self._auth.token)}"
        return f"Bearer {await self._oauth_token(self._auth)}"

    def refused(self, header: str) -> None:
        """Drops OAuth's token if the registry refused it, so that the next request gets a new one."""
        kept = self._kept
        if kept is not None and header == f"Bearer {kept[0]}":
            self._kept = None

    def renew_locks(self) -> None:
        """Makes new locks in a forked process."""
        self._flights = SingleFlight()

    async def _oauth_token(self, oauth: OAuth) -> str:
        return self._valid() or await self._flights.run("token", lambda: self._new_token(oauth))

    def _valid(self) -> str | None:
        kept = self._kept
        return kept[0] if kept is not None and self._clock() < kept[1] else None

    async def _new_token(self, oauth: OAuth) -> str:
        token = self._valid()  # Another flow may have got one since.
        if token is None:
            asked_s = self._clock()
            token, valid_s = _token_in(await self._ask(oauth), oauth)
            self._kept = (token, asked_s + max(valid_s - RENEW_BEFORE_S, valid_s / 2))
        return token

    async def _ask(self, oauth: OAuth) -> HttpAnswer:
        request = oauth.request()
        try:
            answer = await self._exchange(request)
        except Unanswered as error:
            text = f"the token endpoint does not answer: POST {oauth.token_url}: {error}; check token_url"
            raise RegistryUnavailable(text, oauth.token_url) from None
        if answer.status == 200:
            return answer
        secrets = [oauth.client_secret, request.headers["authorization"].partition(" ")[2]]
        refusal = error_of_answer("POST", oauth.token_url, answer.status, answer.content, secrets)
        if isinstance(refusal, RegistryUnavailable):
            raise refusal
        raise RegistryUnauthorized(f"no token: {refusal}", oauth.token_url, answer.status)


def _token_in(answer: HttpAnswer, oauth: OAuth) -> tuple[str, float]:
    """Returns the token, and the time for which it is valid, in seconds."""
    try:
        given = msgspec.json.decode(answer.content, type=_TokenAnswer)
        valid_s = TOKEN_TIME_S if given.expires_in is None else float(given.expires_in)
        if _is_token(given.access_token):
            return given.access_token, valid_s
    except (ValueError, RecursionError):
        pass
    text = f"no token: the answer of {oauth.token_url} has none that can be used; check token_url"
    raise RegistryUnauthorized(text, oauth.token_url, answer.status)


async def _token_of(token: str | TokenGiver) -> str:
    if not callable(token):
        return token
    try:
        found: Any = await elsewhere(lambda: _called(token))
    except Exception as error:  # User code ends here.
        text = f"no token: the function of BearerToken raised {type(error).__name__}; see the cause"
        raise RegistryUnauthorized(text) from error
    if not _is_token(found):
        raise RegistryUnauthorized("no token: the function of BearerToken returned no text that a header can carry")
    return str(found)


def _called(function: TokenGiver) -> object:
    """Calls a function of the user's, and runs what it returns if that is to be awaited. Blocks."""
    found = function()
    if not inspect.isawaitable(found):
        return found
    import asyncio  # Here, because most tokens need none.

    return asyncio.run(_result_of(found))


async def _result_of(awaitable: Awaitable[str]) -> str:
    return await awaitable


def _is_token(value: object) -> bool:
    return isinstance(value, str) and TOKEN.fullmatch(value) is not None

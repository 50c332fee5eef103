"""Tokens for SASL OAUTHBEARER, from the user's function."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from queue import SimpleQueue
from typing import Any, NamedTuple

from awoke.errors import ConfigError, end_apps, end_in

logger = logging.getLogger(__name__)


class OAuthToken(NamedTuple):
    """A token for SASL OAUTHBEARER."""

    value: str
    """The token that the brokers get."""
    expires_at_s: float
    """The moment at which it expires, in seconds since 1970. After 80 % of its time a new one is requested."""
    principal: str = ""
    """The name of the principal; brokers read it from the token."""
    extensions: Mapping[str, str] = {}
    """SASL extensions (RFC 7628). Names consist of letters."""

    def __repr__(self) -> str:
        return f"OAuthToken([secret], expires_at_s={self.expires_at_s}, principal={self.principal!r})"


TokenFunction = Callable[[], OAuthToken | Awaitable[OAuthToken]]
"""Returns a new token; `def` or `async def`. Each client calls it, on a thread that awoke makes for the call."""


TokenParts = tuple[str, int, str, list[tuple[str, str]]]


class TokenSource:
    """Calls the user's function when the engine needs a token. Usable from any thread."""

    def __init__(self, function: TokenFunction) -> None:
        self._function = function

    def __call__(self) -> TokenParts:
        """Returns the parts of a new token. Blocks until the function returns.

        Raises:
            BaseException: The function has raised it.
        """
        # On a thread of Python: CPython 3.11 never frees the thread object that it makes for a thread of the engine.
        answers: SimpleQueue[TokenParts | BaseException] = SimpleQueue()
        threading.Thread(target=self._run, args=(answers,), name="awoke-token", daemon=True).start()
        answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _run(self, answers: SimpleQueue[TokenParts | BaseException]) -> None:
        answer: TokenParts | BaseException
        try:
            answer = self._parts()
        except BaseException as error:  # The engine waits for an answer in any case.
            logger.debug("the token function failed", exc_info=True)
            if (end := end_in(error)) is not None:
                end_apps(end)
            answer = error
        answers.put(answer)

    def _parts(self) -> TokenParts:
        found: Any = self._function()
        if inspect.isawaitable(found):
            import asyncio  # Here, because the settings import this module, and so does every command.

            found = asyncio.run(_result_of(found))
        value, expires_at_s, principal, extensions = OAuthToken(*found)
        return value, int(expires_at_s * 1_000), principal, list(extensions.items())


async def _result_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class ClientProperties(dict[str, str]):
    """librdkafka's properties for one client, and the source of its tokens."""

    token_source: TokenSource | None = None


def check_function(function: Any) -> None:
    """Checks that the setting `oauth_token` is a function.

    Raises:
        ConfigError: It can't be called.
    """
    if function is not None and not callable(function):
        text = f"setting 'oauth_token': is a function that returns an awoke.OAuthToken, not a {type(function).__name__}"
        raise ConfigError(text, "oauth_token")

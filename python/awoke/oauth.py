"""Tokens for SASL OAUTHBEARER, from a function of the user's."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from queue import SimpleQueue
from typing import Any, NamedTuple

from awoke.errors import ConfigError

logger = logging.getLogger(__name__)


class OAuthToken(NamedTuple):
    """A token for SASL OAUTHBEARER."""

    value: str
    """What is sent to the brokers."""
    expires_at_s: float
    """When it expires, in seconds since 1970. A new one is asked for when 80 % of its time is over."""
    principal: str = ""
    """Whom it names; brokers read that from the token."""
    extensions: Mapping[str, str] = {}
    """SASL extensions (RFC 7628); names are of letters."""

    def __repr__(self) -> str:
        return f"OAuthToken([secret], expires_at_s={self.expires_at_s}, principal={self.principal!r})"


TokenFunction = Callable[[], OAuthToken | Awaitable[OAuthToken]]
"""Gives a new token; `def` or `async def`. Each client calls it for itself, on a thread that awoke makes for the call."""


Parts = tuple[str, int, str, list[tuple[str, str]]]


class TokenSource:
    """Calls the user's function, as the engine asks for tokens. Any thread."""

    def __init__(self, function: TokenFunction) -> None:
        self._function = function

    def __call__(self) -> Parts:
        """Returns the parts of a new token. Blocks for as long as the function does."""
        # On a thread of Python's: for one of the engine's, Python 3.11 keeps a thread object for ever.
        answers: SimpleQueue[Parts | BaseException] = SimpleQueue()
        threading.Thread(target=self._run, args=(answers,), name="awoke-token", daemon=True).start()
        answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _run(self, answers: SimpleQueue[Parts | BaseException]) -> None:
        answer: Parts | BaseException
        try:
            answer = self._parts()
        except BaseException as error:  # Whatever it is, the engine waits for an answer.
            logger.debug("the token function failed", exc_info=True)
            answer = error
        answers.put(answer)

    def _parts(self) -> Parts:
        found: Any = self._function()
        if inspect.isawaitable(found):
            found = asyncio.run(_result_of(found))
        value, expires_at_s, principal, extensions = OAuthToken(*found)
        return value, int(expires_at_s * 1_000), principal, list(extensions.items())


async def _result_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class ClientProperties(dict[str, str]):
    """librdkafka's properties for one client, and where its tokens come from."""

    token_source: TokenSource | None = None


def check_function(function: Any) -> None:
    """Refuses what can't be called.

    Raises:
        ConfigError: names the setting.
    """
    if function is not None and not callable(function):
        text = f"setting 'oauth_token': is a function that returns an awoke.OAuthToken, not a {type(function).__name__}"
        raise ConfigError(text, "oauth_token")

"""Tokens from the user's function: their parts, its thread, and its errors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import awoke
from awoke.settings.oauth import OAuthToken, TokenSource, check_function

TOKEN = OAuthToken("canary", 1_760_000_000.5, "shop", {"realm": "eu", "tier": "1"})
PARTS = ("canary", 1_760_000_000_500, "shop", [("realm", "eu"), ("tier", "1")])


async def give_later() -> OAuthToken:
    return TOKEN


class Future:
    """An awaitable that is no coroutine."""

    def __await__(self) -> Any:
        return give_later().__await__()


@pytest.mark.parametrize("function", [lambda: TOKEN, give_later, Future], ids=["def", "async def", "awaitable"])
def test_a_token_is_given_in_parts_with_milliseconds(function: Any) -> None:
    assert TokenSource(function)() == PARTS


def test_principal_and_extensions_may_be_left_out() -> None:
    assert TokenSource(lambda: OAuthToken("t", 4e9))() == ("t", 4_000_000_000_000, "", [])


def test_each_call_is_a_new_one_on_a_thread_of_its_own() -> None:
    called_on: list[threading.Thread] = []

    def give() -> OAuthToken:
        called_on.append(threading.current_thread())
        return TOKEN

    source = TokenSource(give)
    source()
    source()
    for thread in called_on:
        thread.join(10)
    assert [thread.name for thread in called_on] == ["awoke-token"] * 2
    assert called_on[0] is not called_on[1]
    assert all(thread.daemon for thread in called_on), "a function that hangs does not keep the process"


class Ended(BaseException):
    """As `SystemExit`: no `Exception`."""


@pytest.mark.parametrize("error", [ValueError("no"), Ended()])
def test_what_the_function_raises_is_raised_to_the_engine(error: BaseException) -> None:
    def fail() -> OAuthToken:
        raise error

    with pytest.raises(type(error)) as raised:
        TokenSource(fail)()
    assert raised.value is error


@pytest.mark.parametrize("result", [None, 3, ("only",), ("a", 1.0, "b", {}, "more"), ("a", "soon")])
def test_a_result_that_is_no_token_is_an_error(result: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        TokenSource(lambda: result)()


def test_a_token_is_not_shown() -> None:
    assert repr(TOKEN) == "OAuthToken([secret], expires_at_s=1760000000.5, principal='shop')"
    assert "canary" not in str(TOKEN) + f"{TOKEN}" + f"{[TOKEN]}"


def test_a_setting_that_is_no_function_is_refused_without_its_value() -> None:
    for function in (None, lambda: TOKEN, give_later):
        check_function(function)
    with pytest.raises(awoke.ConfigError, match=r"'oauth_token': is a function .*, not a str$") as refused:
        check_function("canary")
    assert refused.value.property == "oauth_token"

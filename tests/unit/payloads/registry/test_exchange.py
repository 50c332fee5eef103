"""Addresses, and answers that are too large."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.payloads.registry import RegistryRefused, exchange
from awoke.payloads.registry.exchange import Body, HttpRequest, Unanswered, address_of


@pytest.mark.parametrize(
    ("text", "url", "user", "password"),
    [
        ("http://host:8081", "http://host:8081", None, ""),
        ("https://host/apis/ccompat/v7/", "https://host/apis/ccompat/v7", None, ""),
        ("http://[::1]:8081", "http://[::1]:8081", None, ""),
        ("http://ada:p%40ss@host:1", "http://host:1", "ada", "p@ss"),
        ("http://ada@host", "http://host", "ada", ""),
    ],
)
def test_an_address_has_its_parts(text: str, url: str, user: str | None, password: str) -> None:
    assert tuple(address_of("url", text)) == (url, user, password)


@pytest.mark.parametrize(
    "text",
    [
        "host:8081",
        "ftp://host",
        "http://",
        "http://host:99999",
        "http://host:0",
        "http://host/?a=b",
        "http://host/#a",
        "http://ada:canary/1@host",
        "http://ada:1/canary@host",
        "http://[::1",
        "http://ho st",
        "http://host\n",
        None,
        7,
    ],
)
def test_a_wrong_address_is_refused_and_not_quoted(text: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        address_of("url", text)
    assert refused.value.property == "url"
    assert "canary" not in str(refused.value)


def test_a_query_is_allowed_where_the_option_says_so() -> None:
    assert address_of("token_url", "http://host/token?p=x", is_query_allowed=True).url == "http://host/token?p=x"


def test_no_repr_shows_a_secret() -> None:
    request = HttpRequest("GET", "http://host", {"authorization": "canary"}, b"canary")
    assert "canary" not in repr(request) + repr(address_of("url", "http://ada:canary@host"))


def test_an_answer_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ANSWER_BYTES_MAX", 10)
    body = Body(HttpRequest("GET", "http://host/subjects", {}), 30.0)
    body.add(b"12345")
    body.add(b"67890")
    assert body.content() == b"1234567890"
    with pytest.raises(RegistryRefused, match="GET http://host/subjects: more than 10 bytes"):
        body.add(b"1")


def test_an_answer_that_comes_too_slowly_is_none() -> None:
    now_s = iter([10.0, 14.9, 15.1])
    body = Body(HttpRequest("GET", "http://host", {}), 5.0, lambda: next(now_s))
    body.add(b"1")
    with pytest.raises(Unanswered, match="no complete answer within 5 s"):
        body.add(b"2")

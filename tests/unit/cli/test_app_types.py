"""The types of an app at the command line: what they decode, mask and hide, and the options beside them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
import typer

import awoke
from awoke.app import application
from awoke.cli.app_types import HIDDEN_BECAUSE, check_keeps, check_with_app, shown_by, types_of
from awoke.payloads.registry import RegistryUnavailable
from tests.support.messages import stored_message


class Order(msgspec.Struct):
    card: Annotated[str, awoke.Secret]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app `shop:app`: the keys and values of its orders have a secret field, its clicks have a registry."""

    def found(target: str) -> awoke.App:
        app = awoke.App("shop", registry_url="http://127.0.0.1:1")

        @app.on(awoke.Topic("orders", value=Order, key=Order))
        def charge(message: awoke.Message[Order, Order]) -> None: ...

        @app.on(awoke.Topic("clicks", value=awoke.avro(Order)))
        def click(message: awoke.Message[Order]) -> None: ...

        return app

    monkeypatch.setattr(application, "find_app", found)


def shown(key: bytes | None, value: bytes | None, *, topic: str = "orders", keeps: bool = False) -> list[Any]:
    message: Any = stored_message(key, value, [], topic=topic)
    with types_of("shop:app", keeps) as parts:
        return shown_by(parts, message, "key", "value")


def test_keys_and_values_are_decoded_and_masked(shop: None) -> None:
    masked = [each.decoded.json for each in shown(b'{"card":"1"}', b'{"card":"2"}')]
    assert masked == ['{"card":"[secret]"}'] * 2
    kept = [each.decoded.json for each in shown(b'{"card":"1"}', b'{"card":"2"}', keeps=True)]
    assert kept == ['{"card":"1"}', '{"card":"2"}']


def test_what_may_have_secrets_and_does_not_decode_is_hidden_with_its_error(shop: None) -> None:
    key, value = shown(b'{"card":4711}', b"4711")
    assert (
        (key.raw, key.decoded, key.note)
        == (value.raw, value.decoded, value.note)
        == (
            b"[secret]",
            None,
            HIDDEN_BECAUSE,
        )
    )


def test_what_is_not_there_is_shown_as_nothing(shop: None) -> None:
    assert [each[1:] for each in shown(None, None)] == [(None, None, None)] * 2


def test_a_topic_that_the_app_does_not_name_is_shown_as_it_is(shop: None) -> None:
    assert [each[1:] for each in shown(b"k", b"4711", topic="views")] == [(b"k", None, None), (b"4711", None, None)]


def test_a_registry_that_is_away_is_an_error(shop: None) -> None:
    with pytest.raises(RegistryUnavailable):
        shown(None, b"\0\0\0\0\1\2", topic="clicks")


def test_secrets_are_kept_only_of_an_app(shop: None) -> None:
    check_keeps("shop:app", True)
    check_keeps(None, False)
    with pytest.raises(awoke.ConfigError, match="--keep-secrets is about the fields of an app"):
        check_keeps(None, True)


def test_an_app_has_its_own_registry() -> None:
    check_with_app("shop:app", False, None)
    check_with_app(None, True, "http://a:1")
    for decode, url in ((True, None), (False, "http://a:1")):
        with pytest.raises(typer.BadParameter, match="leave out --decode and --registry-url"):
            check_with_app("shop:app", decode, url)

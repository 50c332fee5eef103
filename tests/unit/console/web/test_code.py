"""The facts of an app's code that its console uses."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

import awoke
from awoke.console.web.code import Code
from awoke.masking import Masks


class Order(msgspec.Struct):
    item: str


@pytest.fixture(scope="module")
def code() -> Code:
    app = awoke.App("shop")

    @app.on("orders", dead_letter="orders.gone")
    def typed(message: awoke.Message[Order]) -> None: ...

    @app.on("clicks")
    def untyped(message: awoke.Message[bytes]) -> None: ...

    @app.on(awoke.pattern(r"log-.*"))
    def by_pattern(message: awoke.Message[bytes]) -> None: ...

    return Code.of(app)


def test_typed_routes_decode_their_topics_and_dead_letters(code: Code) -> None:
    assert {topic: each.value for topic, each in code.decoders.items()} == {"orders": "Order", "orders.gone": "Order"}
    assert code.dead_letters == {"orders.gone"}
    check = code.check_of("orders")
    assert check is not None
    assert check(b'{"item":"tea"}') == Order("tea")
    assert code.check_of("clicks") is None


def test_topics_are_read_by_name_or_pattern(code: Code) -> None:
    assert [code.reads(each) for each in ("orders", "clicks", "log-a", "orders.gone")] == [True, True, True, False]


def test_a_console_of_a_name_knows_no_code() -> None:
    assert not Code().reads("orders")
    assert Code().check_of("orders") is None


class Card(msgspec.Struct):
    number: Annotated[str, awoke.Secret]


def test_secret_fields_are_known_by_topic_pattern_and_dead_letter() -> None:
    app = awoke.App("shop")

    @app.on("orders", dead_letter="gone")
    def plain(message: awoke.Message[Order]) -> None: ...

    @app.on("cards", dead_letter="gone")
    def typed(message: awoke.Message[Card]) -> None: ...

    @app.on(awoke.pattern(r"cards-.*"))
    def by_pattern(message: awoke.Message[Card]) -> None: ...

    app.topic("paid", value=Card, partitions=1)

    @app.on("clicks", output=awoke.Topic("sent", value=Card))
    def sending(message: awoke.Message[bytes]) -> Card: ...  # type: ignore[empty-body]

    code = Code.of(app)
    secret = Masks(value=(("number",),))
    assert [code.masks_of(each) for each in ("cards", "gone", "cards-1", "paid", "sent")] == [secret] * 5
    assert not code.masks_of("orders")

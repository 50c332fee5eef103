"""The facts of an app's code that its console uses."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.console.explorer.parts import Parts
from awoke.console.web.code import Code
from awoke.secret_topics import declared_by
from awoke.secrets import HIDDEN
from awoke.settings import load


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


def test_the_secret_fields_of_all_routes_of_a_topic_are_masked() -> None:
    app = awoke.App("shop")

    class Payment(msgspec.Struct):
        card: Annotated[str, awoke.Secret]

    class Refund(msgspec.Struct):
        iban: Annotated[str, awoke.Secret]
        card: str = ""

    for group, kind in (("a", Payment), ("b", Refund), ("c", Order)):
        app.on("payments", group=group, value=kind, dead_letter="gone")(lambda message: None)
    code = Code.of(app)
    secrets = code.secrets
    assert secrets is not None
    assert [secrets.has(each) for each in ("payments", "gone", "other")] == [True, True, False]
    with Parts(load({}).values, code.decoders, secrets, reveals=True) as parts:
        for topic in ("payments", "gone"):
            assert parts.content(topic, "value", b'{"item":"tea"}', []).text == '{\n  "item": "tea"\n}'
            assert parts.is_masked(topic, "value")
            document: Any = {"card": "1", "iban": "2"}
            for each in secrets.of(topic, "value"):
                document = each.paths.masked(document)
            assert document == {"card": HIDDEN, "iban": HIDDEN}


@pytest.mark.parametrize("raw", [b'"{\\"card\\":\\"4711\\"}"', b'"4711"'])
def test_a_text_may_be_a_document_of_another_route_with_secrets(raw: bytes) -> None:
    class Payment(msgspec.Struct):
        card: Annotated[str, awoke.Secret] = ""

    app = awoke.App("shop")
    app.on("payments", group="a", value=Payment)(lambda message: None)
    app.on("payments", group="b", value=str)(lambda message: None)
    with Parts(load({}).values, Code.of(app).decoders, declared_by(app), reveals=True) as parts:
        content = parts.content("payments", "value", raw, [])
        assert content.form == "hidden"
        assert "4711" not in str(content)


def test_secret_bytes_are_hidden() -> None:
    app = awoke.App("shop")
    app.on("pins", value=Annotated[bytes, awoke.Secret])(lambda message: None)
    with Parts(load({}).values, Code.of(app).decoders, declared_by(app), reveals=True) as parts:
        assert "4711" not in str(parts.content("pins", "value", b"4711", []).text)


def test_topics_of_patterns_and_topics_that_are_only_written_are_masked() -> None:
    class Payment(msgspec.Struct):
        card: Annotated[str, awoke.Secret]

    app = awoke.App("shop")

    @app.on(awoke.pattern(r"cards-.*"), value=Payment, dead_letter="cards.dead")
    def by_pattern(message: awoke.Message[Any]) -> None: ...

    @app.on("clicks", output=awoke.Topic("sent", value=Payment))
    def sending(message: awoke.Message[bytes]) -> None: ...

    app.topic("paid", value=Payment)
    found = Code.of(app)
    assert found.secrets is not None
    with Parts(load({}).values, found.decoders, found.secrets, reveals=True) as parts:
        for topic in ("cards-1", "cards.dead", "sent", "paid"):
            assert found.secrets.has(topic)
            assert "4111" not in (parts.content(topic, "value", b'{"card":"4111"}', []).text or "4111")
    assert not found.secrets.has("clicks")

"""The facts of an app's code that its console uses."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

import awoke
from awoke.console.explorer.parts import DecodedParts
from awoke.console.web.code import Code
from awoke.declare.secret_topics import declared_by
from awoke.settings import load
from awoke.text.secrets import HIDDEN


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
    with DecodedParts(load({}).values, code.decoders, secrets, reveals=True) as parts:
        for topic in ("payments", "gone"):
            assert parts.is_masked(topic, "value")
            assert shown(parts, topic, {"card": "4711", "iban": "0815"}) == {"card": HIDDEN, "iban": HIDDEN}
            assert shown(parts, topic, {"card": "4711", "more": 1}) == {"card": HIDDEN, "more": 1}
            assert parts.content(topic, "value", b'{"item":"tea"}', []).form == "hidden"


def shown(parts: DecodedParts, topic: str, document: Any) -> Any:
    return json.loads(parts.content(topic, "value", json.dumps(document).encode(), []).text or "null")


class Paid(msgspec.Struct):
    item: str
    card: Annotated[str | None, awoke.Secret] = None


class Billed(pydantic.BaseModel):
    """Has the field of `Paid` under another name: the paths of `Paid` do not lead to it."""

    item: str = ""
    number: str = pydantic.Field(default="", alias="card")


class Listed(msgspec.Struct, array_like=True):
    item: str
    number: str = ""


@pytest.mark.parametrize("other", [Billed, dict, dict[str, Any], Order, Any])
@pytest.mark.parametrize("is_last", [True, False])
@pytest.mark.parametrize("is_sent_only", [True, False])
def test_a_document_of_another_type_of_the_topic_has_no_secret(other: Any, is_last: bool, is_sent_only: bool) -> None:
    app, kinds = awoke.App("shop"), [Paid, other]
    if is_sent_only:
        app.topic("paid", value=kinds.pop(0))
    for at, kind in enumerate(kinds if is_last else reversed(kinds)):
        app.on("paid", group=f"group-{at}", value=kind)(lambda message: None)
    code = Code.of(app)
    assert code.secrets is not None
    with DecodedParts(load({}).values, code.decoders, code.secrets, reveals=True) as parts:
        assert shown(parts, "paid", {"item": "tea", "card": "4711"}) == {"item": "tea", "card": HIDDEN}
        found = parts.content("paid", "value", b'["tea", "4711"]', [])
        assert b"4711" not in msgspec.json.encode(found)


def test_a_list_of_another_type_is_hidden_where_a_document_has_secrets() -> None:
    app = awoke.App("shop")
    app.on(awoke.pattern(r"pa.*"), group="a", value=Paid)(lambda message: None)
    app.on("paid", group="b", value=Listed)(lambda message: None)
    code = Code.of(app)
    assert code.secrets is not None
    with DecodedParts(load({}).values, code.decoders, code.secrets, reveals=True) as parts:
        found = parts.content("paid", "value", b'["tea", "4711"]', [])
        assert (found.form, found.text) == ("hidden", None)
        assert shown(parts, "paid", {"item": "tea", "card": "4711"}) == {"item": "tea", "card": HIDDEN}


@pytest.mark.parametrize("raw", [b'"{\\"card\\":\\"4711\\"}"', b'"4711"'])
def test_a_text_may_be_a_document_of_another_route_with_secrets(raw: bytes) -> None:
    class Payment(msgspec.Struct):
        card: Annotated[str, awoke.Secret] = ""

    app = awoke.App("shop")
    app.on("payments", group="a", value=Payment)(lambda message: None)
    app.on("payments", group="b", value=str)(lambda message: None)
    with DecodedParts(load({}).values, Code.of(app).decoders, declared_by(app), reveals=True) as parts:
        content = parts.content("payments", "value", raw, [])
        assert content.form == "hidden"
        assert "4711" not in str(content)


def test_secret_bytes_are_hidden() -> None:
    app = awoke.App("shop")
    app.on("pins", value=Annotated[bytes, awoke.Secret])(lambda message: None)
    with DecodedParts(load({}).values, Code.of(app).decoders, declared_by(app), reveals=True) as parts:
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
    with DecodedParts(load({}).values, found.decoders, found.secrets, reveals=True) as parts:
        for topic in ("cards-1", "cards.dead", "sent", "paid"):
            assert found.secrets.has(topic)
            assert "4111" not in (parts.content(topic, "value", b'{"card":"4111"}', []).text or "4111")
    assert not found.secrets.has("clicks")

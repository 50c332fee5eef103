"""The AsyncAPI document of an app: valid by the official schema, and complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import pydantic
import pytest

import awoke
from awoke.operate.asyncapi import document_of
from awoke.payloads import dead_letter
from tests.support.asyncapi_schema import faults


class Line(msgspec.Struct):
    sku: str
    count: int = 1


class Order(msgspec.Struct):
    id: int
    lines: list[Line]
    state: Literal["new", "paid"] = "new"


class Paid(msgspec.Struct):
    id: int


class Refund(pydantic.BaseModel):
    id: int
    lines: list[str]


def shop() -> awoke.App:
    """An app with each kind of interface."""
    app = awoke.App("shop")
    config: dict[str, str | int | float | bool] = {
        "cleanup.policy": "compact,delete",
        "retention.ms": 1_000,
        "min.insync.replicas": 2,
    }
    orders = app.topic("orders", value=Order, key=int, partitions=3, replication=2, config=config)

    @app.on(orders, output="paid", dead_letter="orders.dead")
    def charge(message: awoke.Message[Order, int]) -> Paid | None: ...

    @app.on("lines", value=awoke.avro(Line), group="audit")
    def lines(message: awoke.Message[Line]) -> None: ...

    @app.on(awoke.pattern(r"eu\..*"))
    def eu(message: awoke.Message[bytes]) -> None: ...

    @app.on("refunds", value=Refund)
    def refund(message: awoke.Message[Refund]) -> None: ...

    @app.rpc.method
    def quote(sku: str, order: Order, quantity: int = 1) -> Paid:
        return Paid(order.id)

    @app.rpc.method
    def many(sku: str) -> Iterator[Line]:
        yield Line(sku)

    return app


DOCUMENT = document_of(shop(), "1.2.0")


def found(reference: dict[str, str], document: dict[str, Any] = DOCUMENT) -> Any:
    at: Any = document
    for part in reference["$ref"].removeprefix("#/").split("/"):
        at = at[part]
    return at


def message_of(operation: str, document: dict[str, Any] = DOCUMENT) -> Any:
    (reference,) = document["operations"][operation]["messages"]
    return found(reference, document)


def test_the_document_is_valid_by_the_official_schema() -> None:
    assert faults(DOCUMENT) == []
    broken = {**DOCUMENT, "operations": {"a": {"action": "take"}}}
    assert faults(broken) != []


def test_a_route_is_received_with_its_types_and_group() -> None:
    operation = DOCUMENT["operations"]["receive_orders_shop"]
    assert (operation["action"], operation["channel"]) == ("receive", {"$ref": "#/channels/orders"})
    assert operation["bindings"]["kafka"]["groupId"]["enum"] == ["shop"]
    message = message_of("receive_orders_shop")
    assert message["contentType"] == "application/json"
    assert found(message["payload"])["properties"]["lines"]["items"] == {"$ref": "#/components/schemas/Line"}
    assert message["bindings"]["kafka"]["key"] == {"type": "integer"}
    assert "receive_lines_audit" in DOCUMENT["operations"]


def test_a_declared_topic_has_its_numbers_and_the_settings_that_the_binding_knows() -> None:
    assert DOCUMENT["channels"]["orders"]["bindings"]["kafka"] == {
        "topic": "orders",
        "partitions": 3,
        "replicas": 2,
        "topicConfiguration": {"cleanup.policy": ["compact", "delete"], "retention.ms": 1_000},
        "bindingVersion": "0.5.0",
    }


def test_results_and_dead_letters_are_sent() -> None:
    assert found(message_of("send_paid")["payload"])["required"] == ["id"]
    letter = message_of("send_orders.dead")
    assert letter["payload"] == message_of("receive_orders_shop")["payload"]
    assert set(letter["headers"]["properties"]) == set(dead_letter.HEADERS)


def test_a_format_brings_its_own_schema() -> None:
    message = message_of("receive_lines_audit")
    assert message["payload"]["schemaFormat"].startswith("application/vnd.apache.avro")
    assert [field["name"] for field in message["payload"]["schema"]["fields"]] == ["sku", "count"]


def test_a_pattern_has_no_address() -> None:
    (channel,) = [each for each in DOCUMENT["channels"].values() if each["address"] is None]
    assert r"eu\..*" in channel["description"]


def test_a_method_receives_its_arguments_and_replies() -> None:
    call = message_of("call_quote")["payload"]
    assert (call["required"], call["properties"]["quantity"]) == (["sku", "order"], {"type": "integer"})
    assert call["properties"]["order"] == {"$ref": "#/components/schemas/Order"}
    reply = DOCUMENT["operations"]["call_quote"]["reply"]
    assert found(reply["channel"])["address"] == "shop.rpc.replies"
    assert found(found(reply["messages"][0])["payload"])["required"] == ["id"]
    stream = DOCUMENT["operations"]["call_many"]["reply"]["messages"][0]
    assert found(stream)["payload"] == {"$ref": "#/components/schemas/Line"}


FORMATS = [
    (bytes, "application/octet-stream"),
    (str, "text/plain"),
    (awoke.msgpack(Line), "application/msgpack"),
    (awoke.json_schema(Line), "application/json"),
    (awoke.cloudevents(Line), "application/json"),
    (awoke.cloudevents(Line, mode="structured"), "application/cloudevents+json"),
    (awoke.encrypted(Line, keys={"a": bytes(32)}, current="a"), "application/octet-stream"),
]


@pytest.mark.parametrize(("value", "content_type"), FORMATS, ids=lambda each: type(each).__name__)
def test_each_format_has_a_content_type_and_a_valid_document(value: Any, content_type: str) -> None:
    app = awoke.App("shop")
    app.on("a", value=value)(lambda message: None)
    document = document_of(app)
    assert message_of("receive_a_shop", document)["contentType"] == content_type
    assert faults(document) == []


def test_an_app_without_routes_has_a_valid_document() -> None:
    assert faults(document_of(awoke.App("empty"))) == []

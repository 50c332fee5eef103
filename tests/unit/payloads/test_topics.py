"""Topics with types: names as any other, and what is sent to them."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import msgspec
import pytest

import awoke
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.registry.schemas import NO_SCHEMAS, SchemaNeeded
from awoke.payloads.topic_formats import TopicFormats
from awoke.payloads.topics import Topic
from awoke.produce.middleware import through
from tests.support.known_schemas import KnownSchemas


class Order(msgspec.Struct):
    id: int


ORDERS = Topic("orders", value=awoke.avro(Order, wire="header"), key=int)


def test_a_topic_is_its_name() -> None:
    assert (ORDERS, {str(ORDERS): 1}[ORDERS], f"{ORDERS}") == ("orders", 1, "orders")
    assert (ORDERS.key, type(ORDERS.value).__name__) == (int, "AvroFormat")
    plain = pickle.loads(pickle.dumps(Topic("plain", key=int)))
    assert (plain, plain.key, plain.value) == ("plain", int, None)


def test_a_topic_keeps_its_declaration_in_copies_and_with_a_prefix() -> None:
    orders = Topic("orders", key=int, partitions=12, replication=3, config={"cleanup.policy": "compact", "a.b": True})
    copies = [pickle.loads(pickle.dumps(orders)), copy.deepcopy(orders), orders.prefixed("eu.")]
    assert copies == ["orders", "orders", "eu.orders"]
    for each in copies:
        assert type(each) is Topic
        assert (each.key, each.value, each.declaration) == (int, None, orders.declaration)
        assert (each.partitions, each.replication) == (12, 3)
        assert each.config == {"cleanup.policy": "compact", "a.b": "true"}
    plain = Topic("plain", key=int).prefixed("eu.")
    assert (plain, plain.key, plain.declaration) == ("eu.plain", int, None)
    assert (plain.partitions, plain.replication, plain.config) == (None, None, None)


def test_a_prefix_that_kafka_does_not_take_is_refused() -> None:
    with pytest.raises(awoke.ConfigError):
        ORDERS.prefixed("a b")


@pytest.mark.parametrize("name", ["", "a b", None, 5])
def test_a_name_that_kafka_does_not_take_is_refused(name: Any) -> None:
    with pytest.raises(awoke.ConfigError):
        Topic(name)


def test_keys_and_values_are_encoded_and_headers_added() -> None:
    encode = TopicFormats([ORDERS, "plain"], BY_TYPE, KnownSchemas())
    sent = encode(awoke.Outgoing("orders", Order(7), 5, {"trace": "a"}))
    assert (sent.key, sent.value) == (b"5", b"\x0e")
    assert isinstance(sent.headers, list)
    assert [name for name, _ in sent.headers] == ["trace", "__value_schema_id"]


def test_headers_of_the_message_before_do_not_say_how_the_value_is_read() -> None:
    encode = TopicFormats([ORDERS], BY_TYPE, KnownSchemas())
    carried = [("__value_schema_id", b"1"), ("ce_id", b"2"), ("awoke-encryption-key", b"3"), ("trace", b"4")]
    sent = encode(awoke.Outgoing("orders", Order(7), None, carried))
    assert isinstance(sent.headers, list)
    assert [name for name, _ in sent.headers] == ["ce_id", "trace", "__value_schema_id"]
    assert encode(awoke.Outgoing("orders", b"raw", None, carried)).headers == carried


def test_headers_that_the_caller_gives_are_sent() -> None:
    encode = TopicFormats([Topic("orders", value=awoke.msgpack(Order))], BY_TYPE, NO_SCHEMAS)
    sent = encode(awoke.Outgoing("orders", Order(7), None, {"ce_id": "1", "content-type": "x"}))
    assert sent.headers == [("ce_id", "1"), ("content-type", "x")]
    events = TopicFormats([Topic("orders", value=awoke.cloudevents(Order))], BY_TYPE, NO_SCHEMAS)
    event = awoke.CloudEvent(data=Order(7), type="t", source="s", id="2")
    sent = events(awoke.Outgoing("orders", event, None, [("ce_id", b"1"), ("ce_subject", b"old"), ("trace", b"a")]))
    assert isinstance(sent.headers, list)
    assert ("ce_id", b"2") in sent.headers
    assert [name for name, _ in sent.headers].count("ce_id") == 1
    assert "ce_subject" not in dict(sent.headers)


def test_bytes_tombstones_and_other_topics_are_left_alone() -> None:
    encode = TopicFormats([ORDERS], BY_TYPE, KnownSchemas())
    for message in (
        awoke.Outgoing("orders", b"raw", b"k"),
        awoke.Outgoing("orders", None),
        awoke.Outgoing("others", Order(7), "k"),
    ):
        assert encode(message) is message


def test_topics_whose_types_need_no_encoder_cost_nothing() -> None:
    assert not TopicFormats(["plain", Topic("orders", value=Order, key=str)], BY_TYPE, NO_SCHEMAS)


def test_on_an_event_loop_a_schema_that_is_missing_is_said_and_not_waited_for() -> None:
    loads: list[str] = []

    class Missing(KnownSchemas):
        def for_writing(self, *arguments: Any) -> Any:
            if not loads:
                raise SchemaNeeded("a schema", lambda: loads.append("loaded"))
            return super().for_writing(*arguments)

    encode = TopicFormats([ORDERS], BY_TYPE, Missing())

    async def send() -> None:
        encode(awoke.Outgoing("orders", Order(7)))

    with pytest.raises(SchemaNeeded):
        asyncio.run(send())
    assert loads == []
    encode(awoke.Outgoing("orders", Order(7)))
    assert loads == ["loaded"]


def test_an_app_encodes_for_its_topics_after_all_other_steps() -> None:
    app = awoke.App("app")
    seen: list[Any] = []

    @app.outgoing
    def note(message: awoke.Outgoing) -> awoke.Outgoing:
        seen.append(message.value)
        return message

    topic = app.topic("orders", key=int)
    message = awoke.Outgoing(topic, Order(7), 5)
    message = app.topic_formats(through(app.middleware, message))
    assert (seen, message.key) == ([Order(7)], b"5")


def test_a_route_takes_types_and_output_from_topics() -> None:
    app = awoke.App("app")
    priced = Topic("priced", key=int)

    @app.on(Topic("orders", value=Order, key=int), output=priced)
    def price(message: awoke.Message[Order, int]) -> Order:
        return message.value

    route = app.routes["orders"]
    assert route.key_format.decoder(route.topic, "key", app.schemas)(b"7") == 7
    assert app.topic_formats(awoke.Outgoing("priced", b"", 7)).key == b"7"
    with pytest.raises(awoke.ConfigError, match="key=int contradicts"):

        @app.on(Topic("others", key=int))
        def handle(message: awoke.Message[Order, str]) -> None: ...

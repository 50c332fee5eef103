"""Formats on two schema registries, and bytes that confluent-kafka's serializers write and read, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import awoke
from awoke.payloads.formats import Format
from awoke.payloads.formats.avro_types import schema_of as avro_schema_of
from awoke.payloads.formats.json_schema import schema_of as json_schema_of
from awoke.payloads.registry import Reference, Schema, record_name, topic_record_name
from awoke.payloads.registry.schemas import Schemas, loading
from tests.support.clusters import unique
from tests.support.protobuf_classes import Line, Note
from tests.support.protobuf_classes import Order as OrderPb

Serialize = Callable[[Any], bytes]


class Order(msgspec.Struct):
    id: int
    price: float
    tags: list[str] = []
    note: str | None = None


ORDER = Order(7, 2.5, ["a", "b"], "fragile")
MESSAGE = OrderPb(id=7, lines=[Line(sku="b")])


@pytest.fixture
def topic() -> str:
    return unique("orders")


@pytest.fixture
def schemas(registry_url: str) -> Iterator[Schemas]:
    """A program that registers the schemas of what it sends."""
    yield from opened(registry_url, "always")


@pytest.fixture
def reading(registry_url: str) -> Iterator[Schemas]:
    """A second program, which knows nothing and registers nothing."""
    yield from opened(registry_url, "never")


def opened(url: str, register: Any) -> Iterator[Schemas]:
    schemas = Schemas(lambda: awoke.SchemaRegistry(url, timeout_s=30.0), lambda: register)
    yield schemas
    schemas.close()


@pytest.fixture
def theirs(registry_url: str) -> Iterator[SchemaRegistryClient]:
    # Without a time-out of its own it waits for ever for an answer that does not come.
    with SchemaRegistryClient({"url": registry_url, "timeout": 20}) as client:
        yield client


def encoded(form: Format, topic: str, schemas: Schemas, value: Any) -> bytes:
    data: bytes = loading(form.encoder(topic, "value", schemas))(value)[0]
    return data


def decoded(form: Format, topic: str, schemas: Schemas, data: bytes, headers: Any = ()) -> Any:
    return loading(form.decoder(topic, "value", schemas))(data, list(headers))


def at(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


FORMS = [
    (awoke.avro(Order), ORDER),
    (awoke.json_schema(Order), ORDER),
    (awoke.protobuf(Line), Line(sku="a")),
    (awoke.protobuf(Note), Note(text="nested")),
]
IDS = ["avro", "json", "protobuf", "nested protobuf"]


@pytest.mark.parametrize(("form", "value"), FORMS, ids=IDS)
def test_a_value_goes_from_one_program_to_another(
    form: Format, value: Any, topic: str, schemas: Schemas, reading: Schemas
) -> None:
    data = encoded(form, topic, schemas, value)
    assert decoded(form, topic, reading, data) == value
    assert encoded(form, topic, reading, value) == data, "a program that registers nothing writes the same"


@pytest.mark.parametrize("strategy", [record_name, topic_record_name])
def test_subjects_follow_the_strategy(
    strategy: Any, topic: str, schemas: Schemas, theirs: SchemaRegistryClient
) -> None:
    namespace = unique("shop").replace("-", "_")
    encoded(awoke.avro(Order, namespace=namespace, subject=strategy), topic, schemas, ORDER)
    subject = f"{namespace}.Order" if strategy is record_name else f"{topic}-{namespace}.Order"
    assert subject in theirs.get_subjects()


# confluent-kafka, in both directions.


def test_avro_is_the_same_for_confluent_kafka(
    topic: str, schemas: Schemas, reading: Schemas, theirs: SchemaRegistryClient
) -> None:
    text, form = msgspec.json.encode(avro_schema_of(Order)).decode(), awoke.avro(Order)
    data = AvroSerializer(theirs, text, lambda order, _: msgspec.to_builtins(order))(ORDER, at(topic))
    assert decoded(form, topic, reading, data) == ORDER
    assert encoded(form, topic, schemas, ORDER) == data
    assert AvroDeserializer(theirs)(data, at(topic)) == msgspec.to_builtins(ORDER)


def test_json_is_the_same_for_confluent_kafka(
    topic: str, schemas: Schemas, reading: Schemas, theirs: SchemaRegistryClient
) -> None:
    text, form = msgspec.json.encode(json_schema_of(Order)).decode(), awoke.json_schema(Order)
    data = JSONSerializer(text, theirs, lambda order, _: msgspec.to_builtins(order))(ORDER, at(topic))
    assert decoded(form, topic, reading, data) == ORDER
    ours = encoded(form, topic, schemas, ORDER)
    assert ours[:5] == data[:5]
    read = JSONDeserializer(text, schema_registry_client=theirs)(ours, at(topic))
    assert read == msgspec.to_builtins(ORDER)


@pytest.mark.parametrize("message", [Line(sku="a"), Note(text="nested")], ids=["first", "nested"])
def test_protobuf_is_the_same_for_confluent_kafka(
    message: Any, topic: str, schemas: Schemas, reading: Schemas, theirs: SchemaRegistryClient
) -> None:
    kind, form = type(message), awoke.protobuf(type(message))
    options = {"use.deprecated.format": False}
    data = ProtobufSerializer(kind, theirs, options)(message, at(topic))
    assert decoded(form, topic, reading, data) == message
    ours = encoded(form, topic, schemas, message)
    assert ours[5:] == data[5:]
    assert ProtobufDeserializer(kind, options)(ours, at(topic)) == message


def test_headers_of_confluent_kafka_are_read(topic: str, registry_url: str, theirs: SchemaRegistryClient) -> None:
    from confluent_kafka.schema_registry import header_schema_id_serializer

    with awoke.SchemaRegistry(registry_url, timeout_s=30.0) as registry:
        registered = registry.register(f"{topic}-value", Schema(msgspec.json.encode(avro_schema_of(Order)).decode()))
        if registered.guid is None:
            pytest.skip("this registry gives schemas no GUID")
    text = registered.schema.text
    context = SerializationContext(topic, MessageField.VALUE, headers=[])
    options = {"schema.id.serializer": header_schema_id_serializer, "auto.register.schemas": False}
    data = AvroSerializer(theirs, text, lambda order, _: msgspec.to_builtins(order), options)(ORDER, context)
    for schemas in opened(registry_url, "never"):
        assert decoded(awoke.avro(Order), topic, schemas, data, context.headers) == ORDER


# Versions and references.


def test_an_older_message_gets_the_defaults_of_the_newer_type(topic: str, schemas: Schemas, reading: Schemas) -> None:
    older = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    data = encoded(awoke.avro(schema=older), topic, schemas, {"id": 7})

    class Order(msgspec.Struct):
        id: int
        note: str = "none"

    assert decoded(awoke.avro(Order), topic, reading, data) == Order(7, "none")


def test_a_type_that_is_not_registered_is_written_by_the_latest_version_if_it_fits(
    topic: str, schemas: Schemas, reading: Schemas
) -> None:
    wider = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "more", "type": "string", "default": "d"}],
    }
    encoded(awoke.avro(schema=wider), topic, schemas, {"id": 1, "more": "x"})

    class Order(msgspec.Struct):
        id: int

    data = encoded(awoke.avro(Order), topic, reading, Order(7))
    assert decoded(awoke.avro(), topic, reading, data) == {"id": 7, "more": "d"}


def test_an_incompatible_type_is_refused_by_the_registry(topic: str, schemas: Schemas) -> None:
    encoded(awoke.avro(Order), topic, schemas, ORDER)

    class Incompatible(msgspec.Struct, rename={"id": "number"}):
        id: int

    form = awoke.avro(schema={**avro_schema_of(Incompatible), "name": "Order"})
    with pytest.raises(awoke.registry.SchemaIncompatible):
        encoded(form, topic, schemas, {"number": 1})


def test_a_schema_that_refers_to_another_is_read(topic: str, registry_url: str, reading: Schemas) -> None:
    line, order = unique("line"), f"{topic}-value"
    with awoke.SchemaRegistry(registry_url, timeout_s=30.0) as registry:
        registry.register(line, Schema('{"type":"record","name":"Line","fields":[{"name":"sku","type":"string"}]}'))
        text = '{"type":"record","name":"Order","fields":[{"name":"line","type":"Line"}]}'
        registered = registry.register(order, Schema(text, references=(Reference("Line", line, 1),)))
    data = b"\0" + registered.id.to_bytes(4) + b"\x02a"
    assert decoded(awoke.avro(), topic, reading, data) == {"line": {"sku": "a"}}


def test_a_protobuf_file_that_imports_another_registers_both(
    topic: str, schemas: Schemas, reading: Schemas, theirs: SchemaRegistryClient
) -> None:
    form = awoke.protobuf(OrderPb)
    data = encoded(form, topic, schemas, MESSAGE)
    assert decoded(form, topic, reading, data) == MESSAGE
    assert "money.proto" in theirs.get_subjects()

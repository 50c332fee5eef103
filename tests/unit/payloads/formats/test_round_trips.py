"""What is sent is what is read, or it is refused before it is sent: types and values that Hypothesis builds.

`AWOKE_FUZZ_EXAMPLES` is the number of types; of each there are up to 30 values, in each format.
"""

from __future__ import annotations

import dataclasses
import decimal
import io
import json
import os
import uuid
from collections.abc import Callable
from typing import Any

import attrs
import fastavro
import msgspec
import pydantic
import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import awoke
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import decoder_of, encoder_of, format_of
from awoke.payloads.registry.schema import Part, RegisteredSchema, Schema
from tests.support.generated_messages import kinds, values_of
from tests.support.generated_types import Built, types
from tests.support.known_schemas import KnownSchemas

VALUES: tuple[str, Part] = ("orders", "value")
AT = SerializationContext("orders", MessageField.VALUE)
TEXTS = (bytes, str, bytes | None, str | None)
"""Types whose values are sent as they are."""
FORMATS: dict[str, Any] = {
    "JSON": lambda hint: hint,
    "MessagePack": awoke.msgpack,
    "JSON Schema": awoke.json_schema,
    "Avro": awoke.avro,
}
EXAMPLES = int(os.environ.get("AWOKE_FUZZ_EXAMPLES", "0"))
VALUES_MAX = 30
REGISTRY = SchemaRegistryClient.new_client({"url": "mock://round-trips"})
READ_AVRO = AvroDeserializer(REGISTRY, return_record_name=True)
OPTIONS: Any = {"return_record_name": True}
Read = Callable[[bytes], Any]


THEIR_OPTIONS = {"use.deprecated.format": False}


class AllSchemas(KnownSchemas):
    """A registry that takes every schema."""

    def for_writing(self, subject: str, schema: Schema | None, imports: Any = ()) -> RegisteredSchema:
        assert schema is not None
        if schema not in self.known:
            self.known.append(schema)
        return self._registered(schema, self.known.index(schema) + 1)


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=EXAMPLES or 400, phases=(Phase.generate, Phase.shrink) if EXAMPLES else (Phase.generate,))
@given(data=st.data())
def test_fuzz_what_is_sent_is_what_is_read(data: st.DataObject) -> None:
    built: Built = data.draw(types())
    values = data.draw(st.lists(built.values, min_size=1, max_size=VALUES_MAX))
    for name, make in FORMATS.items():
        check(name, make, built, values)


@settings(max_examples=EXAMPLES or 150, phases=(Phase.generate, Phase.shrink) if EXAMPLES else (Phase.generate,))
@given(data=st.data())
def test_fuzz_messages_of_protobuf_are_read_as_they_were_sent(data: st.DataObject) -> None:
    kind, parts = data.draw(kinds())
    schemas, form = AllSchemas(), awoke.protobuf(kind)
    encode: Any = encoder_of(form, *VALUES, BY_TYPE, schemas)
    decode: Any = decoder_of(form, *VALUES, schemas)
    plain: Any = decoder_of(format_of(kind, BY_TYPE), *VALUES, schemas)
    write, read = ProtobufSerializer(kind, REGISTRY, THEIR_OPTIONS), ProtobufDeserializer(kind, THEIR_OPTIONS, REGISTRY)
    for value in data.draw(st.lists(values_of(kind, parts), min_size=1, max_size=VALUES_MAX // 3)):
        ours, theirs = encode(value)[0], write(value, AT)
        assert theirs is not None
        found = [decode(ours, []), decode(ours[:5] + theirs[5:], []), read(theirs[:5] + ours[5:], AT)]
        found += [plain(BY_TYPE.encode(value)), plain(value.SerializeToString()), kind.FromString(ours[7:])]
        wanted = value.SerializeToString(deterministic=True)  # Messages with a NaN are not equal to themselves.
        assert all(type(each) is kind and each.SerializeToString(deterministic=True) == wanted for each in found)


def check(name: str, make: Any, built: Built, values: list[Any]) -> int:
    """Sends values and reads them again; returns how many of them were not refused."""
    schemas = AllSchemas()
    try:
        said = make(built.hint)
        format = format_of(said, BY_TYPE)
        decode: Any = decoder_of(format, *VALUES, schemas)
        encode: Any = encoder_of(said, *VALUES, BY_TYPE, schemas)
    except (TypeError, awoke.ConfigError):
        return 0  # Refused when it is declared.
    sent: list[tuple[Any, bytes]] = []
    for value in values:
        if value is None or built.hint in TEXTS:
            continue
        try:
            data = BY_TYPE.encode(value) if encode is None else encode(value)[0]
        except awoke.EncodeError:
            continue
        read = decode(data, []) if format.reads_headers else decode(data)
        assert same(read, value), (name, built.hint, value, read, data)
        sent.append((value, data))
    if name in THEIRS and len(schemas.known) == 1:
        for value, data in sent[:1]:
            THEIRS[name](schemas.known[0].text, value, data)
    return len(sent)


def check_with_avro_libraries(schema: str, value: Any, data: bytes) -> None:
    """Reads by fastavro and by confluent-kafka what awoke has written; writes it by fastavro again."""
    number = REGISTRY.register_schema(str(uuid.uuid4()), TheirSchema(schema, "AVRO"))
    parsed, options = fastavro.parse_schema(json.loads(schema)), OPTIONS
    theirs: Any = fastavro.schemaless_reader(io.BytesIO(data[5:]), parsed, None, **options)
    document = json.loads(schema)
    if not isinstance(document, dict) or document["type"] != "bytes":  # It returns a lone decimal as its bytes.
        assert same(READ_AVRO(b"\0" + number.to_bytes(4) + data[5:], AT), theirs)
    stream = io.BytesIO()
    try:
        fastavro.schemaless_writer(stream, parsed, theirs)
    except ValueError:
        return  # It refuses a decimal of zeros, which it has read.
    again = fastavro.schemaless_reader(io.BytesIO(stream.getvalue()), parsed, None, **options)
    assert same(again, theirs), (value, theirs)


def check_with_json_libraries(schema: str, value: Any, data: bytes) -> None:
    """Reads by confluent-kafka, which validates, what awoke has written."""
    document = json.loads(data[5:])
    if b'"format"' in schema.encode() or isinstance(value, pydantic.BaseModel):
        return  # Its validator does not know some formats.
    assert same(JSONDeserializer(schema)(data, AT), document)


THEIRS: dict[str, Callable[[str, Any, bytes], None]] = {
    "Avro": check_with_avro_libraries,
    "JSON Schema": check_with_json_libraries,
}


def same(one: Any, other: Any) -> bool:
    """Tells whether two values are equal and of the same types, also if they are not a number."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, pydantic.BaseModel) or dataclasses.is_dataclass(one):
        return same(vars(one), vars(other))
    if isinstance(one, msgspec.Struct):
        return same(msgspec.structs.asdict(one), msgspec.structs.asdict(other))
    if hasattr(one, "__attrs_attrs__"):
        return same(attrs.asdict(one, recurse=False), attrs.asdict(other, recurse=False))
    if isinstance(one, decimal.Decimal) and not one.is_finite():
        return str(one) == str(other)
    return bool(one == other) or (one != one and other != other)

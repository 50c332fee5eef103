"""Formats, which encode what is sent and decode what handlers get."""

from awoke.payloads.formats.avro import AvroFormat, avro
from awoke.payloads.formats.by_type import BY_TYPE, ByTypeFormat
from awoke.payloads.formats.cloudevents import CloudEvent, CloudEventFormat, cloudevents
from awoke.payloads.formats.encryption import EncryptedFormat, encrypted
from awoke.payloads.formats.format import Decode, Description, Encode, Format, Headers, Payload
from awoke.payloads.formats.json_schema import JsonSchemaFormat, json_schema
from awoke.payloads.formats.msgpack import MessagePackFormat, msgpack
from awoke.payloads.formats.protobuf import ProtobufFormat, protobuf

__all__ = [
    "BY_TYPE",
    "AvroFormat",
    "ByTypeFormat",
    "CloudEvent",
    "CloudEventFormat",
    "Decode",
    "Description",
    "Encode",
    "EncryptedFormat",
    "Format",
    "Headers",
    "JsonSchemaFormat",
    "MessagePackFormat",
    "Payload",
    "ProtobufFormat",
    "avro",
    "cloudevents",
    "encrypted",
    "json_schema",
    "msgpack",
    "protobuf",
]

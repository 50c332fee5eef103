"""Values and bytes: codecs and formats, which encode what is sent and decode what handlers get."""

from awoke.payloads.formats.avro import AvroFormat, avro
from awoke.payloads.formats.cloudevents import CloudEvent, CloudEventFormat, cloudevents
from awoke.payloads.formats.codec import BY_TYPE, Codec, Decoder, TypeCodec, decoder_for, takes_none
from awoke.payloads.formats.encryption import EncryptedFormat, encrypted
from awoke.payloads.formats.format import Encoded, Encoder, Format, HeaderDecoder, Place
from awoke.payloads.formats.json_schema import JsonSchemaFormat, json_schema
from awoke.payloads.formats.msgpack import MessagePackFormat, msgpack
from awoke.payloads.formats.protobuf import ProtobufFormat, protobuf

__all__ = [
    "BY_TYPE",
    "AvroFormat",
    "CloudEvent",
    "CloudEventFormat",
    "Codec",
    "Decoder",
    "Encoded",
    "Encoder",
    "EncryptedFormat",
    "Format",
    "HeaderDecoder",
    "JsonSchemaFormat",
    "MessagePackFormat",
    "Place",
    "ProtobufFormat",
    "TypeCodec",
    "avro",
    "cloudevents",
    "decoder_for",
    "encrypted",
    "json_schema",
    "msgpack",
    "protobuf",
    "takes_none",
]

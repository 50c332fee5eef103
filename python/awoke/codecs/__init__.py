"""Values and bytes: codecs and formats, which encode what is sent and decode what handlers get."""

from awoke.codecs.avro import AvroFormat, avro
from awoke.codecs.cloudevents import CloudEvent, CloudEventFormat, cloudevents
from awoke.codecs.codec import BY_TYPE, Codec, Decoder, TypeCodec, decoder_for, takes_none
from awoke.codecs.encryption import EncryptedFormat, encrypted
from awoke.codecs.formats import Encoded, Encoder, Format, HeaderDecoder, Place
from awoke.codecs.json_schema import JsonSchemaFormat, json_schema
from awoke.codecs.msgpack import MessagePackFormat, msgpack
from awoke.codecs.protobuf import ProtobufFormat, protobuf

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

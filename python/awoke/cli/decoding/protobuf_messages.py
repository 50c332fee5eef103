"""Decodes Protobuf messages without generated classes, by the descriptions that a registry has of their files."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any

from awoke.codecs import protobuf_schemas
from awoke.codecs.extras import needs
from awoke.registry import wire_format
from awoke.registry.schema import RegisteredSchema, Schema
from awoke.registry.schemas import Schemas
from awoke.registry.wire_format import Framed

KNOWN = "google/protobuf/"
"""The folder of the files that come with protobuf itself."""


def protobuf_reader(registered: RegisteredSchema, schemas: Schemas) -> Callable[[Framed], Any]:
    """Returns the function that reads messages of a schema as dicts.

    The function raises ValueError, which names the message, where the registry has the source of the file and not its
    description: only protobuf's compiler reads that.

    Raises:
        SchemaNeeded: A schema that it refers to is not loaded yet. ConfigError: protobuf is not installed.
    """
    places = protobuf_schemas.places(registered.schema.text)
    pool = pool_of([*schemas.references(registered.schema).values(), registered.schema])
    message_class = needs("google.protobuf.message_factory", "registry").GetMessageClass
    to_dict = needs("google.protobuf.json_format", "registry").MessageToDict

    def read(framed: Framed) -> Any:
        indexes, payload = placed(framed)
        name = places.get(tuple(indexes))
        if name is None:
            raise ValueError(f"schema {framed.schema} of the registry has no message at {indexes}")
        if pool is None:
            text = f"it is the Protobuf message {name} of schema {framed.schema}, which is registered as .proto source"
            raise ValueError(f"{text}; awoke has no compiler for that, and decodes registered descriptions only")
        message = message_class(pool.FindMessageTypeByName(name)).FromString(payload)
        return to_dict(message, preserving_proto_field_name=True)

    return read


def placed(framed: Framed) -> tuple[list[int], bytes]:
    """Returns the place of a message in its schema, and the bytes of the message.

    Raises:
        ValueError: The bytes have no such place.
    """
    if framed.indexes is not None:  # They are in the header; none there is the first message.
        return wire_format.read_indexes(framed.indexes or b"\0")[0], framed.payload
    indexes, at = wire_format.read_indexes(framed.payload)
    return indexes, framed.payload[at:]


def pool_of(files: Sequence[Schema]) -> Any:
    """Returns a pool with these files, each after those that it imports; None if one of them is no description."""
    pool = needs("google.protobuf.descriptor_pool", "registry").DescriptorPool()
    describe = needs("google.protobuf.descriptor_pb2", "registry").FileDescriptorProto
    added: set[str] = set()
    for schema in files:
        try:
            file = describe.FromString(base64.b64decode(schema.text, validate=True))
        except (binascii.Error, ValueError):
            return None
        for name in file.dependency:
            if name.startswith(KNOWN):
                add_known(pool, name, added)
        pool.Add(file)
    return pool


def add_known(pool: Any, name: str, added: set[str]) -> None:
    """Adds a file that comes with protobuf, after those that it imports."""
    if name in added:
        return
    added.add(name)
    module = name.removesuffix(".proto").replace("/", ".")
    file = needs(f"{module}_pb2", "registry").DESCRIPTOR
    for each in file.dependencies:
        add_known(pool, each.name, added)
    pool.AddSerializedFile(file.serialized_pb)

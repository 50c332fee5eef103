"""Decodes Protobuf messages without generated classes: their files are in a registry, as descriptions or sources."""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Callable, Iterable
from typing import Any

from awoke.payloads.decoding.protobuf_sources import KNOWN, OWN_NAME, NotCompiled, compiled
from awoke.payloads.formats import protobuf_schemas
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import RegisteredSchema, Schema
from awoke.payloads.registry.schemas import Schemas
from awoke.payloads.registry.wire_format import Framed
from awoke.preconditions.extras import needs


def protobuf_reader(registered: RegisteredSchema, schemas: Schemas) -> Callable[[Framed], Any]:
    """Returns the function that reads messages of a schema as dicts. Blocks if a source is to be compiled.

    The function raises ValueError, which names the message, where the source of the file can't be compiled.

    Raises:
        ValueError: The descriptions do not fit together. SchemaNeeded: A schema that it refers to is not loaded yet.
        ConfigError: protobuf is not installed.
    """
    places = protobuf_schemas.places(registered.schema.text)
    pool, not_compiled = None, None
    try:
        pool = pool_for(registered, schemas)
    except NotCompiled as error:  # It is kept: the next message does not start the compiler again.
        not_compiled = error
    message_class = needs("google.protobuf.message_factory", "protobuf").GetMessageClass
    to_dict = needs("google.protobuf.json_format", "protobuf").MessageToDict

    def read(framed: Framed) -> Any:
        indexes, payload = placed(framed)
        name = places.get(tuple(indexes))
        if name is None:
            raise ValueError(f"schema {framed.schema} of the registry has no message at {indexes}")
        if pool is None:
            text = f"it is the Protobuf message {name} of schema {framed.schema}, which is registered as .proto source"
            raise ValueError(f"{text}{not_compiled}")
        message = message_class(pool.FindMessageTypeByName(name)).FromString(payload)
        return to_dict(message, preserving_proto_field_name=True)

    return read


def pool_for(registered: RegisteredSchema, schemas: Schemas) -> Any:
    """Returns a pool with the file of a schema and those that it refers to.

    Raises:
        NotCompiled: One of them is source that can't be compiled. ValueError, SchemaNeeded, ConfigError: As
        `protobuf_reader`.
    """
    files = {**schemas.references(registered.schema), OWN_NAME: registered.schema}
    described = {name: description(each) for name, each in files.items()}
    descriptions = [file for file in described.values() if file is not None]
    sources = {name: files[name].text for name, file in described.items() if file is None}
    if not sources:
        return pool_with(descriptions)
    try:
        return pool_with([*compiled(sources, descriptions), *descriptions])
    except TypeError as error:  # Of a pool, about a file that the compiler takes and this version of protobuf does not.
        raise NotCompiled(f" and is not understood by the installed protobuf: {error}") from None


def placed(framed: Framed) -> tuple[list[int], bytes]:
    """Returns the place of a message in its schema, and the bytes of the message.

    Raises:
        ValueError: The bytes have no such place.
    """
    if framed.indexes is not None:  # They are in the header; none there is the first message.
        return wire_format.read_indexes(framed.indexes or b"\0")[0], framed.payload
    indexes, at = wire_format.read_indexes(framed.payload)
    return indexes, framed.payload[at:]


def description(schema: Schema) -> Any:
    """Returns the description of a file, as a registry has it; None if it has the source."""
    describe = needs("google.protobuf.descriptor_pb2", "protobuf").FileDescriptorProto
    try:
        return describe.FromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, ValueError):
        return None


def pool_with(descriptions: Iterable[Any]) -> Any:
    """Returns a pool with these files, each after those that it imports. The first one of a name counts.

    Raises:
        ValueError: One of them imports a file of protobuf's that protobuf for Python does not have.
    """
    pool = needs("google.protobuf.descriptor_pool", "protobuf").DescriptorPool()
    added: set[str] = set()
    for file in descriptions:
        if file.name in added:
            continue
        for name in file.dependency:
            if name.startswith(KNOWN):
                add_known(pool, name, added)
        added.add(file.name)
        pool.Add(file)
    return pool


def add_known(pool: Any, name: str, added: set[str]) -> None:
    """Adds a file that comes with protobuf, after those that it imports.

    Raises:
        ValueError: There is no such file.
    """
    if name in added:
        return
    added.add(name)
    module = name.removesuffix(".proto").replace("/", ".")
    try:
        file = importlib.import_module(f"{module}_pb2").DESCRIPTOR
    except ModuleNotFoundError:
        raise ValueError(f"its schema imports {name!r}, which protobuf for Python does not have") from None
    for each in file.dependencies:
        add_known(pool, each.name, added)
    pool.AddSerializedFile(file.serialized_pb)

"""Writes a Protobuf message without a generated class, by the description that a registry has of its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from awoke.cli.decoding.protobuf_messages import pool_of
from awoke.codecs import protobuf_classes, protobuf_schemas
from awoke.codecs.extras import needs
from awoke.codecs.formats import Encoded
from awoke.codecs.protobuf_schemas import Indexes
from awoke.registry import wire_format
from awoke.registry.schema import RegisteredSchema
from awoke.registry.schemas import Schemas

PARAMETER = re.compile(r"\(\s*\w+\s*:\s*([\w.]+)")
"""The annotation of the first parameter in a signature."""


def written(fields: dict[str, Any], registered: RegisteredSchema, schemas: Schemas, signature: str) -> Encoded:
    """Returns the message with these fields, as `json_format` takes them: bytes are base64.

    Raises:
        ValueError: A field does not fit; the registry has the source of the file, and not its description; the schema
        has several messages. SchemaNeeded: A schema that it refers to is not loaded yet. EncodeError: A required field
        is missing.
    """
    pool = pool_of([*schemas.references(registered.schema).values(), registered.schema])
    if pool is None:
        text = "it is registered as .proto source, and awoke has no compiler for that"
        raise ValueError(f"{text}: register the serialized description, or call the method in Python")
    indexes, name = chosen(protobuf_schemas.places(registered.schema.text), signature)
    json_format = needs("google.protobuf.json_format", "registry")
    message = needs("google.protobuf.message_factory", "registry").GetMessageClass(pool.FindMessageTypeByName(name))()
    try:
        json_format.ParseDict(fields, message)
    except json_format.ParseError as error:
        raise ValueError(" ".join(str(error).split()).removesuffix(".")) from None
    before = wire_format.prefix(registered.id) + wire_format.write_indexes(indexes)
    return Encoded(before + protobuf_classes.encode(message))


def chosen(places: Mapping[Indexes, str], signature: str) -> tuple[Indexes, str]:
    """Returns place and name of the message that a method takes: the only one, or the one that its signature names.

    Raises:
        ValueError: The schema has several, and the signature names none of them.
    """
    found = PARAMETER.search(signature)
    named = found[1].rpartition(".")[2] if found is not None else ""
    fitting = [each for each in places.items() if len(places) == 1 or each[1].rpartition(".")[2] == named]
    if len(fitting) != 1:
        text = f"it has the messages {', '.join(places.values())}, and the method's signature does not name one of them"
        raise ValueError(f"{text}: call the method in Python")
    return fitting[0]

"""Finds the messages of a protobuf schema, and the place of each: the index on every level, from outside."""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from awoke.preconditions.extras import needs

Indexes = tuple[int, ...]

NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
TOKEN = re.compile(r"[\w.]+|[{};]")


@functools.lru_cache(maxsize=256)
def places(text: str) -> Mapping[Indexes, str]:
    """Returns the full name of each message by its place in the schema.

    A registry has a schema as text, or as the serialized description of a file in base64.

    Raises:
        ValueError: The schema is neither.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:  # `binascii.Error` is one; another comes of text beyond ASCII.
        return _of_text(text)
    return _of_description(data)


def _of_description(data: bytes) -> dict[Indexes, str]:
    file = needs("google.protobuf.descriptor_pb2", "protobuf").FileDescriptorProto()
    try:
        file.ParseFromString(data)
    except needs("google.protobuf.message", "protobuf").DecodeError as error:
        raise ValueError(f"the schema is no description of a protobuf file: {error}") from None
    return dict(_described(file.message_type, (), file.package))


WIDER = {
    "TYPE_INT32": ("TYPE_INT64",),
    "TYPE_UINT32": ("TYPE_UINT64", "TYPE_INT64"),
    "TYPE_SINT32": ("TYPE_SINT64",),
    "TYPE_ENUM": ("TYPE_INT32", "TYPE_INT64"),
    "TYPE_STRING": ("TYPE_BYTES",),
}
"""The types that read each value of another as it was written."""


def misread_in(text: str, descriptor: Any) -> str | None:
    """Returns a field of a message that a reader with this schema would read as another value; None if there is none.

    Fields that the schema lacks are not read. Only a serialized description is compared, and not what it imports.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    theirs, ours = (dict(_messages(each)) for each in (data, descriptor.file.serialized_pb))
    seen, waiting = set[str](), [descriptor.full_name]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in ours or name not in theirs:
            continue
        seen.add(name)
        read = {field.number: field for field in theirs[name].field}
        for field in ours[name].field:
            if field.type_name:
                waiting.append(field.type_name.lstrip("."))
            if field.number in read and not _reads(read[field.number], field):
                return f"{name}.{field.name}"
    return None


def _reads(reader: Any, writer: Any) -> bool:
    kinds = [field.Type.Name(field.type) for field in (reader, writer)]
    if (reader.label == reader.LABEL_REPEATED) != (writer.label == writer.LABEL_REPEATED):
        return False
    if kinds[0] == kinds[1]:
        return bool(reader.type_name == writer.type_name)
    return kinds[0] in WIDER.get(kinds[1], ())


def _messages(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yields the messages of a serialized description, by their full names."""
    file = needs("google.protobuf.descriptor_pb2", "protobuf").FileDescriptorProto.FromString(data)
    waiting = [(file.package, message) for message in file.message_type]
    while waiting:
        scope, message = waiting.pop()
        name = f"{scope}.{message.name}" if scope else message.name
        yield name, message
        waiting += [(name, each) for each in message.nested_type]


def _described(messages: Any, outside: Indexes, scope: str) -> Iterator[tuple[Indexes, str]]:
    for index, message in enumerate(messages):
        name = f"{scope}.{message.name}" if scope else message.name
        yield (*outside, index), name
        yield from _described(message.nested_type, (*outside, index), name)


def _package_in(tokens: list[str]) -> str:
    """Returns the package that is declared; empty without one. A field may be named so, too."""
    depth = 0
    for at, token in enumerate(tokens[:-1]):
        depth += (token == "{") - (token == "}")
        if token == "package" and depth == 0 and (at == 0 or tokens[at - 1] in ";}"):
            return tokens[at + 1]
    return ""


def _of_text(text: str) -> dict[Indexes, str]:
    """Reads the declarations `package` and `message` of a schema; all other parts do not matter for places."""
    tokens = TOKEN.findall(NOISE.sub(" ", text))
    package = _package_in(tokens)
    found: dict[Indexes, str] = {}
    open_blocks: list[tuple[Indexes, str] | None] = []
    """The message of each open brace; None for a block of another kind."""
    counts: dict[Indexes, int] = {}
    for at, token in enumerate(tokens):
        if token == "}":
            if not open_blocks:
                raise ValueError("the schema closes a brace that it did not open")
            open_blocks.pop()
        elif token == "{":
            is_message = at >= 2 and tokens[at - 2] == "message" and None not in open_blocks
            if not is_message:
                open_blocks.append(None)
                continue
            outside, scope = open_blocks[-1] if open_blocks and open_blocks[-1] else ((), package)
            indexes = (*outside, counts.get(outside, 0))
            counts[outside] = indexes[-1] + 1
            name = f"{scope}.{tokens[at - 1]}" if scope else tokens[at - 1]
            found[indexes] = name
            open_blocks.append((indexes, name))
    return found

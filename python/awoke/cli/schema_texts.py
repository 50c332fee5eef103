"""Schemas as text: read from files, brought into a form for people, and compared line by line."""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from awoke.errors import AwokeError, ConfigError

if TYPE_CHECKING:
    from awoke.payloads.registry.schema import Reference, RegisteredSchema, Schema

Kind = Literal["avro", "json", "protobuf"]

SUFFIXES = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
STANDARD_INPUT = Path("-")


def name_of(file: Path) -> str:
    """Returns the name of a file for people."""
    return "standard input" if file == STANDARD_INPUT else str(file)


def schema_in(file: Path, kind: Kind | None, references: Sequence[str] | None = None) -> Schema:
    """Returns the schema in a file. Its kind is that of the option, or else that of the file's suffix.

    Raises:
        ConfigError: Neither tells the kind; a reference has another form. AwokeError: The file holds no such schema.
    """
    from awoke.payloads.registry.schema import Schema

    meant = kind.upper() if kind is not None else SUFFIXES.get(file.suffix.lower())
    if meant is None:
        suffixes = ", ".join(SUFFIXES)
        raise ConfigError(f"{name_of(file)}: say --kind: the name ends with none of {suffixes}", "--kind")
    return Schema(text_in(file, meant), meant, tuple(map(reference_of, references or ())))


def text_in(file: Path, kind: str) -> str:
    """Returns the text of a file that holds a schema of this kind.

    Raises:
        AwokeError: It can't be read, is no UTF-8, or is no JSON where the kind is written in JSON.
    """
    try:
        data = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
        text = data.decode("utf-8-sig")
        if kind != "PROTOBUF":
            json.loads(text)
    except OSError as error:
        raise AwokeError(f"{name_of(file)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise AwokeError(f"{name_of(file)}: no UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise AwokeError(f"{name_of(file)}: no JSON: {error}") from None
    return text


def reference_of(word: str) -> Reference:
    """Returns the reference that `NAME=SUBJECT:VERSION` means.

    Raises:
        ConfigError: The word has another form.
    """
    from awoke.payloads.registry.schema import Reference

    name, _, place = word.rpartition("=")  # The last one: a name may be the address of a JSON schema.
    subject, _, version = place.rpartition(":")
    if not name or not subject or not version.isdecimal() or int(version) < 1:
        text = f"--reference takes NAME=SUBJECT:VERSION, as in shop.Customer=customers-value:2, not {word!r}"
        raise ConfigError(text, "--reference")
    return Reference(name, subject, int(version))


def references_in(schema: Schema) -> list[str]:
    """Returns the references of a schema as `--reference` takes them."""
    return [f"{each.name}={each.subject}:{each.version}" for each in schema.references]


def pretty(schema: Schema) -> str:
    """Returns a schema for people: JSON indented, in its own order; Protobuf as it is.

    A registry may have a Protobuf schema as a serialized description; that becomes protobuf's text format.

    Raises:
        ConfigError: The schema is a description, and protobuf is not installed.
    """
    if schema.kind == "PROTOBUF":
        return described(schema.text) or schema.text
    try:
        return msgspec.json.format(schema.text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return schema.text


def described(text: str) -> str | None:
    """Returns a serialized description of a Protobuf file in text format; None for the source of a file.

    Raises:
        ConfigError: protobuf is not installed.
    """
    from awoke.preconditions.extras import needs

    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    file = needs("google.protobuf.descriptor_pb2", "protobuf").FileDescriptorProto()
    try:
        file.ParseFromString(data)
    except needs("google.protobuf.message", "protobuf").DecodeError:
        return None
    return str(file)


class Side(NamedTuple):
    """One of two schemas that are compared."""

    name: str
    schema: Schema
    version: int | None = None
    """Its version; None for a file."""

    @classmethod
    def of(cls, registered: RegisteredSchema) -> Side:
        """Returns a version of a subject as a side."""
        return cls(f"{registered.subject} version {registered.version}", registered.schema, registered.version)

    def lines(self, with_references: bool) -> list[str]:
        """Returns the schema's lines, after those of its references if they are wanted."""
        references = [f"reference {each}" for each in references_in(self.schema)] if with_references else []
        return references + pretty(self.schema).splitlines()


def difference(old: Side, new: Side) -> list[str]:
    """Returns the unified diff of two schemas; nothing if they are equal. A file has no references to compare."""
    with_references = None not in (old.version, new.version)
    sides = old.lines(with_references), new.lines(with_references)
    return list(difflib.unified_diff(*sides, old.name, new.name, lineterm=""))

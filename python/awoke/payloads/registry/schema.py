"""Schemas, as a registry keeps them."""

from __future__ import annotations

from typing import NamedTuple

AVRO = "AVRO"
UNKNOWN_ID = -1


class Reference(NamedTuple):
    """A reference of one schema to another, which is a version of a subject."""

    name: str
    """The name by which the schema refers to it: an Avro record, a JSON address, or a Protobuf file."""
    subject: str
    version: int


class Schema(NamedTuple):
    """A schema; hashable."""

    text: str
    """The schema in its own language: JSON for Avro and JSON Schema, a `.proto` file for Protobuf."""
    kind: str = AVRO
    """The language: `AVRO`, `JSON` or `PROTOBUF`."""
    references: tuple[Reference, ...] = ()


class RegisteredSchema(NamedTuple):
    """A schema that a registry has; hashable."""

    schema: Schema
    id: int
    """The number in the wire format; -1 when the registry does not tell, because it was asked by GUID."""
    guid: str | None = None
    """The GUID in the wire format; None when the registry does not have GUIDs, or does not tell."""
    subject: str | None = None
    """None when the registry was asked by id or by GUID: a schema may be in several subjects."""
    version: int | None = None
    """The version in `subject`, from 1; None as `subject`."""

"""Schemas of the embedded schema registry, parsed and checked: Avro as Java's parser does, JSON by its meta-schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from awoke.payloads.formats.avro_resolution import NAMED_KINDS, AvroSchema
from awoke.testing.registry.libraries import library
from awoke.testing.registry.refusal import invalid_schema

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FULL_NAME = re.compile(rf"{NAME.pattern}(\.{NAME.pattern})*")


class JsonSchema(NamedTuple):
    """A JSON schema with the schemas that it references, by the names of the references."""

    root: Any
    references: Mapping[str, Any]


class Located(NamedTuple):
    """A part of a schema, and the document that its local references point into."""

    part: Any
    document: Any


def parse_json(document: Any, references: Mapping[str, Any]) -> JsonSchema:
    """Returns a schema that its meta-schema accepts: that of `$schema`, else draft 7.

    Raises:
        Refusal: It is no JSON schema (42201).
    """
    validators = library("jsonschema.validators")
    if not isinstance(document, (dict, bool)):
        raise invalid_schema("a JSON schema is an object, true or false")
    checker = validators.validator_for(document, default=validators.Draft7Validator)
    try:
        checker.check_schema(document)
    except library("jsonschema").SchemaError as error:
        place = "/" + "/".join(str(each) for each in error.absolute_path)
        raise invalid_schema(f"{place}: {error.message}") from None
    return JsonSchema(document, references)


def resolve(located: Located, references: Mapping[str, Any]) -> Located | None:
    """Returns the part that a `$ref` points to, through all its steps; another part as it is. None if there is none."""
    seen = set()
    while isinstance(located.part, dict) and "$ref" in located.part:
        text = str(located.part["$ref"])
        place = (text, id(located.document))
        if place in seen:
            return None
        seen.add(place)
        name, _, pointer = text.partition("#")
        document = references.get(name) if name else located.document
        found = None if document is None else at(document, pointer)
        if found is None:
            return None
        located = found
    return located


def at(document: Any, pointer: str) -> Located | None:
    """Returns the part of a document at a JSON pointer, which may be percent-encoded. None if there is none."""
    part = document
    for step in unquote(pointer).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict) and key in part:
            part = part[key]
        elif isinstance(part, list) and key.isdigit() and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    is_anchor = bool(pointer) and not pointer.startswith("/")
    return None if is_anchor else Located(part, document)


def parse_avro(document: Any, references: Iterable[Any] = ()) -> AvroSchema:
    """Returns a schema as fastavro parses it, with the named types of its references.

    These come before the schemas that refer to them.

    Raises:
        Refusal: It is no Avro schema (42201).
    """
    fastavro = library("fastavro")
    names: dict[str, Any] = {}
    try:
        for each in [*references, document]:
            root = fastavro.parse_schema(each, names)
    except fastavro.schema.UnknownType as error:
        name = error.name["type"] if isinstance(error.name, dict) else error.name
        text = f"the type `{name}` is not known; define it, or add a reference to its subject"
        raise invalid_schema(text) from None
    except fastavro.schema.SchemaParseException as error:
        raise invalid_schema(str(error)) from None
    except KeyError as error:
        raise invalid_schema(f"an Avro type has no {error}") from None
    except (TypeError, AttributeError, ValueError) as error:
        raise invalid_schema(f"this is no Avro type: {error}") from None
    for fault in faults(document, "") if isinstance(document, (dict, list)) else ():
        raise invalid_schema(fault)
    return AvroSchema(root, names)


def faults(schema: Any, path: str) -> Iterator[str]:
    """Yields the faults that fastavro overlooks, each with its path in the schema."""
    if isinstance(schema, list):
        yield from union_faults(schema, path)
    elif isinstance(schema, dict):
        kind = schema["type"]
        if kind in NAMED_KINDS and not FULL_NAME.fullmatch(schema["name"]):
            yield f"{path or '/'}: `{schema['name']}` is no name: letters, digits and _ only"
        if kind in ("record", "error"):
            yield from record_faults(schema, path)
        elif kind == "enum" and not isinstance(schema["symbols"], list):
            yield f"{path}/symbols: an enum needs a list of symbols"
        elif kind == "fixed" and type(schema["size"]) is not int:
            yield f"{path}/size: the size must be a number of bytes"
        for part in ("items", "values"):
            if kind == {"items": "array", "values": "map"}[part]:
                yield from faults(schema[part], f"{path}/{part}")


def union_faults(union: list[Any], path: str) -> Iterator[str]:
    """Yields the faults of a union and of its branches."""
    seen = set()
    for index, branch in enumerate(union):
        if isinstance(branch, list):
            yield f"{path}/{index}: a union must not hold a union"
        name = branch_name(branch)
        if name in seen:
            yield f"{path}/{index}: the union has two branches `{name}`"
        seen.add(name)
        yield from faults(branch, f"{path}/{index}")


def branch_name(branch: Any) -> str:
    """Returns the name by which a branch of a union is told from the others."""
    if isinstance(branch, dict):
        kind = str(branch["type"])
        return f"{branch.get('namespace', '')}.{branch['name']}".strip(".") if kind in NAMED_KINDS else kind
    return str(branch)


def record_faults(record: dict[str, Any], path: str) -> Iterator[str]:
    """Yields the faults of a record and of its fields."""
    fields = record.get("fields")
    if not isinstance(fields, list):
        yield f"{path}/fields: a record needs a list of fields"
        return
    seen = set()
    for index, field in enumerate(fields):
        name, place = field["name"], f"{path}/fields/{index}"
        if not isinstance(name, str) or not NAME.fullmatch(name):
            yield f"{place}: `{name}` is no name: letters, digits and _ only"
        if name in seen:
            yield f"{place}: the record has two fields `{name}`"
        seen.add(name)
        yield from faults(field["type"], f"{place}/type")

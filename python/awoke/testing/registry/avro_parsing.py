"""Avro schemas of the embedded schema registry, parsed and checked as Java's parser checks them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from awoke.payloads.formats.avro_resolution import NAMED_KINDS, AvroSchema
from awoke.testing.registry.libraries import library
from awoke.testing.registry.refusal import invalid_schema

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FULL_NAME = re.compile(rf"{NAME.pattern}(\.{NAME.pattern})*")


def parse(document: Any, references: Iterable[Any] = ()) -> AvroSchema:
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

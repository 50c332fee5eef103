"""JSON schemas of the embedded schema registry: parsed, checked, and resolved where they refer to one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from awoke.testing.registry.libraries import library
from awoke.testing.registry.refusal import invalid_schema


class JsonSchema(NamedTuple):
    """A JSON schema with the schemas that it references, by the names of the references."""

    root: Any
    references: Mapping[str, Any]


class Located(NamedTuple):
    """A part of a schema, and the document that its local references point into."""

    part: Any
    document: Any


def parse(document: Any, references: Mapping[str, Any]) -> JsonSchema:
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

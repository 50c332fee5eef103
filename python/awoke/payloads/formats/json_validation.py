"""Validates JSON by a schema of a registry, which may refer to others: as the registry's own libraries resolve them.

A reference is found by its name, as the registry has it; by the name relative to the `$id` of the schema that uses it;
and by the `$id` of the schema that it names. A schema without `$schema` is of draft 7, or of the draft of the one that
refers to it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urldefrag, urljoin

from awoke.payloads.formats.json_bounds import bounded, check_patterns
from awoke.payloads.registry.schema import RegisteredSchema, Schema
from awoke.payloads.registry.schemas import Schemas
from awoke.preconditions.extras import needs

Validate = Callable[[Any], None]
ERRORS_MAX = 100
"""The errors of a value of which the most telling one is shown."""


def validator(registered: RegisteredSchema, schemas: Schemas) -> Validate:
    """Returns the function that checks values by a schema of the registry, and raises ValueError.

    Raises:
        SchemaNeeded: A schema that it refers to is not loaded yet. ValueError: A reference leads nowhere.
    """
    jsonschema = needs("jsonschema", "registry")
    schema = json.loads(registered.schema.text)
    kind = validator_class(schema)
    references = schemas.references(registered.schema)
    check_patterns([schema, *(json.loads(each.text) for each in references.values())])
    made = bounded(kind)(schema, registry=referred(schema, references, kind))
    unresolvable = needs("referencing", "registry").exceptions.Unresolvable

    def validate(value: Any) -> None:
        try:
            error = jsonschema.exceptions.best_match(itertools.islice(made.iter_errors(value), ERRORS_MAX))
        except unresolvable as missing:
            raise ValueError(f"schema {registered.id} refers to {missing.ref!r}, which is not there") from None
        if error is not None:
            # Not the library's own text, which has the value.
            text = f"it breaks the rule {error.validator!r} of schema {registered.id} - at `{error.json_path}`"
            raise ValueError(text)

    return validate


def validator_class(schema: Any) -> Any:
    """Returns jsonschema's class for a schema: that of its `$schema`, or else that of draft 7, as registries do it."""
    validators = needs("jsonschema", "registry").validators
    return validators.validator_for(schema, default=validators.Draft7Validator)


def referred(schema: Any, references: Mapping[str, Schema], kind: Any) -> Any:
    """Returns the registry of the library referencing, with the references of a schema under all their addresses."""
    referencing = needs("referencing", "registry")
    specification = needs("referencing.jsonschema", "registry").specification_with(
        kind.META_SCHEMA[id_word(kind.META_SCHEMA)]
    )
    documents = {name: json.loads(each.text) for name, each in references.items()}
    resources = {
        name: referencing.Resource.from_contents(each, default_specification=specification)
        for name, each in documents.items()
    }
    bases = {base for each in (schema, *documents.values()) for base in ids_in(each, "")}
    found = {urljoin(base, name): resource for base in bases for name, resource in resources.items()}
    found |= {urldefrag(each.id()).url: each for each in resources.values() if each.id() is not None}
    return referencing.Registry().with_resources([*found.items(), *resources.items()]).crawl()


def ids_in(schema: Any, base: str) -> Iterator[str]:
    """Yields the absolute addresses that a schema gives itself and its parts."""
    if isinstance(schema, dict):
        said = schema.get(id_word(schema))
        if isinstance(said, str) and not said.startswith("#"):
            base = urldefrag(urljoin(base, said)).url
            yield base
        for each in schema.values():
            yield from ids_in(each, base)
    elif isinstance(schema, list):
        for each in schema:
            yield from ids_in(each, base)


def id_word(schema: Mapping[str, Any]) -> str:
    """Returns the keyword of a schema's address, which had another name up to draft 4."""
    return "$id" if "$id" in schema or "draft-04" not in str(schema.get("$schema", "")) else "id"

"""A schema registry's clients: `SchemaRegistry`, and `AsyncSchemaRegistry` for event loops. Needs `awoke[registry]`."""

from awoke.registry.access import BasicAuth, BearerToken, OAuth, Tls
from awoke.registry.cache import SchemaCache
from awoke.registry.client import AsyncSchemaRegistry, SchemaRegistry
from awoke.registry.errors import (
    InvalidSchema,
    RegistryError,
    RegistryRefused,
    RegistryUnauthorized,
    RegistryUnavailable,
    SchemaIncompatible,
    SchemaNotFound,
)
from awoke.registry.options import RegistryOptions
from awoke.registry.schema import Reference, RegisteredSchema, Schema
from awoke.registry.schemas import SchemaNeeded
from awoke.registry.subjects import Part, SubjectName, record_name, topic_name, topic_record_name

__all__ = [
    "AsyncSchemaRegistry",
    "BasicAuth",
    "BearerToken",
    "InvalidSchema",
    "OAuth",
    "Part",
    "Reference",
    "RegisteredSchema",
    "RegistryError",
    "RegistryOptions",
    "RegistryRefused",
    "RegistryUnauthorized",
    "RegistryUnavailable",
    "Schema",
    "SchemaCache",
    "SchemaIncompatible",
    "SchemaNeeded",
    "SchemaNotFound",
    "SchemaRegistry",
    "SubjectName",
    "Tls",
    "record_name",
    "topic_name",
    "topic_record_name",
]

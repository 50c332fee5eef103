"""A schema registry's clients: `SchemaRegistry`, and `AsyncSchemaRegistry` for event loops. Needs `awoke[registry]`."""

from awoke.payloads.registry.access import BasicAuth, BearerToken, OAuth, Tls
from awoke.payloads.registry.cache import SchemaCache
from awoke.payloads.registry.client import AsyncSchemaRegistry, SchemaRegistry
from awoke.payloads.registry.errors import (
    InvalidSchema,
    RegistryError,
    RegistryRefused,
    RegistryUnauthorized,
    RegistryUnavailable,
    SchemaIncompatible,
    SchemaNotFound,
)
from awoke.payloads.registry.options import RegistryOptions
from awoke.payloads.registry.schema import (
    Part,
    Reference,
    RegisteredSchema,
    Schema,
    SubjectName,
    record_name,
    topic_name,
    topic_record_name,
)
from awoke.payloads.registry.schemas import SchemaNeeded

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

"""A registry for tests of formats: it gives each schema an id, in order, and needs no server."""

from __future__ import annotations

import uuid
from typing import Any

from awoke.payloads.registry import RegisteredSchema, Schema
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas


class KnownSchemas(Schemas):
    """Schemas that are loaded already."""

    def __init__(self, *known: Schema, has_guids: bool = True) -> None:
        super().__init__(lambda: self)  # type: ignore[arg-type, return-value]
        self.known = list(known)
        self.subjects: list[str] = []
        """Those for which a schema was asked, in order."""
        self.has_guids = has_guids
        self.of_subjects: dict[str, list[Schema]] = {}
        """The schemas of subjects that do not have all."""
        self.referred: dict[Schema, dict[str, Schema]] = {}

    def by_id(self, number: int | str) -> RegisteredSchema:
        for place, schema in enumerate(self.known):
            registered = self._registered(schema, place + 1)
            if number in (registered.id, registered.guid):
                return registered
        raise SchemaNeeded(f"schema {number}", lambda: None)

    def for_writing(self, subject: str, schema: Schema | None, imports: Any = ()) -> RegisteredSchema:
        self.subjects.append(subject)
        if schema is None or (schema not in self.known and self.known):
            return self._registered(self.known[-1], len(self.known))
        if schema not in self.known:
            self.known.append(schema)
        return self._registered(schema, self.known.index(schema) + 1)

    def has(self, subject: str, schema: Schema) -> bool:
        return schema in self.of_subjects.get(subject, self.known)

    def references(self, schema: Schema) -> dict[str, Schema]:
        return self.referred.get(schema, {})

    def _registered(self, schema: Schema, number: int) -> RegisteredSchema:
        guid = str(uuid.uuid5(uuid.NAMESPACE_OID, schema.text)) if self.has_guids else None
        return RegisteredSchema(schema, number, guid)

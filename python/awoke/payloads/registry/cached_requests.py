"""The requests of one client: answered from its cache where that is right, and each question asked once at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from graphlib import CycleError, TopologicalSorter

from awoke.payloads.registry.cache import Key, SchemaCache, SchemaKey
from awoke.payloads.registry.errors import SchemaNotFound
from awoke.payloads.registry.requests import Requests, Transport, Version
from awoke.payloads.registry.schema import RegisteredSchema, Schema
from awoke.payloads.registry.single_flight import SingleFlight

REFERENCES_MAX = 256
"""A schema may refer to this number of others, also by way of others."""


class CachedRequests(Requests):
    """Makes the requests as flows. Any thread, or one event loop."""

    def __init__(self, transport: Transport, cache: SchemaCache) -> None:
        super().__init__(transport)
        self.cache = cache
        self._flights = SingleFlight[RegisteredSchema]()

    async def schema(self, id: int | str, *, subject: str | None = None) -> RegisteredSchema:
        key = key_of(id, subject)
        return await self._cached("schema", key, lambda: self._fetch(key, id, subject))

    async def version(self, subject: str, version: Version) -> RegisteredSchema:
        return self._kept(await super().version(subject, version), subject)

    async def look_up(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        look_up = super().look_up
        return await self._cached(
            f"look_up {normalize}", (subject, schema), lambda: look_up(subject, schema, normalize=normalize)
        )

    async def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        register = super().register
        return await self._cached(
            f"register {normalize}", (subject, schema), lambda: register(subject, schema, normalize=normalize)
        )

    async def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        try:
            return await super().delete_subject(subject, permanent=permanent)
        finally:  # Also without an answer: it may be deleted.
            self.cache.forget_subject(subject)

    async def delete_version(self, subject: str, version: Version, *, permanent: bool = False) -> int:
        try:
            return await super().delete_version(subject, version, permanent=permanent)
        finally:  # Also without an answer: it may be deleted.
            self.cache.forget_subject(subject)

    async def references(self, schema: Schema | RegisteredSchema) -> dict[str, Schema]:
        """Returns the schemas to which one refers, also by way of others, by name; each before those that refer to it.

        Of two versions under one name, the one that is nearer to the schema counts.

        Raises:
            SchemaNotFound: The registry does not have one; or they refer to one another in a circle, or are too many:
            a message that names such a schema can't be read.
        """
        found: dict[str, Schema] = {}
        ahead = list(schema.schema.references if isinstance(schema, RegisteredSchema) else schema.references)
        names = {each.name for each in ahead}
        for reference in ahead:  # It grows meanwhile.
            if len(names) > REFERENCES_MAX:
                raise SchemaNotFound(f"a schema refers to more than {REFERENCES_MAX} others; shorten the chain")
            if reference.name not in found:
                found[reference.name] = (await self.version(reference.subject, reference.version)).schema
                ahead += found[reference.name].references
                names.update(each.name for each in found[reference.name].references)
        graph = {name: [each.name for each in its.references] for name, its in found.items()}
        try:
            return {name: found[name] for name in TopologicalSorter(graph).static_order()}
        except CycleError as error:
            cycle = ", ".join(error.args[1])
            raise SchemaNotFound(f"schemas refer to one another in a circle: {cycle}; register them anew") from None

    def renew_locks(self) -> None:
        """Makes new locks in a forked process: threads of the parent may have held the old ones."""
        self.cache.renew_lock()
        self._flights = SingleFlight()

    async def _cached(self, what: str, key: Key, load: Callable[[], Awaitable[RegisteredSchema]]) -> RegisteredSchema:
        found = self.cache.get(key)
        return found or await self._flights.run((what, key), lambda: self._load(key, load))

    async def _load(self, key: Key, load: Callable[[], Awaitable[RegisteredSchema]]) -> RegisteredSchema:
        found = self.cache.get_or_miss(key)  # Another flow may have put it there since.
        if found is None:
            found = await load()
            self.cache.put(key, found)
            self._kept(found, found.subject)
        return found

    async def _fetch(self, key: SchemaKey, id: int | str, subject: str | None) -> RegisteredSchema:
        unknown = self.cache.why_unknown(key)
        if unknown is not None:
            raise unknown
        try:
            return await super().schema(id, subject=subject)
        except SchemaNotFound as error:
            self.cache.put_unknown(key, error)
            raise

    def _kept(self, registered: RegisteredSchema, subject: str | None) -> RegisteredSchema:
        """Keeps a schema by its id and its GUID as well, without the subject: it may be in several."""
        alone = RegisteredSchema(registered.schema, registered.id, registered.guid)
        if registered.subject is not None and registered.id >= 0:
            self.cache.put(key_of(registered.id, subject), alone)
        if registered.guid is not None:
            self.cache.put(key_of(registered.guid), alone)
        return registered


def key_of(id: int | str, subject: str | None = None) -> SchemaKey:
    """Returns the cache's key for an id or a GUID. Ids count anew in each context, as in `:.context:subject`."""
    if isinstance(id, str):
        return id.lower()
    if subject is None or not subject.startswith(":."):
        return id
    return (f":{subject.split(':')[1]}:", id)

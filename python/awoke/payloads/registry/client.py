"""The clients of a schema registry: `SchemaRegistry` blocks, `AsyncSchemaRegistry` is awaited. One source for both."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, Unpack
from weakref import WeakSet

from awoke.payloads.registry.cache import ENTRIES_MAX, SchemaCache
from awoke.payloads.registry.cached_requests import CachedRequests, key_of
from awoke.payloads.registry.options import RegistryOptions
from awoke.payloads.registry.requests import Version
from awoke.payloads.registry.schema import RegisteredSchema, Schema
from awoke.waiting.drive import blocking

if TYPE_CHECKING:
    from awoke.payloads.registry.transport import HttpTransport


class RegistryClient:
    """The part that both clients share: the options, the cache, and the way through a fork."""

    def __init__(self, transport: HttpTransport, options: RegistryOptions) -> None:
        self._transport = transport
        self.cache = SchemaCache(options.get("cache_max", ENTRIES_MAX))
        """The schemas that the client knows; has the numbers of hits and misses."""
        self._requests = CachedRequests(transport, self.cache)
        _clients.add(self)

    @property
    def url(self) -> str:
        """The addresses without user and password, separated by commas."""
        return self._transport.urls

    def cached(self, id: int | str, *, subject: str | None = None) -> RegisteredSchema | None:
        """Returns the schema of an id or of a GUID if it is in the cache, or None. Does not block. Any thread."""
        return self.cache.get(key_of(id, subject))

    def counters(self) -> dict[str, float]:
        """Returns the counters of the requests to the registry. Does not block. Any thread.

        `requests`; `errors`, of them, those without an answer that can be used: no connection, no answer in time, no
        access; `wait_s`, the time of all together in seconds.
        """
        return self._transport.counts.values()

    @property
    def _open(self) -> CachedRequests:
        """The requests.

        Raises:
            ClosedError: The client is closed.
        """
        if self._transport.is_closed:
            from awoke.payloads.registry.transport import closed_error

            raise closed_error()
        return self._requests

    def _forget_parent(self) -> None:
        self._requests.renew_locks()
        self._transport.forget_parent()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"


class AsyncSchemaRegistry(RegistryClient):
    """A client of a schema registry for one event loop at a time. Its methods are awaited.

    A context manager, to be entered by `async with`: leaving it closes. Tasks that ask for the same schema at the same
    time send one request. Raises as `SchemaRegistry`.
    """

    def __init__(self, url: str, **options: Unpack[RegistryOptions]) -> None:
        """Makes a client; connects on first use. `url` has one address or several, separated by commas."""
        from awoke.payloads.registry.transport import LoopTransport  # Here, because httpx2 is optional.

        self._own = LoopTransport(url, options)
        super().__init__(self._own, options)

    async def schema(self, id: int | str, *, subject: str | None = None) -> RegisteredSchema:
        """Returns the schema of an id, or of a GUID if that is a text; from the cache if it is there.

        Threads or tasks that ask for the same at the same time send one request. `subject` matters to a registry with
        contexts: ids are unique in a context only.

        Raises:
            SchemaNotFound: There is none. The registry is not asked for the same again within 10 s.
        """
        return await self._open.schema(id, subject=subject)

    async def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Returns the subjects that begin with a prefix, sorted; with those deleted, but not for good, if wanted."""
        return await self._open.subjects(prefix, deleted=deleted)

    async def versions(self, subject: str) -> list[int]:
        """Returns the versions of a subject, sorted.

        Raises:
            SchemaNotFound: There is no such subject.
        """
        return await self._open.versions(subject)

    async def version(self, subject: str, version: Version) -> RegisteredSchema:
        """Returns one version of a subject.

        Raises:
            SchemaNotFound: There is no such subject, or no such version.
        """
        return await self._open.version(subject, version)

    async def latest(self, subject: str) -> RegisteredSchema:
        """Returns the latest version of a subject. Asks the registry each time.

        Raises:
            SchemaNotFound: There is no such subject.
        """
        return await self._open.version(subject, "latest")

    async def look_up(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Returns the version of a subject that has this schema; from the cache if it is there.

        Raises:
            SchemaNotFound: There is no such subject, or it does not have the schema. InvalidSchema: It is none.
        """
        return await self._open.look_up(subject, schema)

    async def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Adds a schema to a subject unless it is there, and returns its version; from the cache if it is there.

        `normalize` lets the registry bring the schema into a standard form first.

        Raises:
            SchemaIncompatible: The subject's compatibility level refuses it. InvalidSchema: It is none.
        """
        return await self._open.register(subject, schema, normalize=normalize)

    async def check(self, subject: str, schema: Schema, version: Version | Literal["all"] = "latest") -> list[str]:
        """Returns why a schema is not compatible with a version of a subject, or with all; nothing if it is.

        A subject without versions is compatible with any schema, unless the version is a number.

        Raises:
            SchemaNotFound: There is no version of this number. InvalidSchema: The schema is none.
        """
        return await self._open.check(subject, schema, version)

    async def compatibility(self, subject: str | None = None) -> str:
        """Returns the compatibility level, as `BACKWARD`, of a subject or, with None, of the registry.

        A subject without one has the registry's.
        """
        return await self._open.compatibility(subject)

    async def set_compatibility(self, level: str, subject: str | None = None) -> str:
        """Sets the compatibility level of a subject or, with None, of the registry, and returns it.

        Raises:
            InvalidSchema: There is no such level (code 42203).
        """
        return await self._open.set_compatibility(level, subject)

    async def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Deletes a subject and returns its versions. With `permanent` for good, after it was deleted without.

        Raises:
            SchemaNotFound: There is no such subject, or it was not deleted before (code 40405).
        """
        return await self._open.delete_subject(subject, permanent=permanent)

    async def delete_version(self, subject: str, version: Version, *, permanent: bool = False) -> int:
        """Deletes a version of a subject and returns its number. With `permanent` for good, as `delete_subject`.

        Raises:
            SchemaNotFound: There is no such subject or version, or it was not deleted before (code 40407).
        """
        return await self._open.delete_version(subject, version, permanent=permanent)

    async def references(self, schema: Schema | RegisteredSchema) -> dict[str, Schema]:
        """Returns the schemas to which one refers, also by way of others, by name; each before those that refer to it.

        Raises:
            SchemaNotFound: The registry does not have one of them.
        """
        return await self._open.references(schema)

    async def close(self) -> None:
        """Closes the connections. Closing again does nothing."""
        await self._own.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class SchemaRegistry(RegistryClient):
    """A client of a schema registry. Any number of threads may use one, and processes that are forked from its own.

    A context manager: leaving it closes. Calls block for at most `timeout_s` an address, and longer for a token.

    Raises, from the constructor:
        ConfigError: A wrong address or option, or httpx2 is not installed.
        TypeError: An unknown option.
    Raises, from every call but `cached` and `close`:
        RegistryUnavailable: No answer, or the registry can't serve now.
        RegistryUnauthorized: The registry does not let the client in, or there is no token.
        RegistryRefused: Another answer than a schema registry's.
        ClosedError: The client is closed.
    """

    def __init__(self, url: str, **options: Unpack[RegistryOptions]) -> None:
        """Makes a client; connects on first use. `url` has one address or several, separated by commas."""
        from awoke.payloads.registry.transport import BlockingTransport  # Here, because httpx2 is optional.

        self._own = BlockingTransport(url, options)
        super().__init__(self._own, options)

    schema = blocking(AsyncSchemaRegistry.schema)
    subjects = blocking(AsyncSchemaRegistry.subjects)
    versions = blocking(AsyncSchemaRegistry.versions)
    version = blocking(AsyncSchemaRegistry.version)
    latest = blocking(AsyncSchemaRegistry.latest)
    look_up = blocking(AsyncSchemaRegistry.look_up)
    register = blocking(AsyncSchemaRegistry.register)
    check = blocking(AsyncSchemaRegistry.check)
    compatibility = blocking(AsyncSchemaRegistry.compatibility)
    set_compatibility = blocking(AsyncSchemaRegistry.set_compatibility)
    delete_subject = blocking(AsyncSchemaRegistry.delete_subject)
    delete_version = blocking(AsyncSchemaRegistry.delete_version)
    references = blocking(AsyncSchemaRegistry.references)

    def close(self) -> None:
        """Closes the connections. Closing again does nothing. Usable from any thread."""
        self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_clients: WeakSet[RegistryClient] = WeakSet()


def _forget_parents() -> None:
    """Renews the clients in a forked child: the connections are the parent's, and its threads may have held locks."""
    for client in list(_clients):
        client._forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)

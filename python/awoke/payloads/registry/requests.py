"""The requests of Confluent's REST API, each once."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from awoke.errors import ConfigError
from awoke.payloads.registry.errors import SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, RegistryRefused, SchemaNotFound
from awoke.payloads.registry.schema import AVRO, UNKNOWN_ID, Reference, RegisteredSchema, Schema

Converted = TypeVar("Converted")
Version = int | Literal["latest"]


class Transport(Protocol):
    """Sends requests to a registry."""

    async def send(self, method: str, path: str, body: object | None = None) -> Any:
        """Sends a request and returns the JSON of its answer.

        Raises:
            RegistryError: There is no answer, or it is an error.
        """

    def url_of(self, path: str) -> str:
        """Returns the address for a path, as errors show it."""


class _ReferenceAnswer(msgspec.Struct):
    """A reference in an answer."""

    name: str
    subject: str
    version: int


class _SchemaAnswer(msgspec.Struct):
    """A schema in an answer; no registry gives all fields in each."""

    schema: str | None = None
    kind: str | None = msgspec.field(default=None, name="schemaType")
    references: list[_ReferenceAnswer] | None = None
    id: int = UNKNOWN_ID
    guid: str | None = None
    subject: str | None = None
    version: int | None = None

    def registered(self, asked: Schema, subject: str) -> RegisteredSchema:
        """Returns the schema; `asked` and `subject` are for an answer that leaves them out."""
        schema = asked if self.schema is None else _schema(self.schema, self.kind or asked.kind, self.references)
        return RegisteredSchema(schema, self.id, self.guid, self.subject or subject, self.version)


class _WholeAnswer(msgspec.Struct):
    """A schema in the answer to a request without one."""

    schema: str
    kind: str | None = msgspec.field(default=None, name="schemaType")
    references: list[_ReferenceAnswer] | None = None
    id: int = UNKNOWN_ID
    guid: str | None = None
    subject: str | None = None
    version: int | None = None

    def registered(self) -> RegisteredSchema:
        """Returns the schema."""
        schema = _schema(self.schema, self.kind, self.references)
        return RegisteredSchema(schema, self.id, self.guid, self.subject, self.version)


class _CheckAnswer(msgspec.Struct):
    """The answer to a check of compatibility."""

    is_compatible: bool
    messages: list[str] | None = None


class _LevelAnswer(msgspec.Struct):
    """A compatibility level: a registry names it differently when it is read and when it is set."""

    level: str | None = msgspec.field(default=None, name="compatibilityLevel")
    new_level: str | None = msgspec.field(default=None, name="compatibility")


class Requests:
    """Makes the requests, as flows (see `awoke.waiting.drive`), over any transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def schema(self, id: int | str, *, subject: str | None = None) -> RegisteredSchema:
        """Returns the schema of an id, or of a GUID if that is a text."""
        if isinstance(id, str):
            found = (await self._send(_WholeAnswer, "GET", _path("schemas", "guids", id))).registered()
            return RegisteredSchema(found.schema, found.id, found.guid or id)
        path = _path("schemas", "ids", str(id)) + _query(subject=subject)
        found = (await self._send(_WholeAnswer, "GET", path)).registered()
        return RegisteredSchema(found.schema, id, found.guid)

    async def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Returns the subjects that begin with a prefix, sorted."""
        path = _path("subjects") + _query(subjectPrefix=prefix or None, deleted=_flag(deleted))
        found = await self._send(list[str], "GET", path)
        return sorted(name for name in found if name.startswith(prefix))  # Not every registry knows the prefix.

    async def versions(self, subject: str) -> list[int]:
        """Returns the versions of a subject, sorted."""
        return sorted(await self._send(list[int], "GET", _subject_path(subject, "versions")))

    async def version(self, subject: str, version: Version) -> RegisteredSchema:
        """Returns one version of a subject."""
        return (await self._send(_WholeAnswer, "GET", _subject_path(subject, "versions", str(version)))).registered()

    async def look_up(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Returns the version of a subject that has this schema."""
        path = _subject_path(subject) + _query(normalize=_flag(normalize))
        return (await self._send(_SchemaAnswer, "POST", path, _body(schema))).registered(schema, subject)

    async def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Adds a schema to a subject, if it is not there, and returns its version."""
        path = _subject_path(subject, "versions") + _query(normalize=_flag(normalize))
        answer = await self._send(_SchemaAnswer, "POST", path, _body(schema))
        if answer.id == UNKNOWN_ID or answer.version is None:  # Most registries answer with the id only.
            # Not the look-up of a subclass: it may join a request that was sent before the schema was registered.
            return await Requests.look_up(self, subject, schema, normalize=normalize)
        return answer.registered(schema, subject)

    async def check(self, subject: str, schema: Schema, version: Version | Literal["all"] = "latest") -> list[str]:
        """Returns why a schema is not compatible with a version of a subject, or with all; nothing if it is.

        A subject without versions is compatible with any schema, unless the version is a number.
        """
        versions = () if version == "all" else (str(version),)
        path = _path("compatibility", "subjects", _name(subject), "versions", *versions) + _query(verbose="true")
        try:
            answer = await self._send(_CheckAnswer, "POST", path, _body(schema))
        except SchemaNotFound as error:
            if isinstance(version, str) and error.code in (SUBJECT_NOT_FOUND, VERSION_NOT_FOUND):
                return []
            raise
        if answer.is_compatible:
            return []
        return answer.messages or ["the registry gives no reason"]

    async def compatibility(self, subject: str | None = None) -> str:
        """Returns the compatibility level of a subject, or of the registry; a subject without one has the latter."""
        answer = await self._send(_LevelAnswer, "GET", _config_path(subject, "?defaultToGlobal=true"))
        return answer.level or answer.new_level or "NONE"

    async def set_compatibility(self, level: str, subject: str | None = None) -> str:
        """Sets the compatibility level of a subject, or of the registry, and returns it."""
        answer = await self._send(_LevelAnswer, "PUT", _config_path(subject), {"compatibility": level})
        return answer.new_level or answer.level or level

    async def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Deletes a subject and returns its versions."""
        path = _subject_path(subject) + _query(permanent=_flag(permanent))
        return sorted(await self._send(list[int], "DELETE", path))

    async def delete_version(self, subject: str, version: Version, *, permanent: bool = False) -> int:
        """Deletes a version of a subject and returns its number."""
        path = _subject_path(subject, "versions", str(version)) + _query(permanent=_flag(permanent))
        return await self._send(int, "DELETE", path)

    async def _send(self, kind: type[Converted], method: str, path: str, body: object | None = None) -> Converted:
        answer = await self._transport.send(method, path, body)
        try:
            return msgspec.convert(answer, kind)
        except msgspec.ValidationError as error:
            url = self._transport.url_of(path)
            text = f"{RegistryRefused.what}: {method} {url}: {error}; {RegistryRefused.advice}"
            raise RegistryRefused(text, url) from None


def _schema(text: str, kind: str | None, references: list[_ReferenceAnswer] | None) -> Schema:
    referred = tuple(Reference(each.name, each.subject, each.version) for each in references or ())
    return Schema(text, kind or AVRO, referred)


def _body(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.kind != AVRO:  # Registries before Confluent's 5.5 know Avro only, and refuse the field.
        body["schemaType"] = schema.kind
    if schema.references:
        body["references"] = [each._asdict() for each in schema.references]
    return body


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _subject_path(subject: str, *parts: str) -> str:
    return _path("subjects", _name(subject), *parts)


def _config_path(subject: str | None, query: str = "") -> str:
    return "/config" if subject is None else _path("config", _name(subject)) + query


def _name(subject: str) -> str:
    """Returns a subject. An empty one or dots would make another path of it.

    Raises:
        ConfigError: No subject can have this name.
    """
    if subject in ("", ".", ".."):
        raise ConfigError(f"schema registry: a subject can't have the name {subject!r}", "subject")
    return subject


def _query(**values: str | None) -> str:
    given = {name: value for name, value in values.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _flag(value: bool) -> str | None:
    return "true" if value else None

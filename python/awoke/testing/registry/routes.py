"""The REST API of the embedded schema registry: its methods and paths, and the JSON of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

from awoke.payloads.registry.schema import AVRO, Reference, Schema
from awoke.testing.registry import refusal
from awoke.testing.registry.kinds import KINDS
from awoke.testing.registry.refusal import Refusal
from awoke.testing.registry.subjects import LATEST, VERSION_MAX, Stored, Subjects, Version

ANY = "*"
"""A part of a path that is a name or a number."""


class RegistryRequest(NamedTuple):
    """A request, as far as its meaning goes."""

    method: str
    path: str
    """The path and the query, percent-encoded."""
    body: bytes = b""


class Answer(NamedTuple):
    """An answer: its HTTP status, and its text, which is JSON but for a schema of Protobuf."""

    status: int
    text: str


class RouteCall(NamedTuple):
    """A request whose path is known."""

    names: list[str]
    """The parts of the path that stand for `*`."""
    query: Mapping[str, str]
    body: bytes

    def is_set(self, name: str) -> bool:
        """Tells whether a parameter of the query is `true`."""
        return self.query.get(name, "").lower() == "true"

    def document(self) -> dict[str, Any]:
        """Returns the body.

        Raises:
            Refusal: It is no JSON object (400).
        """
        try:
            found = json.loads(self.body)
        except ValueError as error:
            raise refusal.bad_request(str(error)) from None
        if not isinstance(found, dict):
            raise refusal.bad_request("it is no JSON object")
        return found

    def schema(self) -> Schema:
        """Returns the schema in the body.

        Raises:
            Refusal: The body is no JSON object (400), or holds no schema (42201).
        """
        try:
            return msgspec.convert(self.document(), Posted).schema()
        except msgspec.ValidationError as error:
            raise refusal.invalid_schema(str(error)) from None


class PostedReference(msgspec.Struct):
    """A reference in the body of a request."""

    name: str
    subject: str
    version: int


class Posted(msgspec.Struct):
    """A schema in the body of a request."""

    text: str = msgspec.field(name="schema")
    kind: str | None = msgspec.field(default=None, name="schemaType")
    references: tuple[PostedReference, ...] | None = None

    def schema(self) -> Schema:
        """Returns the schema. Without a kind, it is of Avro."""
        references = tuple(Reference(each.name, each.subject, each.version) for each in self.references or ())
        return Schema(self.text, self.kind or AVRO, references)


class Routes:
    """Answers requests from the state of a registry. For one thread at a time; does not block."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects, self._levels = subjects, subjects.levels
        self._table: dict[tuple[str, ...], dict[str, Callable[[RouteCall], Any]]] = {
            (): {"GET": lambda call: {}},
            ("mode",): {"GET": lambda call: {"mode": "READWRITE"}},
            ("schemas", "types"): {"GET": lambda call: list(KINDS)},
            ("schemas", "ids", ANY): {"GET": self._by_id},
            ("schemas", "ids", ANY, "schema"): {"GET": lambda call: Raw(self._stored(call).schema.text)},
            ("schemas", "ids", ANY, "subjects"): {
                "GET": lambda call: sorted({each.subject for each in self._uses(call)})
            },
            ("schemas", "ids", ANY, "versions"): {"GET": self._versions_of_id},
            ("schemas", "guids", ANY): {"GET": self._by_guid},
            ("subjects",): {"GET": self._names},
            ("subjects", ANY): {"POST": self._look_up, "DELETE": self._delete_subject},
            ("subjects", ANY, "versions"): {"GET": self._versions, "POST": self._register},
            ("subjects", ANY, "versions", ANY): {"GET": self._version, "DELETE": self._delete_version},
            ("subjects", ANY, "versions", ANY, "schema"): {
                "GET": lambda call: Raw(self._found(call).stored.schema.text)
            },
            ("subjects", ANY, "versions", ANY, "referencedby"): {
                "GET": lambda call: self._subjects.referrers(self._found(call))
            },
            ("compatibility", "subjects", ANY, "versions"): {"POST": self._check},
            ("compatibility", "subjects", ANY, "versions", ANY): {"POST": self._check},
            ("config",): {"GET": self._level, "PUT": self._set_level, "DELETE": self._reset_level},
            ("config", ANY): {"GET": self._level, "PUT": self._set_level, "DELETE": self._reset_level},
        }

    def answer(self, request: RegistryRequest) -> Answer:
        """Returns the answer to a request; a refusal is an answer, too."""
        path, _, query = request.path.partition("?")
        try:
            function, names = self._find(request.method, path)
            found = function(RouteCall(names, dict(parse_qsl(query)), request.body))
        except Refusal as error:
            return refused(error)
        return Answer(200, found.text if isinstance(found, Raw) else json.dumps(found))

    def _find(self, method: str, path: str) -> tuple[Callable[[RouteCall], Any], list[str]]:
        """Returns the function for a method and a path, and the parts of the path that are names."""
        parts = [unquote(each) for each in path.split("/") if each]
        for pattern, methods in self._table.items():
            if len(pattern) == len(parts) and all(
                want in (ANY, part) for want, part in zip(pattern, parts, strict=True)
            ):
                if method not in methods:
                    raise refusal.method_not_allowed(method, path)
                return methods[method], [part for want, part in zip(pattern, parts, strict=True) if want == ANY]
        raise refusal.path_not_found(path)

    # Schemas.

    def _stored(self, call: RouteCall) -> Stored:
        """Returns the schema with the id in the path."""
        if not call.names[0].isdecimal():
            raise refusal.path_not_found(call.names[0])
        return self._subjects.by_id(int(call.names[0]))

    def _uses(self, call: RouteCall) -> list[Version]:
        """Returns the versions that have the schema with the id in the path."""
        return self._subjects.uses(self._stored(call).id, deleted=call.is_set("deleted"))

    def _by_id(self, call: RouteCall) -> Any:
        """Answers GET /schemas/ids/{id}. Ids are the same in all subjects, so the parameter `subject` has no effect."""
        stored = self._stored(call)
        return {"guid": stored.guid, **schema_of(stored)}

    def _by_guid(self, call: RouteCall) -> Any:
        """Answers GET /schemas/guids/{guid}."""
        stored = self._subjects.by_guid(call.names[0])
        return {"guid": stored.guid, **schema_of(stored)}

    def _versions_of_id(self, call: RouteCall) -> Any:
        """Answers GET /schemas/ids/{id}/versions."""
        return [{"subject": each.subject, "version": each.number} for each in self._uses(call)]

    # Subjects.

    def _names(self, call: RouteCall) -> Any:
        """Answers GET /subjects."""
        return self._subjects.names(call.query.get("subjectPrefix", ""), deleted=call.is_set("deleted"))

    def _versions(self, call: RouteCall) -> Any:
        """Answers GET /subjects/{subject}/versions."""
        return [each.number for each in self._subjects.versions(call.names[0], deleted=call.is_set("deleted"))]

    def _found(self, call: RouteCall) -> Version:
        """Returns the version in the path."""
        return self._subjects.version(call.names[0], number_in(call.names[1]), deleted=call.is_set("deleted"))

    def _version(self, call: RouteCall) -> Any:
        """Answers GET /subjects/{subject}/versions/{version}."""
        return version_of(self._found(call))

    def _register(self, call: RouteCall) -> Any:
        """Answers POST /subjects/{subject}/versions, as newer registries do: older ones tell the id only."""
        version = self._subjects.register(call.names[0], call.schema())
        return {name: value for name, value in version_of(version).items() if name != "subject"}

    def _look_up(self, call: RouteCall) -> Any:
        """Answers POST /subjects/{subject}."""
        return version_of(self._subjects.look_up(call.names[0], call.schema(), deleted=call.is_set("deleted")))

    def _delete_subject(self, call: RouteCall) -> Any:
        """Answers DELETE /subjects/{subject}."""
        return self._subjects.delete_subject(call.names[0], permanent=call.is_set("permanent"))

    def _delete_version(self, call: RouteCall) -> Any:
        """Answers DELETE /subjects/{subject}/versions/{version}."""
        number = number_in(call.names[1])
        return self._subjects.delete_version(call.names[0], number, permanent=call.is_set("permanent"))

    # Compatibility.

    def _check(self, call: RouteCall) -> Any:
        """Answers POST /compatibility/subjects/{subject}/versions, or for one version."""
        subject, *versions = call.names
        messages = self._subjects.check(subject, call.schema(), number_in(versions[0]) if versions else None)
        return {"is_compatible": not messages, **({"messages": messages} if call.is_set("verbose") else {})}

    def _level(self, call: RouteCall) -> Any:
        """Answers GET /config, or for one subject."""
        if not call.names:
            return {"compatibilityLevel": self._levels.common}
        subject = call.names[0]
        if self._levels.own(subject) is None and not call.is_set("defaultToGlobal"):
            raise refusal.level_not_configured(subject)
        return {"compatibilityLevel": self._levels.applied_to(subject)}

    def _set_level(self, call: RouteCall) -> Any:
        """Answers PUT /config, or for one subject."""
        return {"compatibility": self._levels.set(call.document().get("compatibility"), *call.names)}

    def _reset_level(self, call: RouteCall) -> Any:
        """Answers DELETE /config, or for one subject."""
        return {"compatibilityLevel": self._levels.reset(*call.names)}


class Raw(NamedTuple):
    """A text that is the whole answer."""

    text: str


def refused(error: Refusal) -> Answer:
    """Returns the answer that says why a request is refused."""
    return Answer(error.status, json.dumps({"error_code": error.code, "message": error.message}))


def number_in(text: str) -> int:
    """Returns the number of a version in a path; -1 for `latest`.

    Raises:
        Refusal: It is neither `latest` nor a number from 1 (42202).
    """
    if text in ("latest", str(LATEST)):
        return LATEST
    if not text.isdecimal() or not 0 < int(text) <= VERSION_MAX:
        raise refusal.invalid_version(text)
    return int(text)


def schema_of(stored: Stored) -> dict[str, Any]:
    """Returns a schema for an answer. The kind of Avro and an empty list of references are left out."""
    schema = stored.schema
    kind = {} if schema.kind == AVRO else {"schemaType": schema.kind}
    references = [{"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references]
    return {**kind, "schema": schema.text, **({"references": references} if references else {})}


def version_of(version: Version) -> dict[str, Any]:
    """Returns a version for an answer."""
    stored = version.stored
    place = {"subject": version.subject, "version": version.number}
    return {**place, "id": stored.id, "guid": stored.guid, **schema_of(stored)}

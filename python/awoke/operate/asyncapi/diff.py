"""Compares two AsyncAPI documents of one app: which changes break the programs that send to it or read from it.

The app must go on to accept what others send, and others must go on to accept what it sends. A schema *accepts* another
one if each value that is valid by the other is valid by it, as far as types, fields, enums and bounds say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from awoke.payloads.formats.avro_resolution import AvroSchema, incompatibilities

Json = Mapping[str, Any]
AVRO = "avro"
"""A part of the media types of Avro schemas."""


class Change(NamedTuple):
    """One difference between two documents."""

    is_breaking: bool
    place: str
    """The operation, and the message."""
    text: str


def changes(old: Json, new: Json) -> list[Change]:
    """Returns the differences that matter to other programs; breaking ones first."""
    found = [*_operations(old, new)]
    return sorted(found, key=lambda each: (not each.is_breaking, each.place))


def _operations(old: Json, new: Json) -> Iterator[Change]:
    before, after = old.get("operations", {}), new.get("operations", {})
    for name, operation in before.items():
        if name not in after:
            yield Change(True, name, "the operation is gone")
            continue
        later = after[name]
        if operation["action"] != later["action"]:
            yield Change(True, name, f"it was {operation['action']}, and is {later['action']}")
            continue
        yield from _addresses(name, _Side(old, operation), _Side(new, later))
        yield from _messages(name, _Side(old, operation), _Side(new, later), operation["action"] == "receive")
        if "reply" in operation and "reply" in later:
            yield from _messages(
                f"{name} (reply)", _Side(old, operation["reply"]), _Side(new, later["reply"]), is_received=False
            )
    for name in after:
        if name not in before:
            yield Change(False, name, "the operation is new")


class _Side(NamedTuple):
    """An operation, or its reply, in its document."""

    document: Json
    operation: Json

    def messages(self) -> dict[str, Json]:
        found = [resolved(self.document, each) for each in self.operation.get("messages", ())]
        return {each.get("name", str(number)): each for number, each in enumerate(found)}

    @property
    def address(self) -> Any:
        return resolved(self.document, self.operation["channel"]).get("address")


def _addresses(name: str, old: _Side, new: _Side) -> Iterator[Change]:
    if old.address != new.address:
        yield Change(True, name, f"its topic was {old.address}, and is {new.address}")


def _messages(place: str, old: _Side, new: _Side, is_received: bool) -> Iterator[Change]:
    before, after = old.messages(), new.messages()
    if len(before) == len(after) == 1:  # Its type may have another name.
        pairs = [(place, next(iter(before.values())), next(iter(after.values())))]
    else:
        pairs = [(f"{place}, {name}", before[name], after[name]) for name in before if name in after]
        for name in sorted(set(before) ^ set(after)):
            # Those who send may still send what is gone, and those who read do not know what is new.
            is_new = name in after
            yield Change(is_new != is_received, f"{place}, {name}", f"the message is {'new' if is_new else 'gone'}")
    for where, earlier, later in pairs:
        yield from _contents(where, earlier, later)
        reader, writer = (_Of(new, later), _Of(old, earlier)) if is_received else (_Of(old, earlier), _Of(new, later))
        for text in _refused(reader, writer):
            who = "it no longer accepts" if is_received else "others may not accept"
            yield Change(True, where, f"{who}: {text}")


class _Of(NamedTuple):
    """A message of one side."""

    side: _Side
    message: Json


def _contents(place: str, old: Json, new: Json) -> Iterator[Change]:
    before, after = old.get("contentType"), new.get("contentType")
    if before != after:
        yield Change(True, place, f"its content type was {before}, and is {after}")


def _refused(reader: _Of, writer: _Of) -> Iterator[str]:
    ours, theirs = reader.message.get("payload"), writer.message.get("payload")
    if ours is None or (ours == theirs and "schemaFormat" in ours):
        return
    if "schemaFormat" in ours or "schemaFormat" in (theirs or {}):
        formats = [(each or {}).get("schemaFormat", "") for each in (ours, theirs)]
        if all(AVRO in each for each in formats) and theirs is not None:
            yield from incompatibilities(AvroSchema.of(ours["schema"]), AvroSchema.of(theirs["schema"]))
        else:
            yield f"schemas of {formats[1] or 'JSON'} by one of {formats[0] or 'JSON'}"
        return
    yield from Acceptance(reader.side.document, writer.side.document).refused(ours, theirs or {}, "$")


def resolved(document: Json, schema: Any) -> Any:
    """Returns what a reference refers to; anything else as it is."""
    for _ in range(20):  # A reference may lead to another.
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return schema
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        schema = found
    return schema


class Acceptance:
    """Finds the values of a writer's schema that a reader's does not accept. Each has its own document."""

    def __init__(self, reader_document: Json, writer_document: Json, seen: Iterable[tuple[str, str]] = ()) -> None:
        self._documents = reader_document, writer_document
        self._seen = set(seen)
        """Pairs of named schemas that are compared already: a schema may contain itself."""

    def refused(self, reader: Any, writer: Any, at: str) -> Iterator[str]:
        """Yields a text for each part of the writer's schema that the reader does not accept."""
        if isinstance(reader, Mapping) and isinstance(writer, Mapping) and "$ref" in reader and "$ref" in writer:
            pair = (reader["$ref"], writer["$ref"])
            if pair in self._seen:
                return
            self._seen.add(pair)
        ours, theirs = (resolved(*each) for each in zip(self._documents, (reader, writer), strict=True))
        if ours in (True, {}) or not isinstance(ours, Mapping):
            return
        if not isinstance(theirs, Mapping):
            theirs = {}
        members = _alternatives(theirs)
        if len(members) > 1 or len(_alternatives(ours)) > 1:
            yield from self._of_union(_alternatives(ours), members, at)
            return
        yield from self._types(ours, theirs, at)
        yield from self._values(ours, theirs, at)
        yield from self._fields(ours, theirs, at)
        if "items" in ours:
            yield from self.refused(ours["items"], theirs.get("items", {}), f"{at}[]")

    def _of_union(self, ours: list[Any], theirs: list[Any], at: str) -> Iterator[str]:
        for each in theirs:
            if all(any(True for _ in Acceptance(*self._documents, self._seen).refused(one, each, at)) for one in ours):
                yield f"{at} may be {_named(each)}"

    def _types(self, ours: Json, theirs: Json, at: str) -> Iterator[str]:
        mine, others = _types_of(ours), _types_of(theirs)
        if mine and (not others or not others <= mine | ({"integer"} if "number" in mine else set())):
            yield f"{at} may be {' or '.join(sorted(others)) or 'anything'}, not {' or '.join(sorted(mine))}"

    def _values(self, ours: Json, theirs: Json, at: str) -> Iterator[str]:
        for word in ("enum", "const"):
            if word in ours:
                allowed = ours[word] if word == "enum" else [ours[word]]
                given = theirs.get("enum", [theirs["const"]] if "const" in theirs else None)
                more = ["any value"] if given is None else [str(each) for each in given if each not in allowed]
                if more:
                    yield f"{at} may be {', '.join(more)}"
        for least, is_lower in (*((name, True) for name in LEAST), *((name, False) for name in MOST)):
            if least in ours:
                limit, other = ours[least], theirs.get(least)
                if other is None or (other < limit if is_lower else other > limit):
                    yield f"{at}: {least} is {limit} and not {other}"
        if "pattern" in ours and ours["pattern"] != theirs.get("pattern"):
            yield f"{at} must match {ours['pattern']}"

    def _fields(self, ours: Json, theirs: Json, at: str) -> Iterator[str]:
        mine, others = ours.get("properties", {}), theirs.get("properties", {})
        present = set(theirs.get("required", ()))
        for name in ours.get("required", ()):
            if name not in present:
                yield f"{at}.{name} may be missing"
        for name, schema in others.items():
            if name in mine:
                yield from self.refused(mine[name], schema, f"{at}.{name}")
            elif ours.get("additionalProperties", True) is False:
                yield f"{at}.{name} is unknown"


LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def _alternatives(schema: Any) -> list[Any]:
    for word in ("anyOf", "oneOf"):
        if isinstance(schema, Mapping) and word in schema:
            return list(schema[word])
    return [schema]


def _types_of(schema: Json) -> set[str]:
    found = schema.get("type")
    if found is None:
        return set()
    return {found} if isinstance(found, str) else set(found)


def _named(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "anything"
    return str(schema.get("title") or schema.get("$ref", "").rpartition("/")[2] or schema.get("type") or "anything")

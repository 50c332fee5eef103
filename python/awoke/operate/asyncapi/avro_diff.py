"""Tells what a reader's Avro schema can't read of a writer's, by the rules of Avro's specification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

PROMOTED = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""The types that a reader may have where the writer has another."""


def refused_by_avro(reader: Any, writer: Any) -> Iterator[str]:
    """Yields a text for each part of the writer's schema that the reader can't read."""
    yield from _Resolution(_names_in(reader), _names_in(writer)).refused(reader, writer, "$")


class _Resolution:
    """The resolution of one schema by another."""

    def __init__(self, ours: dict[str, Any], theirs: dict[str, Any], seen: Iterable[tuple[str, str]] = ()) -> None:
        self._ours, self._theirs = ours, theirs
        self._seen = set(seen)
        """Pairs of records that are compared already: a record may contain itself."""

    def refused(self, reader: Any, writer: Any, at: str) -> Iterator[str]:
        """Yields a text for each part of the writer's schema that the reader can't read."""
        mine, theirs = self._found(reader, self._ours), self._found(writer, self._theirs)
        if isinstance(theirs, list):
            for each in theirs:
                yield from self.refused(mine, each, at)
            return
        if isinstance(mine, list):
            if all(any(True for _ in self._copy().refused(each, theirs, at)) for each in mine):
                yield f"{at} may be {_kind(theirs)}"
            return
        kind, other = _kind(mine), _kind(theirs)
        if kind != other and kind not in PROMOTED.get(other, ()):
            yield f"{at} is {other}, not {kind}"
        elif kind == "record" and other == "record":
            yield from self._fields(mine, theirs, at)
        elif kind == "enum" and "default" not in mine:
            more = [each for each in theirs["symbols"] if each not in mine["symbols"]]
            if more:
                yield f"{at} may be {', '.join(more)}"
        elif kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            yield from self.refused(mine[part], theirs[part], f"{at}[]")
        elif kind == "fixed" and mine["size"] != theirs["size"]:
            yield f"{at} has {theirs['size']} bytes, not {mine['size']}"

    def _fields(self, mine: Any, theirs: Any, at: str) -> Iterator[str]:
        pair = (str(mine.get("name")), str(theirs.get("name")))
        if pair in self._seen:
            return
        self._seen.add(pair)
        written = {field["name"]: field for field in theirs["fields"]}
        for field in mine["fields"]:
            found = next(
                (written[name] for name in (field["name"], *field.get("aliases", ())) if name in written), None
            )
            if found is not None:
                yield from self.refused(field["type"], found["type"], f"{at}.{field['name']}")
            elif "default" not in field:
                yield f"{at}.{field['name']} may be missing"

    def _copy(self) -> _Resolution:
        return _Resolution(self._ours, self._theirs, self._seen)

    def _found(self, schema: Any, names: dict[str, Any]) -> Any:
        """Returns a schema without what is around it: a name's definition, and what `type` nests."""
        if isinstance(schema, str):
            return names.get(schema, schema)
        if isinstance(schema, dict) and isinstance(schema.get("type"), (dict, list)):
            return self._found(schema["type"], names)
        return schema


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


def _names_in(schema: Any) -> dict[str, Any]:
    """Returns the named schemas inside, by their names with and without their namespace."""
    found: dict[str, Any] = {}
    if isinstance(schema, list):
        for each in schema:
            found |= _names_in(each)
    elif isinstance(schema, dict):
        if "name" in schema and schema.get("type") in ("record", "enum", "fixed", "error"):
            found[schema["name"]] = schema
            found[f"{schema.get('namespace', '')}.{schema['name']}".lstrip(".")] = schema
        for field in schema.get("fields", ()):
            found |= _names_in(field["type"])
        for part in ("type", "items", "values"):
            if isinstance(schema.get(part), (dict, list)):
                found |= _names_in(schema[part])
    return found

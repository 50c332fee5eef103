"""Compatibility of JSON schemas: a reader's schema must accept every document that the writer's schema accepts.

The rules know the usual keywords. A keyword that they do not know must be equal in both schemas. Keywords beside a
`$ref` do not count, as in draft 7. A default does not help a new required property: validators do not apply defaults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from awoke.testing.registry.parsing import JsonSchema, Located, resolve

TYPES = frozenset({"null", "boolean", "object", "array", "number", "integer", "string"})
ANNOTATIONS = frozenset({"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "title", "description"})
ANNOTATIONS |= {"default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"}
"""Keywords that accept and refuse nothing."""
LOWER = {"minimum": "number", "exclusiveMinimum": "number", "minLength": "string"}
LOWER |= {"minItems": "array", "minProperties": "object"}
UPPER = {"maximum": "number", "exclusiveMaximum": "number", "maxLength": "string"}
UPPER |= {"maxItems": "array", "maxProperties": "object"}
EQUAL = {"pattern": "string", "format": "string"}
"""Keywords that may only be dropped."""
OBJECTS = ("properties", "required", "additionalProperties")
KNOWN = frozenset({"type", "enum", "const", "items", "uniqueItems", "multipleOf", "$ref", *OBJECTS})
UNTOUCHED = KNOWN.union(ANNOTATIONS, LOWER, UPPER, EQUAL)
ANYTHING: dict[str, Any] = {}


def incompatibilities(reader: JsonSchema, writer: JsonSchema) -> list[str]:
    """Returns the reasons why the reader refuses documents that the writer accepts, each with its path in the reader.

    Empty if it accepts them all. It may name a reason where there is none, but does not overlook one. Does not block.
    """
    if canonical(reader) == canonical(writer):
        return []
    comparison = Comparison(reader.references, writer.references)
    found = comparison.compare(Located(reader.root, reader.root), Located(writer.root, writer.root), "")
    return list(dict.fromkeys(found))


class Comparison:
    """One comparison of a reader's schema with a writer's."""

    def __init__(self, reader_references: Mapping[str, Any], writer_references: Mapping[str, Any]) -> None:
        self._readers, self._writers = reader_references, writer_references
        self._known: dict[tuple[str, int, str, int], list[str]] = {}
        """The result for each pair of parts; empty while it is compared, so that recursive schemas end."""

    def compare(self, reader: Located, writer: Located, path: str) -> list[str]:
        """Returns the incompatibilities of two parts. The path is a JSON pointer into the reader's schema."""
        left, right = resolve(reader, self._readers), resolve(writer, self._writers)
        if left is None or right is None:
            is_same = left is right and reader.part["$ref"] == writer.part["$ref"]
            return [] if is_same else [f"{path or '/'}: a $ref points to nothing that this registry knows"]
        pair = (canonical(left.part), id(left.document), canonical(right.part), id(right.document))
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = self._compare_parts(left, right, path)
        return self._known[pair]

    def _compare_parts(self, reader: Located, writer: Located, path: str) -> list[str]:
        """Compares two resolved parts."""
        if writer.part is False or reader.part is True:
            return []
        if reader.part is False:
            return [f"{path or '/'}: the reader allows no value, the writer may send one"]
        if writer.part is True:
            writer = Located(ANYTHING, writer.document)
        if alternatives_of(reader.part) is not None:
            return self._compare_branches(reader, writer, path)
        if alternatives_of(writer.part) is not None:
            return [each for sent in self._alternatives(writer) for each in self.compare(reader, sent, path)]
        return self._compare_keywords(reader, writer, path)

    def _compare_branches(self, reader: Located, writer: Located, path: str) -> list[str]:
        """Compares a reader that has alternatives: one of them must accept each alternative of the writer."""
        keyword, sent_keyword = alternatives_of(reader.part), alternatives_of(writer.part)
        found = self._compare_keywords(without(reader, keyword), without(writer, sent_keyword), path)
        branches = [Located(each, reader.document) for each in reader.part[keyword]]
        for sent in self._alternatives(writer):
            if all(self.compare(each, sent, f"{path}/{keyword}/{index}") for index, each in enumerate(branches)):
                found.append(f"{path}/{keyword}: no alternative of the reader accepts the writer's {brief(sent.part)}")
        return found

    def _alternatives(self, writer: Located) -> Iterator[Located]:
        """Yields parts that together accept at least what the writer's part accepts: its alternatives, or its types."""
        keyword = alternatives_of(writer.part)
        rest = without(writer, keyword).part
        if keyword is None:
            types = sorted(types_of(rest)) if "type" in rest else []
            yield from [Located({**rest, "type": each}, writer.document) for each in types] or [writer]
            return
        for branch in writer.part[keyword]:
            located = resolve(Located(branch, writer.document), self._writers)
            if located is None or not isinstance(located.part, dict):
                yield Located(branch, writer.document)
            else:  # Where both have a keyword, that of the alternative counts: it accepts more than both together.
                yield Located({**rest, **located.part}, located.document)

    def _compare_keywords(self, reader: Located, writer: Located, path: str) -> list[str]:
        """Compares two parts that have no alternatives, or whose alternatives are compared by themselves."""
        types = types_of(writer.part)
        found = compare_types(reader.part, writer.part, path) + compare_values(reader.part, writer.part, path)
        found += compare_bounds(reader.part, writer.part, types, path)
        found += self._compare_unknown(reader, writer, path)
        if "object" in types:
            found += self._compare_properties(reader, writer, path)
        if "array" in types:
            found += self._compare_items(reader, writer, path)
        return found

    def _compare_unknown(self, reader: Located, writer: Located, path: str) -> list[str]:
        """Compares keywords that the rules do not know: they must be equal, and hold no reference."""
        found = []
        for keyword in sorted((reader.part.keys() | writer.part.keys()) - UNTOUCHED):
            left, right = canonical(reader.part.get(keyword)), canonical(writer.part.get(keyword))
            if left != right or (keyword not in reader.part) != (keyword not in writer.part):
                text = f"`{keyword}` differs, and this registry has no rule for it"
                found.append(f"{path}/{keyword}: {text}; keep it as it was")
            elif '"$ref"' in left and canonical(reader.document) != canonical(writer.document):
                text = f"`{keyword}` holds a $ref, and this registry has no rule for it"
                found.append(f"{path}/{keyword}: {text}; keep the whole schema as it was")
        return found

    def _compare_properties(self, reader: Located, writer: Located, path: str) -> list[str]:
        """Compares the properties of two objects: the required ones, the named ones, and all others."""
        found = []
        for name in reader.part.get("required", ()):
            if name not in writer.part.get("required", ()):
                text = f"the reader requires the property `{name}`, which the writer may leave out"
                found.append(f"{path}/required: {text}")
        own, others = reader.part.get("properties", {}), writer.part.get("properties", {})
        for name in dict.fromkeys([*own, *others]):
            place = f"{path}/properties/{name}" if name in own else f"{path}/additionalProperties"
            found += self._compare_property(name, reader, writer, place)
        rest = [Located(each.part.get("additionalProperties", True), each.document) for each in (reader, writer)]
        if rest[0].part is False and rest[1].part is not False:
            text = "the reader allows no other properties, the writer may send some"
            return [*found, f"{path}/additionalProperties: {text}"]
        return found + self.compare(rest[0], rest[1], f"{path}/additionalProperties")

    def _compare_property(self, name: str, reader: Located, writer: Located, place: str) -> list[str]:
        """Compares one property of two objects."""
        allowed, sent = property_of(reader, name), property_of(writer, name)
        if allowed.part is False and sent.part is not False:
            return [f"{place}: the reader does not allow the property `{name}`, which the writer may send"]
        if sent.part is True and name not in writer.part.get("properties", {}) and self.compare(allowed, sent, place):
            text = f"the reader restricts the property `{name}`, which the writer may send with any value"
            return [f"{place}: {text}; close the writer with additionalProperties: false"]
        return self.compare(allowed, sent, place)

    def _compare_items(self, reader: Located, writer: Located, path: str) -> list[str]:
        """Compares the items of two arrays."""
        items = [Located(each.part.get("items", True), each.document) for each in (reader, writer)]
        if not any(isinstance(each.part, list) for each in items):
            return self.compare(items[0], items[1], f"{path}/items")
        if canonical(items[0].part) == canonical(items[1].part) and '"$ref"' not in canonical(items[0].part):
            return []
        return [f"{path}/items: lists of items differ, and this registry has no rule for them; keep them as they were"]


def compare_types(reader: Any, writer: Any, path: str) -> list[str]:
    """Returns the message for types that the writer may send and the reader refuses."""
    allowed = types_in(reader)
    refused = [each for each in sorted(types_of(writer)) if each not in allowed]
    if not refused:
        return []
    names = ", ".join(f"`{each}`" for each in refused)
    return [f"{path}/type: the reader refuses {names}, which the writer may send"]


def compare_values(reader: Any, writer: Any, path: str) -> list[str]:
    """Returns the message for values that the writer may send and an enum or a const of the reader refuses."""
    allowed, sent = values_of(reader), values_of(writer)
    if allowed is None:
        return []
    keyword = "enum" if "enum" in reader else "const"
    if sent is None:
        return [f"{path}/{keyword}: the reader allows only certain values, the writer may send others"]
    refused = ", ".join(f"`{each}`" for each in sent if each not in allowed)
    return [f"{path}/{keyword}: the reader refuses {refused}, which the writer may send"] if refused else []


def compare_bounds(reader: Any, writer: Any, types: frozenset[str], path: str) -> list[str]:
    """Returns the messages for bounds of the reader that are narrower than the writer's."""
    found = []
    for keyword, kind in (LOWER | UPPER | EQUAL | {"multipleOf": "number", "uniqueItems": "array"}).items():
        concerns = kind in types or (kind == "number" and "integer" in types)
        if concerns and keyword in reader and is_narrower(keyword, reader[keyword], writer.get(keyword)):
            sent = f"`{writer[keyword]}`" if keyword in writer else "none"
            found.append(f"{path}/{keyword}: the reader has `{reader[keyword]}`, the writer has {sent}")
    return found


def is_narrower(keyword: str, reader: Any, writer: Any) -> bool:
    """Tells whether a bound of the reader refuses values that the writer's bound (None: no bound) accepts."""
    if keyword in EQUAL or isinstance(reader, bool) or isinstance(writer, bool):
        return bool(reader != writer) and reader is not False
    if writer is None:
        return keyword not in LOWER or reader > 0 or LOWER[keyword] == "number"
    if keyword == "multipleOf":
        return (Fraction(str(writer)) / Fraction(str(reader))).denominator != 1
    return bool(reader > writer if keyword in LOWER else reader < writer)


def types_of(part: Any) -> frozenset[str]:
    """Returns the types of the values that a part accepts."""
    values = values_of(part)
    return types_in(part) if values is None else frozenset(type_of(json.loads(each)) for each in values)


def types_in(part: Any) -> frozenset[str]:
    """Returns the types that the keyword `type` of a part allows. A number may be an integer."""
    found = part.get("type", TYPES)
    names = {found} if isinstance(found, str) else set(found)
    return frozenset(names | ({"integer"} if "number" in names else set()))


def type_of(value: Any) -> str:
    """Returns the type of a JSON value."""
    if isinstance(value, float) and value.is_integer():
        return "integer"
    names: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object" if isinstance(value, dict) else "null")


def values_of(part: Any) -> list[str] | None:
    """Returns the values that `enum` or `const` and `type` allow, in canonical form; None without enum and const."""
    if "enum" not in part and "const" not in part:
        return None
    values = part["enum"] if "enum" in part else [part["const"]]
    return [canonical(each) for each in values if type_of(each) in types_in(part)]


def property_of(located: Located, name: str) -> Located:
    """Returns the schema of a property: its own, that of the first pattern it matches, or that of all others."""
    part = located.part
    if name in part.get("properties", {}):
        return Located(part["properties"][name], located.document)
    for pattern, found in part.get("patternProperties", {}).items():
        if re.search(pattern, name):
            return Located(found, located.document)
    return Located(part.get("additionalProperties", True), located.document)


def alternatives_of(part: Any) -> str | None:
    """Returns the keyword with the alternatives of a part; None if it has none. Those of `oneOf` count as disjoint."""
    return next((keyword for keyword in ("anyOf", "oneOf") if keyword in part), None)


def without(located: Located, keyword: str | None) -> Located:
    """Returns a part of a schema without one of its keywords."""
    return Located({name: value for name, value in located.part.items() if name != keyword}, located.document)


def canonical(value: Any) -> str:
    """Returns a JSON value as text that is equal for equal values."""
    return json.dumps(value, sort_keys=True)


def brief(part: Any) -> str:
    """Returns a part of a schema for a message, at most 60 characters."""
    text = canonical(part)
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"

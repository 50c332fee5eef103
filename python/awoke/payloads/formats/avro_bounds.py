"""Which Avro schemas let a small message kill its reader, and the walk over its bytes that refuses such a message.

fastavro recurses in C as deep as a value is nested, makes an object of each item of an array, also of those without
bytes, and converts the digits of a decimal in quadratic time. Most schemas allow none of that, and their messages are
not walked over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awoke._native import AvroWalk

DEPTH_MAX = 256
"""Containers in one another. The walk has the same bound."""
DECIMAL_BYTES_MAX = 256
"""The bytes of a decimal: 616 digits."""
VALUES_PER_BYTE = 4
"""More values of one byte than this are made of a message on purpose. The walk has the same bound."""

NUMBERS = frozenset({"int", "long", "enum"})
FIXED = {"null": 0, "boolean": 1, "float": 4, "double": 8}


def walk_of(schema: Any, named: Mapping[str, Any]) -> AvroWalk | None:
    """Returns the walk over values of a schema, as fastavro has parsed it; None if no value of it is a danger.

    `named` has the schemas that it refers to.

    Raises:
        ValueError: The schema itself is nested too deep, has a decimal that is too large, or an unknown type.
    """
    types = _Types(named)
    types.add(schema, 0)
    return AvroWalk(types.all) if types.has_danger() else None


class _Types:
    """The types of one schema, in the form that the walk takes."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self.all: list[tuple[str, list[int]]] = []
        self._places: dict[str, int] = {}
        """The places of named types."""
        self._open: set[str] = set()
        """The names of the records around the present place."""
        self._is_dangerous = False

    def add(self, schema: Any, depth: int) -> int:
        """Adds a type and those in it; returns its place."""
        if depth > DEPTH_MAX:
            raise ValueError(f"the schema is nested more than {DEPTH_MAX} levels deep")
        if isinstance(schema, list):
            return self._container("union", schema, depth)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if not isinstance(kind, str):
            return self.add(kind, depth + 1)
        if kind in ("record", "error", "request"):
            return self._record(schema, depth)
        if kind == "array":
            return self._container("array", [schema["items"]], depth)
        if kind == "map":
            return self._container("map", [schema["values"]], depth)
        name = schema.get("name") if isinstance(schema, dict) else None
        if name is not None and name in self._places:
            return self._places[name]
        place = len(self.all)
        if kind in NUMBERS:
            self.all.append(("number", []))
        elif kind in FIXED:
            self.all.append(("fixed", [FIXED[kind]]))
        elif kind == "fixed":
            self._check_decimal(schema, schema["size"])
            self.all.append(("fixed", [schema["size"]]))
        elif kind in ("bytes", "string"):
            is_decimal = isinstance(schema, dict) and schema.get("logicalType") == "decimal"
            self._is_dangerous = self._is_dangerous or is_decimal
            self.all.append(("bytes", [DECIMAL_BYTES_MAX] if is_decimal else []))
        else:
            return self._reference(kind, depth)
        if name is not None:
            self._places[name] = place
        return place

    def _record(self, schema: Any, depth: int) -> int:
        name, place = schema["name"], len(self.all)
        fields: list[int] = []
        self.all.append(("record", fields))
        self._places[name] = place
        self._open.add(name)
        fields += [self.add(field["type"], depth + 1) for field in schema["fields"]]
        self._open.discard(name)
        return place

    def _container(self, kind: str, inner: list[Any], depth: int) -> int:
        place, places = len(self.all), list[int]()
        self.all.append((kind, places))
        places += [self.add(each, depth + 1) for each in inner]
        return place

    def _reference(self, name: str, depth: int) -> int:
        self._is_dangerous = self._is_dangerous or name in self._open
        if name in self._places:
            return self._places[name]
        if name not in self._named:
            raise ValueError(f"the schema has a type {name!r} that is not known")
        return self.add(self._named[name], depth)

    def _check_decimal(self, schema: Any, size: int) -> None:
        if schema.get("logicalType") == "decimal" and size > DECIMAL_BYTES_MAX:
            raise ValueError(f"the schema has a decimal of {size} bytes, and {DECIMAL_BYTES_MAX} at most are read")

    def has_danger(self) -> bool:
        """Tells whether values may be nested without end, or have far more parts than bytes."""
        if self._is_dangerous:
            return True
        weights = dict[int, tuple[int, int]]()
        return any(
            values > VALUES_PER_BYTE * (size + (kind == "map"))
            for kind, places in self.all
            if kind in ("array", "map")
            for size, values in [self._weight(places[0], weights)]
        )

    def _weight(self, place: int, weights: dict[int, tuple[int, int]]) -> tuple[int, int]:
        """Returns the least bytes of a type, and the most values that these become."""
        if place in weights:
            return weights[place]
        kind, numbers = self.all[place]
        found = 1, 1
        if kind == "fixed":
            found = numbers[0], 1
        elif kind in ("record", "union"):
            inner = [self._weight(each, weights) for each in numbers]
            sizes, values = [size for size, _ in inner], [count for _, count in inner]
            of_record, of_union = (sum(sizes), 1 + sum(values)), (1 + min(sizes, default=0), max(values, default=0))
            found = of_record if kind == "record" else of_union
        weights[place] = found
        return found

"""Makes values for Avro of JSON: by the schema, bytes are read from base64, and times from ISO 8601.

It finds what does not fit, too, because fastavro's errors do not say it: they quote values instead of naming fields.
"""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from awoke.codecs.extras import needs

Convert = Callable[[Any], Any]

PLAIN: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
"""The types of JSON that the plain types of Avro take. A bool is no number."""
BITS = {"int": 31, "long": 63}
TIMES: dict[str, Any] = {
    "date": datetime.date,
    "time-millis": datetime.time,
    "time-micros": datetime.time,
    "timestamp-millis": datetime.datetime,
    "timestamp-micros": datetime.datetime,
    "local-timestamp-millis": datetime.datetime,
    "local-timestamp-micros": datetime.datetime,
}
JSON_NAMES = {str: "text", bool: "true or false", type(None): "null", dict: "an object", list: "an array"}


def fitted(value: Any, schema: Any) -> Any:
    """Returns a value of JSON as fastavro takes it for a schema that fastavro has parsed.

    Raises:
        ValueError: It does not fit; the text names the field, and has no part of the value.
    """
    named: dict[str, Any] = {}
    schema = needs("fastavro", "registry").parse_schema(schema, named_schemas=named)
    return _Fitting(named).of(value, schema, "")


class _Fitting:
    """Fits values to schemas, with the types that the schema has named."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named

    def of(self, value: Any, schema: Any, at: str) -> Any:
        """Returns the value for a schema; `at` is its place, for errors."""
        schema = self._named.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(schema, list):
            return self._union(value, schema, at)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind == "record":
            return self._record(_checked(value, dict, schema, at), schema, at)
        if kind == "map":
            items = _checked(value, dict, schema, at).items()
            return {name: self.of(each, schema["values"], _inside(at, name)) for name, each in items}
        if kind == "array":
            items = enumerate(_checked(value, list, schema, at))
            return [self.of(each, schema["items"], f"{at}[{number}]") for number, each in items]
        return _leaf(value, schema, at)

    def _union(self, value: Any, schema: list[Any], at: str) -> Any:
        kinds = [each for each in schema if each != "null"]
        if value is None and len(kinds) < len(schema):
            return None
        if len(kinds) == 1:
            return self.of(value, kinds[0], at)
        for each in kinds:
            try:
                return self.of(value, each, at)
            except ValueError:
                continue
        raise _misfit(value, schema, at)

    def _record(self, value: dict[str, Any], schema: dict[str, Any], at: str) -> dict[str, Any]:
        fields = {each["name"]: each for each in schema["fields"]}
        for name in value:
            if name not in fields:
                raise ValueError(
                    f"there is no field {_inside(at, name)!r}; the fields are {', '.join(fields) or 'none'}"
                )
        made = {name: self.of(each, fields[name]["type"], _inside(at, name)) for name, each in value.items()}
        for name, field in fields.items():
            if name not in made and "default" not in field:
                raise ValueError(f"field {_inside(at, name)!r} ({_name_of(field['type'])}) is missing")
        return made


def _leaf(value: Any, schema: Any, at: str) -> Any:
    kind, logical = (schema["type"], schema.get("logicalType")) if isinstance(schema, dict) else (schema, None)
    convert: Convert | None = None
    if logical == "decimal":
        convert = _decimal
    elif logical in TIMES and isinstance(value, str):
        convert = lambda text: msgspec.convert(text, TIMES[logical])  # noqa: E731
    elif kind in ("bytes", "fixed"):
        convert = _bytes
    if convert is not None:
        try:
            return convert(value)
        except (ValueError, ArithmeticError, msgspec.ValidationError):
            raise _misfit(value, schema, at) from None
    fits = value in schema["symbols"] if kind == "enum" else isinstance(value, PLAIN.get(kind, (object,)))
    if not fits or (isinstance(value, bool) and kind != "boolean"):
        raise _misfit(value, schema, at)
    if kind in BITS and not -(1 << BITS[kind]) <= value < 1 << BITS[kind]:
        raise ValueError(f"{_place(at)} is a number that is too large for {kind}")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError("not base64")
    return base64.b64decode(value, validate=True)


def _decimal(value: Any) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("not a number")
    return decimal.Decimal(str(value))


def _checked(value: Any, kind: type, schema: Any, at: str) -> Any:
    if not isinstance(value, kind):
        raise _misfit(value, schema, at)
    return value


def _misfit(value: Any, schema: Any, at: str) -> ValueError:
    return ValueError(f"{_place(at)} takes {_name_of(schema)}, not {JSON_NAMES.get(type(value), 'a number')}")


def _place(at: str) -> str:
    return f"field {at!r}" if at else "the argument"


def _inside(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _name_of(schema: Any) -> str:
    """Returns the name of a type for people."""
    if isinstance(schema, list):
        return " or ".join(map(_name_of, schema))
    kind, more = (str(schema["type"]), schema) if isinstance(schema, dict) else (schema, {})
    if "logicalType" in more:
        return str(more["logicalType"])
    if kind == "enum":
        return f"one of {', '.join(more['symbols'])}"
    if kind in ("bytes", "fixed"):
        return f"{kind} as base64"
    return f"the {kind} {more['name']}" if "name" in more else kind

"""Makes values for Avro of JSON: by the schema, bytes are read from base64, and times from ISO 8601.

It finds what does not fit, too, because fastavro's errors do not say it: they quote values instead of naming fields.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import decimal
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from awoke.cli.encoding.misfits import inside, misfit, place, unknown_field
from awoke.preconditions.extras import needs

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
PREFERRED: dict[type, tuple[str, ...]] = {
    str: ("string",),
    int: ("int", "long", "double", "float"),
    float: ("double", "float"),
    bool: ("boolean",),
}
"""The types of a union that take a type of JSON before others, which read it as something else."""
BITS = {"int": 31, "long": 63}
FLOATS_MAX = {"float": 3.4028234663852886e38, "double": sys.float_info.max}
"""The greatest numbers; fastavro writes greater ones as infinite."""
TIMES: dict[str, Any] = {
    "date": datetime.date,
    "time-millis": datetime.time,
    "time-micros": datetime.time,
    "timestamp-millis": datetime.datetime,
    "timestamp-micros": datetime.datetime,
    "local-timestamp-millis": datetime.datetime,
    "local-timestamp-micros": datetime.datetime,
}


def fitting(schema: Any) -> Convert:
    """Returns the function that makes values of JSON what fastavro takes for a schema that fastavro has parsed.

    It raises ValueError if a value does not fit; the text names the field, and has no part of the value.
    """
    named: dict[str, Any] = {}
    schema = needs("fastavro", "registry").parse_schema(schema, named_schemas=named)
    return lambda value: _Fitting(named).of(value, schema, "")


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
            # The keys are data, so errors do not have them.
            return {name: self.of(each, schema["values"], f"{at}[…]") for name, each in items}
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
        fits = {**self._that_fit(value, kinds, at), **self._that_is_named(value, kinds, at)}
        name = next((each for each in PREFERRED.get(type(value), ()) if each in fits), None)
        if name is None and len(fits) > 1:
            text = f"{place(at)} fits several types of its union ({', '.join(fits)})"
            raise ValueError(f'{text}; write a pair with the name of one, as in ["{next(iter(fits))}", …]')
        if not fits:
            raise misfit(value, _name_of(schema), at)
        name = name or next(iter(fits))
        return name, fits[name]

    def _that_fit(self, value: Any, kinds: list[Any], at: str) -> dict[str, Any]:
        """Returns the value as each type of a union takes it, by the names of the types."""
        fits = {}
        for each in kinds:
            with contextlib.suppress(ValueError):
                fits[name_in_union(each)] = self.of(value, each, at)
        return fits

    def _that_is_named(self, value: Any, kinds: list[Any], at: str) -> dict[str, Any]:
        """Returns the second of a pair as the type takes it that the first one names, by that name.

        Raises:
            ValueError: It does not fit that type.
        """
        if not isinstance(value, list) or len(value) != 2:
            return {}
        return {each: self.of(value[1], kind, at) for kind in kinds if (each := name_in_union(kind)) == value[0]}

    def _record(self, value: dict[str, Any], schema: dict[str, Any], at: str) -> dict[str, Any]:
        fields = {each["name"]: each for each in schema["fields"]}
        for name in value:
            if name not in fields:
                raise unknown_field(name, at, list(fields))
        made = {name: self.of(each, fields[name]["type"], inside(at, name)) for name, each in value.items()}
        for name, field in fields.items():
            if name not in made and "default" not in field:
                raise ValueError(f"field {inside(at, name)!r} ({_name_of(field['type'])}) is missing")
        return made


def name_in_union(schema: Any) -> str:
    """Returns the name of a type, which tells it from the others in a union: fastavro takes it beside the value."""
    kind = schema if isinstance(schema, str) else schema.get("name", schema["type"])
    return str(kind)


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
            made = convert(value)
        except (ValueError, ArithmeticError, msgspec.ValidationError):
            raise misfit(value, _name_of(schema), at) from None
        _check_size(made, schema, at)
        return made
    fits = value in schema["symbols"] if kind == "enum" else isinstance(value, PLAIN.get(kind, (object,)))
    if not fits or (isinstance(value, bool) and kind != "boolean"):
        raise misfit(value, _name_of(schema), at)
    is_beyond = kind in FLOATS_MAX and not -FLOATS_MAX[kind] <= value <= FLOATS_MAX[kind]
    if is_beyond or (kind in BITS and not -(1 << BITS[kind]) <= value < 1 << BITS[kind]):
        raise ValueError(f"{place(at)} is a number that is too large for {kind}")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError("not base64")
    return base64.b64decode(value, validate=True)


def _decimal(value: Any) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("not a number")
    return decimal.Decimal(str(value))


def _check_size(made: Any, schema: Any, at: str) -> None:
    """Checks the size of a decimal or of bytes: fastavro's errors about it do not name the field.

    Raises:
        ValueError: It does not fit into the type.
    """
    if isinstance(made, decimal.Decimal):
        scale, precision = schema.get("scale", 0), schema["precision"]
        _, digits, exponent = made.as_tuple()
        if not isinstance(exponent, int) or -exponent > scale or len(digits) + max(0, exponent + scale) > precision:
            raise ValueError(f"{place(at)} has more digits than a decimal of {precision}, {scale} after the point")
    elif isinstance(made, bytes) and isinstance(schema, dict) and len(made) != schema.get("size", len(made)):
        raise ValueError(f"{place(at)} takes {schema['size']} bytes as base64, not {len(made)}")


def _checked(value: Any, kind: type, schema: Any, at: str) -> Any:
    if not isinstance(value, kind):
        raise misfit(value, _name_of(schema), at)
    return value


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

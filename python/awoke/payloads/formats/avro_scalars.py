"""Writes the values of Avro that are made of no others, each exactly or not at all."""

from __future__ import annotations

import datetime
import decimal
import enum
import operator
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from awoke.errors import EncodeError

Write = Callable[[bytearray, Any], None]
"""Appends a value to the bytes. Raises `Misfit`."""

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
LOCAL_EPOCH = datetime.datetime(1970, 1, 1)
DAY_0 = datetime.date(1970, 1, 1).toordinal()
MICROSECOND = datetime.timedelta(microseconds=1)


class Misfit(EncodeError):
    """A value that its schema can't hold; its text has no part of the value."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = ""
        """The place of the value, from outside."""

    def within(self, place: str) -> Misfit:
        """Returns the error with one more part of its place."""
        self.path = place + self.path
        self.args = (f"{self.problem} - at `${self.path}`",)
        return self


def enum_writer(symbols: Iterable[str]) -> Write:
    """Returns the function that writes enums."""
    places = {}
    for place, symbol in enumerate(symbols):
        data = bytearray()
        write_long(data, place)
        places[symbol] = bytes(data)

    def write(out: bytearray, value: Any) -> None:
        if isinstance(value, enum.Enum):
            value = value.value
        place = places.get(value) if isinstance(value, str) else None
        if place is None:
            raise Misfit("it is not one of the enum's symbols")
        out += place

    return write


def fixed_writer(schema: Mapping[str, Any]) -> Write:
    """Returns the function that writes fixed bytes, also those of a decimal."""
    size = schema["size"]

    def write_fixed(out: bytearray, value: Any) -> None:
        if not isinstance(value, (bytes, bytearray)):
            raise misfit_of("bytes", value)
        if len(value) != size:
            raise Misfit(f"takes {size} bytes, not {len(value)}")
        out += value

    if schema.get("logicalType") != "decimal" or "precision" not in schema:
        return write_fixed
    unscaled = unscaler(schema)

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, decimal.Decimal):
            write_fixed(out, value)
            return
        try:
            out += unscaled(value).to_bytes(size, "big", signed=True)
        except OverflowError:
            raise Misfit(f"the decimal has more digits than {size} bytes hold") from None

    return write


def scalar_writer(schema: Any) -> Write:
    """Returns the function that writes a type that is neither named nor made of others."""
    kind = kind_of(schema)
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical == "decimal" and kind == "bytes" and "precision" in schema:
        return decimal_writer(schema)
    if logical in LOGICAL and LOGICAL[logical][0] == kind:
        return LOGICAL[logical][1]
    return SCALARS[kind]


def decimal_writer(schema: Mapping[str, Any]) -> Write:
    """Returns the function that writes decimals as bytes."""
    unscaled = unscaler(schema)

    def write(out: bytearray, value: Any) -> None:
        if isinstance(value, decimal.Decimal):
            number = unscaled(value)
            value = number.to_bytes(
                (number.bit_length() if number >= 0 else (~number).bit_length()) // 8 + 1, "big", signed=True
            )
        write_bytes(out, value)

    return write


def unscaler(schema: Mapping[str, Any]) -> Callable[[decimal.Decimal], int]:
    """Returns the function that makes a decimal the integer that Avro writes, exactly."""
    precision, scale = schema["precision"], schema.get("scale", 0)

    def unscaled(value: decimal.Decimal) -> int:
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise Misfit("a decimal that is not a number")
        if value and value.adjusted() + scale >= precision:
            raise Misfit(f"the decimal has more than {precision - scale} digits before its point")
        shift = exponent + scale
        text = "".join(map(str, digits))
        if shift < 0:
            if text[shift:].strip("0"):
                raise Misfit(f"the decimal has more than {scale} digits behind its point")
            text, shift = text[:shift], 0
        if not value:
            return 0
        number: int = int(text or "0") * 10**shift
        return -number if sign else number

    return unscaled


def write_long(out: bytearray, value: Any) -> None:
    """Appends an integer of 64 bits."""
    if type(value) is not int:
        value = integer(value)
    if -64 <= value < 64:
        out.append(value << 1 if value >= 0 else ~(value << 1))
        return
    if not -(1 << 63) <= value < 1 << 63:
        raise Misfit("the integer has more than 64 bits")
    rest = value << 1 if value >= 0 else ~(value << 1)
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)


def write_int(out: bytearray, value: Any) -> None:
    """Appends an integer of 32 bits."""
    value = integer(value)
    if not -(1 << 31) <= value < 1 << 31:
        raise Misfit("the integer has more than 32 bits")
    write_long(out, value)


def integer(value: Any) -> int:
    """Returns an integer, also of an enum or of another library."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, bool):
        raise misfit_of("an integer", value)
    try:
        return operator.index(value)
    except TypeError:
        raise misfit_of("an integer", value) from None


def write_double(out: bytearray, value: Any) -> None:
    """Appends a number of 64 bits; an integer, if none of its digits is lost."""
    if type(value) is not float:
        value = real(value)
    out += pack_double(value)


def write_float(out: bytearray, value: Any) -> None:
    """Appends a number of 32 bits: rounded, as the schema's author has chosen."""
    try:
        out += pack_float(real(value))
    except OverflowError:
        raise Misfit("the number is greater than 32 bits hold") from None


def real(value: Any) -> float:
    """Returns a number with a point, also of an integer that it holds exactly."""
    if isinstance(value, float):
        return value
    try:
        found = float(integer(value))
    except OverflowError:
        found = 0.0
    if found != value:
        raise Misfit("the integer has more digits than a number with a point holds")
    return found


def write_string(out: bytearray, value: Any) -> None:
    """Appends a string."""
    if type(value) is not str:
        if isinstance(value, enum.Enum):
            value = value.value
        if not isinstance(value, str):
            raise misfit_of("a string", value)
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise Misfit("the string has a character that UTF-8 can't write") from None
    write_long(out, len(data))
    out += data


def write_bytes(out: bytearray, value: Any) -> None:
    """Appends bytes."""
    if not isinstance(value, (bytes, bytearray)):
        raise misfit_of("bytes", value)
    write_long(out, len(value))
    out += value


def write_boolean(out: bytearray, value: Any) -> None:
    """Appends a boolean."""
    if value is not True and value is not False:
        raise misfit_of("a boolean", value)
    out.append(value)


def write_null(out: bytearray, value: Any) -> None:
    """Appends nothing."""
    if value is not None:
        raise misfit_of("null", value)


def write_date(out: bytearray, value: Any) -> None:
    """Appends a date; a datetime is more than that."""
    if isinstance(value, datetime.date):
        if isinstance(value, datetime.datetime):
            raise misfit_of("a date", value)
        value = value.toordinal() - DAY_0
    write_int(out, value)


def moment_writer(unit: int, is_local: bool) -> Write:
    """Returns the function that writes datetimes: moments with a time zone, or local times without one."""

    def write(out: bytearray, value: Any) -> None:
        if isinstance(value, datetime.datetime):
            if is_local != (value.tzinfo is None):
                raise Misfit(LOCAL if is_local else NAIVE)
            value = whole((value - (LOCAL_EPOCH if is_local else EPOCH)) // MICROSECOND, unit)
        write_long(out, value)

    return write


def time_writer(unit: int, write_number: Write) -> Write:
    """Returns the function that writes times of a day."""

    def write(out: bytearray, value: Any) -> None:
        if isinstance(value, datetime.time):
            if value.tzinfo is not None:
                raise Misfit("Avro's times have no time zone")
            seconds = value.hour * 3600 + value.minute * 60 + value.second
            value = whole(seconds * 1_000_000 + value.microsecond, unit)
        write_number(out, value)

    return write


def whole(micros: int, unit: int) -> int:
    """Returns microseconds in a unit."""
    found, rest = divmod(micros, unit)
    if rest:
        raise Misfit("the time has microseconds, and the schema holds milliseconds")
    return found


def write_uuid(out: bytearray, value: Any) -> None:
    """Appends a UUID as a string."""
    if isinstance(value, uuid.UUID):
        value = str(value)
    elif isinstance(value, str):
        try:
            uuid.UUID(value)
        except ValueError:
            raise Misfit("the string is not a UUID") from None
    write_string(out, value)


def misfit_of(wanted: str, value: Any) -> Misfit:
    """Returns the error for a value of another type."""
    return Misfit(f"takes {wanted}, not {type(value).__qualname__}")


def kind_of(schema: Any) -> str:
    """Returns the type that a schema names."""
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def unqualified(name: str) -> str:
    """Returns a name without its namespace."""
    return name.rpartition(".")[2]


NAIVE = "a datetime without a time zone is no moment: give it one, or use a schema with a local timestamp"
LOCAL = "a local timestamp has no time zone, and the datetime has one"

pack_double, pack_float = struct.Struct("<d").pack, struct.Struct("<f").pack
SCALARS: dict[str, Write] = {
    "null": write_null,
    "boolean": write_boolean,
    "int": write_int,
    "long": write_long,
    "float": write_float,
    "double": write_double,
    "string": write_string,
    "bytes": write_bytes,
}
LOGICAL: dict[str, tuple[str, Write]] = {
    "date": ("int", write_date),
    "time-millis": ("int", time_writer(1_000, write_int)),
    "time-micros": ("long", time_writer(1, write_long)),
    "timestamp-millis": ("long", moment_writer(1_000, False)),
    "timestamp-micros": ("long", moment_writer(1, False)),
    "local-timestamp-millis": ("long", moment_writer(1_000, True)),
    "local-timestamp-micros": ("long", moment_writer(1, True)),
    "uuid": ("string", write_uuid),
}
"""The logical types that Python has classes for, each with the type below it."""

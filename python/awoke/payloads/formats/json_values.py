"""Values that JSON can't hold, although their types look fine: msgspec and pydantic write them as something else.

A number that is not finite becomes `null`, and an offset from UTC loses its seconds.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from awoke.payloads.formats.class_fields import class_of, fields_of, has_fields, members

PLAIN = (str, int, bytes, bytearray, type(None))
TIMES = (datetime.datetime, datetime.time)
KNOWN = (*PLAIN, *TIMES, datetime.date, datetime.timedelta)
COLLECTIONS = (list, set, frozenset, dict, tuple)
NULL = b"null"
OFFSET = re.compile(rb'[+-]\d\d:\d\d"')
"""The end of a time that is neither in UTC nor without a time zone."""
MINUTE = datetime.timedelta(minutes=1)


class Doubts(NamedTuple):
    """What may be in values of a class that JSON can't hold."""

    nulls: tuple[bytes, ...] = (NULL,)
    """Parts of JSON of which one is there if a number is not finite. They may be there without one, too."""
    has_times: bool = True
    has_derived: bool = False
    """True if a class within it has derived classes, whose fields would be written and not read."""


def unwritable(value: Any, numbers: tuple[type, ...] = (float,)) -> str | None:
    """Returns what JSON can't hold in a value, in words; None if it can be written.

    `numbers` are the classes whose values must be finite.
    """
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, PLAIN):
            continue
        if isinstance(part, (float, decimal.Decimal)):
            is_finite = part.is_finite() if isinstance(part, decimal.Decimal) else math.isfinite(part)
            if not is_finite and isinstance(part, numbers):
                return "JSON has no number that is not finite (NaN, infinity)"
        elif isinstance(part, TIMES):
            if has_odd_offset(part):
                return "JSON holds offsets from UTC in minutes, and that of a time has seconds"
        elif isinstance(part, Mapping):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, (list, tuple, set, frozenset)):
            waiting += part
        elif has_fields(kind := type(part)):
            waiting += [getattr(part, field.attribute, None) for field in fields_of(typing.cast(Any, kind))]
    return None


def has_odd_offset(value: datetime.datetime | datetime.time) -> bool:
    """Tells whether the offset of a time from UTC is not in minutes."""
    offset = value.utcoffset()
    return offset is not None and bool(offset % MINUTE)


def doubts_about(kind: Any) -> Doubts:
    """Returns what may be in values of a class with fields that JSON can't hold."""
    try:
        parts = list(_parts(kind))
    except (TypeError, NameError):  # The type of a field is not defined, or can't be looked through.
        return Doubts()
    nulls = {
        b'"%s":null' % name.encode() if member is float and name and not _is_array(owner) else NULL
        for owner, name, member in parts
        if member is float or not _is_known(member)
    }
    has_times = any(member in TIMES or not _is_known(member) for _, _, member in parts)
    has_derived = any(has_fields(member) and class_of(member).__subclasses__() for _, _, member in parts)
    return Doubts((NULL,) if NULL in nulls else tuple(nulls), has_times, has_derived)


def _parts(kind: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yields the types in a class: the class of each, the name of its field ("" within a collection), and the type."""
    seen, waiting = set[Any](), [kind]
    while waiting:
        owner = waiting.pop()
        if owner in seen:
            continue
        seen.add(owner)
        hints = [(field.name, field.hint) for field in fields_of(owner)]
        while hints:
            name, hint = hints.pop()
            for member in members(hint):
                if get_origin(member) in COLLECTIONS:
                    hints += [("", each) for each in get_args(member) if each is not ...]
                    continue
                yield owner, name, member
                if has_fields(member):
                    waiting.append(member)


def _is_known(member: Any) -> bool:
    """Tells whether a type that is no collection holds no float, as far as its own values go."""
    return has_fields(member) or (isinstance(member, type) and (issubclass(member, KNOWN) or member is float))


def _is_array(kind: Any) -> bool:
    settings = getattr(class_of(kind), "__struct_config__", None)
    return isinstance(settings, msgspec.structs.StructConfig) and settings.array_like

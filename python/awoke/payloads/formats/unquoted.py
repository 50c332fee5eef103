"""Errors of decoders without the value: they are logged, and are in the headers of dead letters.

Most texts of msgspec have no part of the value. Those about enums, literals and tags have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import msgspec.inspect as described

QUOTING = (described.EnumType, described.LiteralType)
WORDS = re.compile(r"(Invalid (?:enum )?value |Object contains unknown field )")
PLACE = re.compile(r" - at (?:`key` in )?`\$[\w.\[\]]*`$")
FIELD = re.compile(r"Object contains unknown field `([A-Za-z_]\w*)`(?: - at `|$)")


def unquoting(decode: Callable[[Any], Any], value_type: Any) -> Callable[[Any], Any]:
    """Returns a decoder of msgspec's whose errors have no part of the value.

    It is the same one where the texts for this type have none: it costs nothing then.
    """
    if not may_quote(value_type):
        return decode

    def decode_unquoted(data: Any) -> Any:
        try:
            return decode(data)
        except msgspec.ValidationError as error:
            found = msgspec.ValidationError(without_value(str(error)))
        raise found  # Outside of the block: the error that has the value is not kept.

    return decode_unquoted


def without_value(text: str) -> str:
    """Returns the text of an error of msgspec's without the value; the place of the value stays.

    The name of an unknown field stays if it looks like one.
    """
    begin = WORDS.match(text)
    if begin is None:
        return text
    found = PLACE.search(text)
    place = found[0] if found else ""
    if begin[0].startswith("Object"):
        field = FIELD.match(text)
        return f"Object contains unknown field `{field[1]}`{place}" if field else f"Object has unknown fields{place}"
    return begin[0].strip() + place


def may_quote(value_type: Any) -> bool:
    """Tells whether msgspec's texts about this type may have a part of the value."""
    try:
        info = msgspec.inspect.type_info(value_type)
    except Exception:  # A type that msgspec can't describe: its decoder says so, or takes it all the same.
        return True
    return any(map(_is_quoted, _nodes(info)))


def _is_quoted(node: Any) -> bool:
    if isinstance(node, described.StructType):
        return node.tag is not None or node.forbid_unknown_fields
    return isinstance(node, QUOTING)


def _nodes(info: Any) -> Iterator[Any]:
    """Yields the parts of a type."""
    seen: set[int] = set()
    waiting = [info]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        for name in node.__struct_fields__:
            part = getattr(node, name)
            parts = part if isinstance(part, tuple) else (part,)
            waiting += [each for each in parts if isinstance(each, described.Type | described.Field)]

"""The members of Protocols, to compare with the classes that stand for them."""

from __future__ import annotations

from typing import Any


def parts_of(protocol: type[Any]) -> set[str]:
    """Returns the names of the members that a protocol and its bases declare."""
    declaring = [each for each in protocol.__mro__ if getattr(each, "_is_protocol", False)]
    return {name for each in declaring for name in vars(each) if not name.startswith("_")}


def missing_parts(protocol: type[Any], found: object) -> set[str]:
    """Returns the members of a protocol that an object or a class lacks. No property is read."""
    return parts_of(protocol) - set(dir(found))

"""Finds the message that a method takes, among those of a Protobuf schema."""

from __future__ import annotations

import re
from collections.abc import Mapping

from awoke.payloads.formats.protobuf_schemas import Indexes

PARAMETER = re.compile(r"\(\s*\w+\s*:\s*([\w.]+)")
"""The annotation of the first parameter in a signature."""


def chosen(places: Mapping[Indexes, str], signature: str) -> tuple[Indexes, str]:
    """Returns place and name of the message that a method takes: the only one, or the one that its signature names.

    Raises:
        ValueError: The schema has several, and the signature names none of them.
    """
    found = PARAMETER.search(signature)
    named = found[1].rpartition(".")[2] if found is not None else ""
    fitting = [each for each in places.items() if len(places) == 1 or each[1].rpartition(".")[2] == named]
    if len(fitting) != 1:
        text = f"it has the messages {', '.join(places.values())}, and the method's signature does not name one of them"
        raise ValueError(f"{text}: call the method in Python")
    return fitting[0]

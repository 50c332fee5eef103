"""The schemas of a document: each once, under the name of its type."""

from __future__ import annotations

from typing import Any

import msgspec

from awoke.operate.asyncapi.document import Components
from awoke.payloads.formats import BY_TYPE, Format


class Line(msgspec.Struct):
    sku: str


class Order(msgspec.Struct):
    lines: list[Line]


def other_line() -> Any:
    class Line(msgspec.Struct):
        number: int

    return Line


def test_types_are_shared_and_refer_to_one_another() -> None:
    components = Components(BY_TYPE)
    assert components.of_type(Order) == components.of_type(Order) == {"$ref": "#/components/schemas/Order"}
    assert components.schemas["Order"]["properties"]["lines"]["items"] == {"$ref": "#/components/schemas/Line"}
    assert set(components.schemas) == {"Order", "Line"}


def test_two_types_of_one_name_have_schemas_of_their_own() -> None:
    components = Components(BY_TYPE)
    for kind in (Line, other_line(), Line):
        components.of_type(kind)
    found = {name: list(each["properties"]) for name, each in components.schemas.items()}
    assert found == {"Line": ["sku"], "Line_2": ["number"]}


def test_a_plain_type_is_written_where_it_is_used() -> None:
    components = Components(BY_TYPE)
    assert components.of_type(int) == {"type": "integer"}
    assert components.of_type(list[str])["items"] == {"type": "string"}
    assert components.schemas == {}


class Foreign(Format):
    """A format of the user's."""


def test_a_format_of_the_users_leaves_the_content_type_open() -> None:
    message = Components(Foreign()).message("Line", Line)
    assert "contentType" not in message
    assert message["payload"] == {"$ref": "#/components/schemas/Line"}

"""The part that all formats of a registry share."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.payloads.formats.registry_formats import RegistryFormat, check_kind
from awoke.payloads.registry import RegisteredSchema, Schema, topic_name
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas, Wanted
from tests.support.known_schemas import KnownSchemas

VALUES: tuple[str, Part] = ("orders", "value")


class Counting(RegistryFormat):
    """Text, and the schemas and classes for which something was made."""

    def __init__(self) -> None:
        super().__init__(str, topic_name, "prefix")
        self.made: list[object] = []

    def reader(self, registered: RegisteredSchema, schemas: Schemas) -> Any:
        self.made.append(registered.id)
        return lambda payload: (registered.schema.text, payload.decode())

    def writer(self, value: Any, topic: str, part: Part, schemas: Schemas) -> Any:
        self.made.append(type(value))
        registered = schemas.for_writing("orders-value", None)
        return lambda value: (self.framing(registered, part)[0] + str(value).encode(), ())


def test_a_reader_is_made_once_for_each_schema_and_a_writer_for_each_class() -> None:
    form, schemas = Counting(), KnownSchemas(Schema("one"), Schema("two"))
    decode: Any = form.decoder(*VALUES, schemas)
    encode = form.encoder(*VALUES, schemas)
    assert [decode(b"\0\0\0\0" + each, []) for each in (b"\1a", b"\2b", b"\1c")] == [
        ("one", "a"),
        ("two", "b"),
        ("one", "c"),
    ]
    assert [encode(each)[0][5:] for each in (1, "x", 2)] == [b"1", b"x", b"2"]
    assert form.made == [1, 2, int, str]


def test_other_headers_change_nothing() -> None:
    decode: Any = Counting().decoder(*VALUES, KnownSchemas(Schema("one")))
    assert decode(b"\0\0\0\0\1a", [("__key_schema_id", b"\1"), ("trace", None)]) == ("one", "a")


def test_a_schema_is_of_the_right_kind() -> None:
    check_kind(RegisteredSchema(Schema("one"), 1), "AVRO")
    with pytest.raises(ValueError, match="schema 1 of the registry is AVRO, not JSON"):
        check_kind(RegisteredSchema(Schema("one"), 1), "JSON")


def test_a_format_that_is_in_use_requires_the_registry() -> None:
    schemas = KnownSchemas()
    assert not schemas.is_required
    Counting().encoder(*VALUES, schemas)
    assert schemas.is_required


def test_uses_of_what_is_kept_are_hits() -> None:
    form, schemas = Counting(), KnownSchemas(Schema("one"))
    decode: Any = form.decoder(*VALUES, schemas)
    encode = form.encoder(*VALUES, schemas)
    for _ in range(3):
        decode(b"\0\0\0\0\1a", [])
        encode("x")
    assert schemas.counts.hits == 4


class Expecting(Counting):
    """Knows its schema before a value."""

    def expected(self, topic: str, part: Part) -> Any:
        return (Wanted(f"{topic}-{part}", Schema("own")),)


def test_what_is_expected_is_loaded_ahead_and_can_be_asked_for() -> None:
    asked = list[Wanted]()

    class Asked(KnownSchemas):
        def expect(self, *wanted: Any) -> None:
            asked.append(Wanted(*wanted))

        def for_writing(self, *wanted: Any) -> Any:
            raise SchemaNeeded("not yet", lambda: None)

    Expecting().encoder(*VALUES, Asked())
    assert asked == [Wanted("orders-value", Schema("own"))]
    with pytest.raises(SchemaNeeded):
        Expecting().check_loaded(*VALUES, Asked())
    Expecting().check_loaded(*VALUES, KnownSchemas())
    Counting().check_loaded(*VALUES, Asked())

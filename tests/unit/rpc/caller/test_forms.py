"""Bodies of a caller's requests, and readers of results: JSON unless a call names a format."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.rpc.caller.forms import KEPT_MAX, CallerForms
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Line


class Order(msgspec.Struct):
    id: int


ORDERS = awoke.avro(Order)


@pytest.fixture
def forms() -> CallerForms:
    return CallerForms("shop", KnownSchemas())


def test_arguments_are_json_unless_a_format_is_named(forms: CallerForms) -> None:
    assert forms.body("price", (1, "a"), {}, None) == b'[1,"a"]'
    assert forms.body("price", (), {"order": Order(7)}, None) == b'{"order":{"id":7}}'
    assert forms.body("price", (Order(7),), {}, ORDERS) == b"\0\0\0\0\1\x0e"
    assert forms.body("price", (), {"order": Order(7)}, ORDERS) == b"\0\0\0\0\1\x0e"


def test_a_message_of_protobuf_writes_itself(forms: CallerForms) -> None:
    assert forms.body("price", (Line(sku="a"),), {}, None) == b"\n\x01a"
    assert forms.body("price", (), {"line": Line(sku="a")}, Line) == b"\n\x01a"
    with pytest.raises(awoke.EncodeError, match="JSON"):
        forms.body("price", (Line(), 1), {}, None)


def test_a_call_with_a_format_has_one_argument(forms: CallerForms) -> None:
    for args, kwargs in (((), {}), ((1, 2), {}), ((1,), {"order": 2}), ((), {"a": 1, "b": 2})):
        with pytest.raises(TypeError, match=f"exactly one argument, {len(args) + len(kwargs)} were given"):
            forms.body("price", args, kwargs, ORDERS)
    with pytest.raises(awoke.ConfigError, match=r"argument=.* is no format"):
        forms.body("price", (1,), {}, Order)


def test_results_are_json_unless_a_format_is_named(forms: CallerForms) -> None:
    assert forms.reader("price", Order)(b'{"id":7}') == Order(7)
    for returns in (awoke.msgpack(Order), Annotated[Order, awoke.msgpack(Order)]):
        assert forms.reader("price", returns)(b"\x81\xa2id\x07") == Order(7)
    assert forms.reader("price", Line)(b"\n\x01a") == Line(sku="a")
    with pytest.raises(awoke.ConfigError, match="returns="):
        forms.reader("price", complex)


def test_each_method_has_a_subject_of_its_own() -> None:
    schemas = KnownSchemas()
    forms = CallerForms("shop", schemas)
    for method in ("price", "price", "quote"):
        forms.body(method, (Order(7),), {}, ORDERS)
    assert schemas.subjects == ["shop.rpc.calls.price-value", "shop.rpc.calls.quote-value"], "the writer is kept"


def test_formats_that_are_made_for_each_call_do_not_pile_up() -> None:
    schemas = KnownSchemas()
    forms, before = CallerForms("shop", schemas), len(schemas._kept)
    for _ in range(2 * KEPT_MAX):
        forms.body("price", (Order(7),), {}, awoke.avro(Order))
    assert len(schemas._kept) - before <= KEPT_MAX + 1


class Missing(KnownSchemas):
    """A schema is missing until it was loaded."""

    loaded = 0

    def for_writing(self, *wanted: Any) -> Any:
        if not self.loaded:
            raise SchemaNeeded("not yet", self.load)
        return super().for_writing(*wanted)

    def load(self) -> None:
        self.loaded += 1


def test_a_schema_that_is_missing_is_loaded_on_a_thread_and_not_on_a_loop() -> None:
    schemas = Missing()
    forms = CallerForms("shop", schemas)

    async def on_loop() -> None:
        with pytest.raises(SchemaNeeded):
            forms.body("price", (Order(7),), {}, ORDERS)

    asyncio.run(on_loop())
    assert schemas.loaded == 0
    assert forms.body("price", (Order(7),), {}, ORDERS) == b"\0\0\0\0\1\x0e"
    assert schemas.loaded == 1


def test_only_a_client_of_its_own_is_closed() -> None:
    closed: list[str] = []

    class Closing(Schemas):
        def close(self, timeout_s: float | None = None) -> None:
            closed.append("closed")

    schemas = Closing(lambda: None)  # type: ignore[arg-type, return-value]
    CallerForms("shop", schemas).close()
    assert closed == []
    CallerForms("shop", schemas, is_own=True).close()
    assert closed == ["closed"]

"""Forms of arguments and results: where they are said, what they read and write, and their errors."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import awoke
from awoke.payloads.formats import Payload
from awoke.payloads.registry import RegistryUnavailable, Schema, SchemaNotFound
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.rpc import forms
from awoke.rpc.forms import MAGIC, closed, opened
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Amount, Line

TOPIC = forms.argument_topic("shop", "price")


class Order(msgspec.Struct):
    id: int


ORDERS = awoke.msgpack(Order)


class Failing(awoke.Format):
    """Fails with this error, to read and to write."""

    value_type = Order

    def __init__(self, error: Exception) -> None:
        self._error = error

    def decoder(self, topic: str, part: Any, schemas: Schemas) -> Any:
        return self._fail

    encoder = decoder

    def _fail(self, _: object) -> Any:
        raise self._error


@pytest.mark.parametrize(
    ("hint", "form"),
    [
        (Annotated[Order, ORDERS], ORDERS),
        (Annotated[Order, "words", ORDERS], ORDERS),
        (Annotated[Line, "words"], Line),
        (Line, Line),
        (Line | None, Line | None),
        (Line | Amount, None),
        (Annotated[Order, "words"], None),
        (Order, None),
        (list[Line], None),
        (Any, None),
    ],
)
def test_an_annotation_names_a_form(hint: Any, form: Any) -> None:
    assert forms.form_in(hint) == form


def test_a_form_is_that_of_the_only_parameter() -> None:
    assert forms.only_form({"order": Line}) is Line
    assert forms.only_form({"order": Order, "number": int}) is None
    assert forms.only_form({}) is None
    with pytest.raises(TypeError, match=r"'order' is in a format \(MessagePack\): it must be the only parameter"):
        forms.only_form({"number": int, "order": Annotated[Order, ORDERS]})


def test_an_option_is_a_form() -> None:
    assert [forms.checked(each, "argument") for each in (None, Line, ORDERS)] == [None, Line, ORDERS]
    for wrong in (Order, list[Line], "avro"):
        with pytest.raises(awoke.ConfigError, match=r"argument=.* is no format"):
            forms.checked(wrong, "argument")


def test_people_see_annotations_without_forms() -> None:
    formed = Annotated[Order, ORDERS]
    found = [forms.plain(each) for each in (formed, Iterator[formed], AsyncIterator[formed], Iterator[Order], Line)]
    assert found == [Order, Iterator[Order], AsyncIterator[Order], Iterator[Order], Line]
    assert [forms.name_of(each) for each in (None, Line, ORDERS)] == [None, "Protobuf", "MessagePack"]
    assert forms.plain(Annotated[Order, "words"]) == Annotated[Order, "words"]


def test_each_method_has_topics_of_its_own() -> None:
    assert forms.argument_topic("shop", "price") == "shop.rpc.calls.price"
    assert forms.result_topic("shop", "price") == "shop.rpc.replies.price"


KEYS: Any = {"keys": {"a": b"k" * 32}, "current": "a"}


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (ORDERS, Order(7)),
        (Line, Line(sku="a")),
        (Line, Line()),
        (Line | None, None),
        (awoke.avro(Order), Order(7)),
        (awoke.avro(Order, wire="header"), Order(7)),
        (awoke.avro(Order | None), None),
        (awoke.encrypted(Order, **KEYS), Order(7)),
        (awoke.encrypted(awoke.avro(Order, wire="header"), **KEYS), Order(7)),
        (awoke.msgpack(), {"any": 1}),
        (awoke.msgpack(), None),
    ],
)
def test_a_value_is_read_as_it_was_written(form: Any, value: Any) -> None:
    schemas = KnownSchemas()
    body = forms.writer(form, TOPIC, schemas)(value)
    assert forms.reader(form, TOPIC, schemas)(body) == value


@pytest.mark.parametrize(
    ("form", "value", "words"),
    [
        (ORDERS, None, "None is no MessagePack here"),
        (Line, None, "None is no Protobuf here"),
        (Line, Amount(), "is no Line"),
        (awoke.avro(Order), 7, "takes a record 'Order', not int"),
    ],
)
def test_a_value_that_does_not_fit_is_not_written(form: Any, value: Any, words: str) -> None:
    with pytest.raises(awoke.EncodeError, match=words):
        forms.writer(form, TOPIC, KnownSchemas())(value)


@pytest.mark.parametrize(
    ("form", "body", "words"),
    [
        (ORDERS, b"\xffrpc", "it can't be read as MessagePack: a tombstone"),
        (ORDERS, b"\xffrpc\0\1", "it can't be read as MessagePack: the body ends within its headers"),
        (ORDERS, b'{"id": 7}', "it can't be read as MessagePack: "),
        (Line, b"\x0a\xff", "it can't be read as Protobuf: "),
        (awoke.avro(Order), b"7", "it can't be read as Avro: the bytes begin with 37"),
        (Failing(KeyError("secret")), b"", "it can't be read as Failing: KeyError$"),
        (Failing(SchemaNotFound("no schema 7")), b"", "it can't be read as Failing: no schema 7"),
    ],
)
def test_a_body_that_can_not_be_read_says_why(form: Any, body: bytes, words: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=words) as caught:
        forms.reader(form, TOPIC, KnownSchemas())(body)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize(
    "error", [SchemaNeeded("not yet", lambda: None), RegistryUnavailable("away"), awoke.ConfigError("none", "url")]
)
def test_what_is_no_fault_of_the_body_is_raised_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)):
        forms.reader(Failing(error), TOPIC, KnownSchemas())(b"")


FORMS = [ORDERS, Line, awoke.json_schema(Order), awoke.protobuf(Line), awoke.encrypted(Order, **KEYS)]


@pytest.mark.parametrize("form", [*FORMS, awoke.cloudevents(Order)])
@given(body=st.binary(max_size=64), begin=st.sampled_from([b"", MAGIC, MAGIC + b"\0\1\0\0\0\1", b"\0\0\0\0\1"]))
def test_any_bytes_are_read_or_refused(form: Any, body: bytes, begin: bytes) -> None:
    with contextlib.suppress(msgspec.ValidationError, SchemaNeeded):
        forms.reader(form, TOPIC, KnownSchemas(Schema("{}", "JSON")))(begin + body)


@pytest.mark.parametrize(
    ("encoded", "body"),
    [
        ((b"data", ()), b"data"),
        ((b"", ()), b""),
        (None, b"\xffrpc"),
        ((b"d", (("h", b"12"),)), b"\xffrpc\0\1\0\0\0\1h\0\0\0\00212d"),
        ((b"", (("h", b""), ("i", b"\0"))), b"\xffrpc\0\2\0\0\0\1h\0\0\0\0\0\0\0\1i\0\0\0\1\0"),
        ((MAGIC, ()), b"\xffrpc\0\0\xffrpc"),
        ((MAGIC + b"more", ()), b"\xffrpc\0\0\xffrpcmore"),
    ],
)
def test_a_body_is_opened_as_it_was_closed(encoded: Payload | None, body: bytes) -> None:
    assert closed(encoded) == body
    data, headers = opened(body)
    assert (data, tuple(headers)) == ((None, ()) if encoded is None else tuple(encoded))


@pytest.mark.parametrize("end", range(len(MAGIC) + 1, 18))
def test_a_body_that_ends_within_its_headers_is_refused(end: int) -> None:
    body = closed((b"", (("name", b"va"),)))
    assert len(body) == 20
    with pytest.raises(ValueError, match="ends within its headers"):
        opened(body[:end])


def test_a_count_or_a_length_that_is_too_large_is_refused() -> None:
    for wrong in (b"\xff\xff", b"\0\1\xff\xff\xff\xffab"):
        with pytest.raises(ValueError, match="ends within its headers"):
            opened(MAGIC + wrong)


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        opened(MAGIC + b"\0\1\0\0\0\1\xff\0\0\0\0")

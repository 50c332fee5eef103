"""Where an argument comes from, by the annotation of its parameter."""

from __future__ import annotations

import datetime
import logging
from typing import Annotated, Any, Literal

import pytest

import awoke
from awoke.declare.injection import Assignment, Depends, Header, Key, Service, Value
from awoke.declare.injection.markers import IsKey, IsValue
from awoke.declare.injection.sources import (
    MISSING,
    OfApp,
    OfFunction,
    PerAssignment,
    PerCall,
    header_reader,
    is_taken,
    received_by,
    source_of,
)
from tests.unit.declare.injection.fakes import FakeMessage, app


class Order: ...


class Custom: ...


def of(annotation: Any, default: Any = MISSING) -> Any:
    return source_of(annotation, default, "shop.handle")


def read(annotation: Any, *values: bytes | None, default: Any = MISSING) -> Any:
    """Returns the header `it` of a message with these values of it."""
    source = of(Annotated[annotation, Header("it")], default)
    return source.get(FakeMessage(headers=[("other", b"no"), *(("it", each) for each in values), ("more", b"no")]))


@pytest.mark.parametrize(
    ("annotation", "is_of_message", "types"),
    [
        (awoke.Message, True, (None, None)),
        (awoke.Message[Order], True, (Order, None)),
        (awoke.Message[Order, int], True, (Order, int)),
        (awoke.Batch, False, (None, None)),
        (awoke.Batch[Order, int], False, (Order, int)),
        (Annotated[awoke.Message[Order], "checked"], True, (Order, None)),
    ],
)
def test_the_message_and_the_batch_say_the_types_of_the_route(
    annotation: Any, is_of_message: bool, types: tuple[Any, Any]
) -> None:
    source = of(annotation)
    assert (source.is_received, source.is_of_message) == (True, is_of_message)
    assert (source.value_type, source.key_type) == types
    received = object()
    assert source.get(received) is received


def test_the_value_and_the_key_are_those_of_the_message() -> None:
    value, key = of(Value[Order]), of(Key[int])
    assert (value.get(FakeMessage(b"v")), key.get(FakeMessage())) == (b"v", b"key")
    assert (value.value_type, value.key_type) == (Order, None)
    assert (key.value_type, key.key_type) == (None, int)
    assert not value.is_received


def test_a_mark_may_be_written_without_its_parentheses() -> None:
    assert of(Annotated[Order, IsValue]).value_type is Order
    assert of(Annotated[int, IsKey]).key_type is int


@pytest.mark.parametrize(
    ("annotation", "raw", "value"),
    [
        (str, b"acme", "acme"),
        (str, "Zürich".encode(), "Zürich"),
        (str, b"", ""),
        (bytes, b"\xff\x00", b"\xff\x00"),
        (bytes | None, b"\xff", b"\xff"),
        (int, b"42", 42),
        (int | None, b"42", 42),
        (float, b"1.5", 1.5),
        (bool, b"true", True),
        (Literal["a", "b"], b"b", "b"),
        (datetime.date, b"2026-01-31", datetime.date(2026, 1, 31)),
        (Any, b"acme", "acme"),
    ],
)
def test_a_header_is_read_as_the_type_of_its_parameter(annotation: Any, raw: bytes, value: Any) -> None:
    assert read(annotation, raw) == value


def test_of_several_headers_of_a_name_the_last_one_counts() -> None:
    assert read(str, b"first", b"last") == "last"
    assert read(str | None, b"first", None) is None


@pytest.mark.parametrize("values", [(), (None,)], ids=["missing", "null"])
def test_without_a_header_its_parameter_gets_the_default_or_none(values: tuple[None, ...]) -> None:
    assert read(str, *values, default="none") == "none"
    assert read(int, *values, default=7) == 7
    assert read(str | None, *values) is None
    assert read(str | None, *values, default="none") == "none"
    assert read(str, *values, default=None) is None
    with pytest.raises(awoke.DecodeError, match=r"orders\[0\]@7: header 'it' is missing") as failed:
        read(str, *values)
    assert (failed.value.topic, failed.value.partition, failed.value.offset) == ("orders", 0, 7)


@pytest.mark.parametrize(("annotation", "raw"), [(int, b"4 2"), (str, b"\xff"), (Literal["a"], b"b"), (int, b"")])
def test_a_header_that_does_not_decode_fails_the_message_and_is_not_shown(annotation: Any, raw: bytes) -> None:
    with pytest.raises(awoke.DecodeError, match=r"orders\[0\]@7: header 'it' can't be read as") as failed:
        read(annotation, raw, default=annotation)
    assert str(failed.value).endswith(getattr(annotation, "__qualname__", str(annotation)))
    assert failed.value.__suppress_context__, "the cause would show it"


@pytest.mark.parametrize("kind", [Custom, Custom | None])
def test_a_header_of_a_class_that_text_can_not_be_read_as_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="header 'it' can't be read as"):
        header_reader("it", kind, MISSING)


@pytest.mark.parametrize("kind", [awoke.Producer, awoke.App])
def test_the_app_gives_what_it_has(kind: Any) -> None:
    shop = app()
    source = of(kind)
    assert source.get(shop) is (shop if kind is awoke.App else shop.producer)
    assert source.scope == "process"


def test_settings_are_there_before_the_processes_and_events_are_not() -> None:
    from awoke.observe.events import Events
    from awoke.settings import Settings

    shop = app()
    settings, events = of(Settings), of(Events)
    assert (settings.get(shop), events.get(shop)) == (shop.settings, shop.events)
    assert (settings.scope, events.scope) == ("app", "process")


def test_a_logger_has_the_name_of_its_function() -> None:
    assert of(logging.Logger).get(app()) == "logger of shop.handle"


def test_a_caller_is_that_of_the_named_service() -> None:
    source = of(Annotated[Any, Service("prices")])
    assert isinstance(source, OfApp)
    assert source.get(app()) == "caller of prices"


def test_the_assignment_and_a_function_have_their_scopes() -> None:
    def session() -> None: ...

    assert of(Assignment) == PerAssignment(scope="assignment")
    depends = Depends(session, scope="process")
    source = of(Annotated[Order, depends])
    assert isinstance(source, OfFunction)
    assert (source.depends, source.scope) == (depends, "process")


@pytest.mark.parametrize("annotation", [int, None, list[int], Order, Any, "text", Annotated[int, "checked"], int | str])
def test_other_annotations_say_no_argument(annotation: Any) -> None:
    assert of(annotation) is None


def test_marks_of_others_are_passed_by() -> None:
    assert (
        of(Annotated[str, "checked", Header("it"), Service("prices")]).get(FakeMessage(headers=[("it", b"x")])) == "x"
    )


@pytest.mark.parametrize(
    ("text", "is_of_message"),
    [("Message[Order]", True), ("awoke.Message[Order, int]", True), ("awoke.Batch[Order]", False), ("Batch[A]", False)],
)
def test_a_text_names_what_is_received_although_its_type_does_not_exist(text: str, is_of_message: bool) -> None:
    source = received_by(text)
    assert isinstance(source, PerCall)
    assert (source.is_received, source.is_of_message, source.value_type) == (True, is_of_message, None)


@pytest.mark.parametrize("text", ["Messages[Order]", "list[Message[Order]]", "awoke.Value[Order]", "Order"])
def test_a_text_of_something_else_names_nothing_that_is_received(text: str) -> None:
    assert received_by(text) is None


def test_a_value_is_of_a_type_or_not() -> None:
    assert is_taken(None, int | None)
    assert not is_taken(None, int)

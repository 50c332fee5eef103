"""Producers without brokers: options that are refused, middleware, classes derived from Producer, codecs."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import awoke
from awoke import _native
from awoke.produce.producer import sends_directly

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"transactional_id": ""}, "transactional_id"),
        ({"kafka": {"transactional.id": "a"}}, "transactional_id"),
        ({"idle_after_s": 0}, "idle_after_s"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(awoke.ConfigError, match=named):
        awoke.Producer(NOWHERE, **options)


def test_an_unknown_option_is_refused() -> None:
    options: Any = {"idle_s": 1}
    with pytest.raises(TypeError, match="'idle_s'"):
        awoke.Producer(NOWHERE, **options)


class Counting(awoke.Producer):
    """A producer of user code."""

    def produce(self, topic: str, value: Any, **options: Any) -> awoke.DeliveryHandle:
        seen.append((topic, value))
        return super().produce(topic, value, **options)


seen: list[tuple[str, Any]] = []


def test_middleware_gets_what_a_derived_class_sends() -> None:
    seen.clear()
    passed: list[awoke.Outgoing] = []

    def note(message: awoke.Outgoing) -> awoke.Outgoing:
        passed.append(message)
        return message

    class Prefixing(Counting):
        def produce(self, topic: str, value: Any, **options: Any) -> awoke.DeliveryHandle:
            return super().produce(topic, b"p" + value, **options)

    producer = Prefixing(NOWHERE, middleware=[note])
    assert type(producer) is Prefixing
    producer.produce("orders", b"a", key="k", headers={"h": "1"}, partition=2, timestamp_ms=7, timeout_s=0)
    producer.produce_many("orders", [b"b", (b"c", "k")])
    assert seen == [("orders", b"pa")], "produce_many is another method"
    assert passed == [
        awoke.Outgoing("orders", b"pa", "k", {"h": "1"}, 2, 7),
        awoke.Outgoing("orders", b"b"),
        awoke.Outgoing("orders", b"c", "k"),
    ]
    assert producer.close(0.01) == 3


def test_a_producer_is_sent_what_its_middleware_returns_or_nothing() -> None:
    results: list[Any] = [None, ValueError("not that one"), awoke.Outgoing("orders", {"a": 1}, b"k")]

    def change(message: awoke.Outgoing) -> Any:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    producer = awoke.Producer(NOWHERE, middleware=[change])
    with pytest.raises(TypeError, match="NoneType"):
        producer.produce("orders", b"a")
    with pytest.raises(ValueError, match="not that one"):
        producer.produce("orders", b"a")
    assert producer.queued()[0] == 0
    producer.produce("nowhere", b"a")
    assert producer.queued() == (1, len(b'{"a":1}') + 1)
    producer.close(0.01)


@pytest.mark.parametrize("name", ["produce", "produce_many"])
def test_the_methods_that_send_are_the_engines_own(name: str) -> None:
    assert getattr(awoke.Producer, name) is getattr(_native.Producer, name)


def test_middleware_that_refers_to_its_producer_is_collected_with_it() -> None:
    class Stamp:
        producer: awoke.Producer

        def __call__(self, message: awoke.Outgoing) -> awoke.Outgoing:
            return message

    stamp = Stamp()
    stamp.producer = awoke.Producer(NOWHERE, middleware=[stamp])
    stamp.producer.close(0.01)
    kept = weakref.ref(stamp)
    del stamp
    gc.collect()
    assert kept() is None


class Refusing(awoke.Format):
    """Encodes nothing."""

    def encode(self, value: Any) -> bytes:
        raise awoke.EncodeError(f"no {type(value).__name__}")


def test_the_default_format_encodes_what_is_neither_bytes_text_nor_none() -> None:
    producer = awoke.Producer(NOWHERE, format=Refusing())
    with pytest.raises(awoke.EncodeError, match="no dict"):
        producer.produce("orders", {"id": 1})
    for value in (b"a", "a", None):
        producer.produce("orders", value)
    assert producer.close(0.01) == 3


def test_a_producer_sends_directly_where_neither_middleware_nor_a_class_stands_before_it() -> None:
    class Own(awoke.Producer):
        """A class of user code."""

    producers = [awoke.Producer(NOWHERE), awoke.Producer(NOWHERE, middleware=[lambda message: message]), Own(NOWHERE)]
    assert [sends_directly(each) for each in [*producers, object()]] == [True, False, False, False]
    for each in producers:
        each.close(0.01)


def test_a_zero_byte_in_the_name_of_a_header_is_refused() -> None:
    """Readers that use librdkafka would see only what is before it."""
    with awoke.Producer("127.0.0.1:1") as producer, pytest.raises(ValueError, match="has a zero byte"):
        producer.produce("orders", b"", headers=[("a\0b", b"v")])

"""Producers without brokers: options that are refused, middleware, classes derived from Producer, codecs."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
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


def test_messages_pass_the_middleware_before_a_derived_class() -> None:
    seen.clear()

    def upper(message: awoke.Outgoing) -> awoke.Outgoing:
        return message._replace(value=message.value.upper())

    producer = Counting(NOWHERE, middleware=[upper])
    assert type(producer) is Counting
    producer.produce("orders", b"a", key="k", timeout_s=0)
    producer.produce_many("orders", [b"b", (b"c", "k")])
    assert seen == [("orders", b"A"), ("orders", b"B"), ("orders", b"C")]
    assert producer.close(0.01) == 3


def test_a_producer_without_middleware_has_the_methods_of_its_class() -> None:
    with awoke.Producer(NOWHERE) as producer:
        assert "produce" not in vars(producer)


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

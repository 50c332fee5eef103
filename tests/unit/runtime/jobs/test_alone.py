"""Records in batches of their own: the producer for them, made on first use."""

from __future__ import annotations

import threading

import pytest

import awoke
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.message import Outgoing
from awoke.payloads.registry.schemas import NO_SCHEMAS
from awoke.payloads.topic_formats import TopicFormats
from awoke.produce.middleware import Middleware
from awoke.runtime.jobs.alone import AloneProducer, is_refused_in_company, properties_of
from awoke.settings import load

NOWHERE = "127.0.0.1:1"


def alone(*middleware: Middleware) -> AloneProducer:
    formats = TopicFormats((), BY_TYPE, NO_SCHEMAS)
    return AloneProducer(load({"bootstrap_servers": NOWHERE}).values, BY_TYPE, awoke.Events(), middleware, formats)


def test_a_batch_holds_one_record_whatever_the_user_has_set() -> None:
    properties = properties_of({"batch.num.messages": "500", "linger.ms": "7"})
    assert (properties["batch.num.messages"], properties["linger.ms"]) == ("1", "7")


@pytest.mark.parametrize("name", ["max.in.flight", "max.in.flight.requests.per.connection"])
def test_one_request_is_under_way_whatever_the_user_has_set(name: str) -> None:
    properties = properties_of({name: "500"})
    assert {key: value for key, value in properties.items() if key.startswith("max.in.flight")} == {
        "max.in.flight": "1"
    }


def test_a_dead_letter_may_be_larger_than_the_messages_of_the_user() -> None:
    assert int(properties_of({"message.max.bytes": "2000"})["message.max.bytes"]) > 2000


def test_threads_that_are_first_at_once_share_one_producer() -> None:
    producer, together = alone(), threading.Barrier(8)

    def produce() -> None:
        together.wait(30)
        producer.produce("dead", b"letter")

    threads = [threading.Thread(target=produce) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert producer.close(0.01) == 8, "the one that is closed has all records"


def test_a_record_passes_the_middleware_of_the_app() -> None:
    passed: list[str] = []

    def note(message: Outgoing) -> Outgoing:
        passed.append(message.topic)
        return message

    producer = alone(note)
    producer.produce("dead", b"letter")
    producer.close(0.01)
    assert passed == ["dead"]


def test_a_producer_that_was_never_used_has_nothing_undelivered() -> None:
    assert alone().close(0.0) == 0


def test_a_closed_producer_is_not_made_again() -> None:
    producer = alone()
    producer.close(0.0)
    with pytest.raises(awoke.ClosedError):
        producer.produce("dead", b"letter")
    assert producer.close(0.0) == 0


@pytest.mark.parametrize(
    ("error", "is_refused"),
    [
        (awoke.DeliveryFailed("too large", 10, "MSG_SIZE_TOO_LARGE"), True),
        (awoke.DeliveryFailed("no offset", 46, "DUPLICATE_SEQUENCE_NUMBER"), True),
        (awoke.DeliveryFailed("no leader", 5, "LEADER_NOT_AVAILABLE"), False),
        (awoke.MessageTooLarge("too large"), False),
        (ValueError("no good"), False),
    ],
)
def test_only_a_record_that_others_were_in_the_way_of_may_succeed_by_itself(
    error: BaseException, is_refused: bool
) -> None:
    assert is_refused_in_company(error) is is_refused

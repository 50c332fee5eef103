"""A producer that rests when it is idle, sends under other settings of topics, and through middleware."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import awoke
from awoke.testing import running
from tests.conftest import native_threads
from tests.contract.test_consume import new_app, send
from tests.support.clusters import Cluster
from tests.support.waiting import Collected, work_for

CreateTopic = Callable[..., str]


def read(cluster: Cluster, topic: str) -> list[awoke.Message[bytes | None]]:
    with awoke.Reader(topic, bootstrap_servers=cluster.bootstrap_servers) as reader:
        return list(reader.read_until_end(30))


def test_an_idle_producer_closes_its_connection_and_opens_it_again(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    tasks_before = native_threads(at_most=0, within_s=0)
    with awoke.Producer(cluster.bootstrap_servers, idle_after_s=0.1) as producer:
        first = producer.produce(name, b"1")
        first.wait(30)
        for value in (b"2", b"3"):
            # Only the thread that gives events out is left.
            assert native_threads(at_most=tasks_before + 1, within_s=10) <= tasks_before + 1
            assert producer.queued() == (0, 0)
            assert producer.flush()
            producer.produce(name, value).wait(30)
        assert first.result().offset == 0
        assert native_threads(at_most=tasks_before + 1, within_s=10) <= tasks_before + 1
    assert [message.value for message in read(cluster, name)] == [b"1", b"2", b"3"]
    with pytest.raises(awoke.ClosedError):
        producer.produce(name, b"4")


def test_a_producer_that_is_used_does_not_rest(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, idle_after_s=0.05) as producer:
        handles = []
        for number in range(60):
            handles.append(producer.produce(name, b"%d" % number))
            work_for(0.01 if number % 10 else 0.12)
        awoke.wait_all(handles, 30)
    assert [message.value for message in read(cluster, name)] == [b"%d" % number for number in range(60)]


def test_wrong_settings_of_its_life_are_refused(cluster: Cluster) -> None:
    with pytest.raises(awoke.ConfigError, match="idle_after_s"):
        awoke.Producer(cluster.bootstrap_servers, idle_after_s=0)


def test_a_variant_sends_under_other_settings_of_topics(cluster: Cluster, topic: CreateTopic) -> None:
    quick, safe = topic("quick"), topic("safe")
    with awoke.Producer(cluster.bootstrap_servers, kafka={"enable.idempotence": False}) as producer:
        careless = producer.variant(acks=0, compression_codec="lz4")
        delivery = careless.produce(quick, b"x" * 500, key="k", headers={"h": "1"}).wait(30)
        assert delivery.offset == -1  # No broker was asked to acknowledge it.
        careless.produce_many(quick, [b"y", (b"z", b"k")])
        assert producer.produce(safe, b"1").wait(30).offset == 0
        with pytest.raises(awoke.ConfigError, match="other settings"):
            producer.produce(quick, b"2")
        with pytest.raises(awoke.ConfigError, match="other settings"):
            careless.produce(safe, b"2")
        with pytest.raises(awoke.ConfigError, match=r"linger\.ms"):
            producer.variant(linger_ms=5)
        with pytest.raises(awoke.ConfigError, match="acks"):
            producer.variant(acks="some")
    assert [message.value for message in read(cluster, quick)] == [b"x" * 500, b"y", b"z"]


def test_messages_go_through_middleware_in_order(cluster: Cluster, topic: CreateTopic) -> None:
    name, other = topic(), topic("other")

    def stamp(message: awoke.Outgoing) -> awoke.Outgoing:
        return message.with_header("stamp", b"1").with_header("key", message.key)

    def encrypt(message: awoke.Outgoing) -> awoke.Outgoing:
        if message.value == b"secret":
            raise PermissionError("not that one")
        return message._replace(topic=other, value=message.value[::-1])

    with awoke.Producer(cluster.bootstrap_servers, middleware=[stamp, encrypt]) as producer:
        producer.produce(name, b"abc", key="k", headers={"own": "h"}).wait(30)
        awoke.wait_all(producer.produce_many(name, [b"def", awoke.Record(b"ghi", partition=0)]), 30)
        with pytest.raises(PermissionError):
            producer.produce(name, b"secret")
        assert isinstance(producer, awoke.Producer)
    seen = read(cluster, other)
    assert [message.value for message in seen] == [b"cba", b"fed", b"ihg"]
    assert seen[0].headers == [("own", b"h"), ("stamp", b"1"), ("key", b"k")]
    assert read(cluster, name) == []


def test_what_an_app_sends_goes_through_its_middleware(cluster: Cluster, topic: CreateTopic) -> None:
    name, output, dead = topic(), topic("out"), topic("dead")
    app, dead_lettered = new_app(cluster), Collected[awoke.Event]()
    app.events.subscribe("message.dead_lettered", dead_lettered.add)

    @app.outgoing
    def stamp(message: awoke.Outgoing) -> awoke.Outgoing:
        return message.with_header("stamp", message.topic)

    @app.on(name, output=output, dead_letter=dead, retry=awoke.Retry(attempts=1))
    def upper(message: awoke.Message[bytes]) -> bytes:
        if message.value == b"bad":
            raise ValueError
        return message.value.upper()

    send(cluster, name, [b"good", b"bad"])
    with running(app):
        dead_lettered.wait_for(1)
    (result,), (letter,) = read(cluster, output), read(cluster, dead)
    assert (result.value, result.headers) == (b"GOOD", [("stamp", output.encode())])
    assert letter.headers[-1] == ("stamp", dead.encode())

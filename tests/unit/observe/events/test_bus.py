"""The subscribers of events: by class, by name or to all, and what they can not disturb."""

from __future__ import annotations

import logging
import threading

import pytest

import awoke
from awoke.observe.events import Event, Events, JobFailed, MessagesExpired, PartitionResumed


def test_a_subscriber_gets_the_events_of_a_class_of_a_name_or_all() -> None:
    events, by_class, by_name, by_star = Events(), list[MessagesExpired](), list[Event](), list[Event]()
    events.subscribe(MessagesExpired, by_class.append)
    events.subscribe("messages.expired", by_name.append)
    events.subscribe("*", by_star.append)
    events.emit(MessagesExpired(topic="orders", count=4))
    events.emit(PartitionResumed(topic="orders", partition=3))
    assert [(event.topic, event.count) for event in by_class] == [("orders", 4)]
    assert [event.fields for event in by_name] == [{"topic": "orders", "count": 4}]
    assert [event.name for event in by_star] == ["messages.expired", "partition.resumed"]


def test_a_subscription_ends() -> None:
    events, heard = Events(), list[Event]()
    events.subscribe("*", heard.append)()
    events.emit("shop.opened")
    assert heard == []


def test_a_subscriber_that_raises_disturbs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    events, heard = Events(), list[Event]()

    def fails(event: Event) -> None:
        raise ZeroDivisionError

    events.subscribe("shop.opened", fails)
    events.subscribe("shop.opened", heard.append)
    events.emit("shop.opened")
    assert [event.name for event in heard] == ["shop.opened"]
    assert "a subscriber of shop.opened failed" in caplog.text


def test_subscribers_may_be_told_of_an_event_that_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    events, heard = Events(), list[Event]()
    events.subscribe("*", heard.append)
    with caplog.at_level(logging.DEBUG):
        events.tell(PartitionResumed(topic="orders", partition=3))
    assert [event.name for event in heard] == ["partition.resumed"]
    assert caplog.records == []


def test_an_async_subscriber_is_refused() -> None:
    async def subscriber(event: Event) -> None: ...

    with pytest.raises(awoke.ConfigError, match="async def"):
        Events().subscribe(JobFailed, subscriber)


def test_a_name_of_awokes_own_events_is_refused() -> None:
    with pytest.raises(awoke.ConfigError, match="JobFailed"):
        Events().emit("job.failed", topic="orders")


def test_a_subscriber_may_subscribe_unsubscribe_and_emit_while_it_is_called() -> None:
    events, heard = Events(), list[str]()

    def once(event: Event) -> None:
        unsubscribe()
        heard.append(event.name)
        events.subscribe("shop.closed", lambda event: heard.append(event.name))
        events.emit("shop.closed")

    unsubscribe = events.subscribe("shop.opened", once)
    events.subscribe("shop.opened", lambda event: heard.append(f"{event.name} again"))
    events.emit("shop.opened")
    assert heard == ["shop.opened", "shop.closed", "shop.opened again"]
    events.emit("shop.opened")
    assert heard[3:] == ["shop.opened again"]


def test_subscribers_run_on_the_thread_that_emits_in_the_order_of_their_subscription() -> None:
    events, heard = Events(), list[tuple[int, int]]()
    events.subscribe("*", lambda event: heard.append((3, threading.get_ident())))
    events.subscribe("shop.opened", lambda event: heard.append((1, threading.get_ident())))
    events.subscribe("shop.opened", lambda event: heard.append((2, threading.get_ident())))
    events.emit("shop.opened")
    assert heard == [(number, threading.get_ident()) for number in (1, 2, 3)]


def test_an_event_is_logged_before_its_subscribers_are_called(caplog: pytest.LogCaptureFixture) -> None:
    events, logged = Events(), list[list[str]]()
    events.subscribe("shop.opened", lambda event: logged.append([record.getMessage() for record in caplog.records]))
    with caplog.at_level(logging.DEBUG, logger="awoke.events"):
        events.emit("shop.opened", customer=7)
    assert logged == [["shop.opened customer=7"]]

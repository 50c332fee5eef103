"""The thread that looks for new topics of patterns."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import awoke
from awoke.admin import TopicInfo, new_topics
from awoke.errors import BrokerUnreachable, UnknownTopic
from awoke.observe.events import TopicRefused
from awoke.runtime.process import topic_watch
from awoke.runtime.process.topic_watch import TopicWatch
from tests.support.waiting import Collected


class FakeAdmin:
    """Brokers with topics that a test changes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.late: list[str] = []
        """Topics that not all brokers know yet."""
        self.error: BaseException | None = None
        self.is_closed = False
        self.asked: Collected[int] = Collected()

    def topics(self) -> list[TopicInfo]:
        self.asked.add(1)
        if self.error is not None:
            raise self.error
        return [TopicInfo(name, []) for name in self.names]

    def find_topic(self, name: str) -> TopicInfo:
        if name not in self.late:
            raise UnknownTopic(name)
        return TopicInfo(name, [])

    def close(self) -> None:
        self.is_closed = True


class Case:
    """An app with a pattern, its watch, and what that has found."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **kafka: Any) -> None:
        self.admin, self.found = FakeAdmin(), Collected[str]()
        monkeypatch.setattr(topic_watch, "Admin", lambda settings: self.admin)
        self.app = awoke.App("app", bootstrap_servers="127.0.0.1:1", kafka=kafka or None)
        self.refused: Collected[awoke.Event] = Collected()
        self.app.events.subscribe(TopicRefused, self.refused.add)
        self.watch = TopicWatch(self.app, self.app.settings, lambda route: self.found.add(route.topic))

    def add_pattern(self, *regexes: str) -> None:
        self.app.on([awoke.pattern(each) for each in regexes])(handle)


def handle(message: awoke.Message[bytes]) -> None: ...


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(monkeypatch)


def test_without_patterns_there_is_no_thread(case: Case) -> None:
    before = threading.active_count()
    case.watch.start()
    assert threading.active_count() == before
    case.watch.close(10)


def test_a_topic_that_this_process_creates_is_found_at_once(case: Case) -> None:
    case.add_pattern("orders.*")
    case.watch.start()
    case.admin.names = ["orders-1", "clicks"]
    new_topics.tell("orders-1")
    assert case.found.wait_for(1) == ["orders-1"]
    case.watch.close(10)
    case.watch.close(10)
    assert case.admin.is_closed


def test_a_topic_that_not_all_brokers_know_yet_is_waited_for(case: Case) -> None:
    case.add_pattern("orders.*")
    case.watch.start()
    case.admin.late = ["orders-2"]
    new_topics.tell("orders-1")
    new_topics.tell("orders-2")
    assert case.found.wait_for(1) == ["orders-2"]
    case.watch.close(10)


def test_others_are_found_when_the_interval_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch, **{"topic.metadata.refresh.interval.ms": 10})
    case.add_pattern("orders.*")
    case.watch.start()
    case.admin.asked.wait_for(2)
    case.admin.names = ["orders-1"]
    assert case.found.wait_for(1) == ["orders-1"]
    case.watch.close(10)


def test_brokers_that_are_away_end_nothing(case: Case) -> None:
    case.add_pattern("orders.*")
    case.watch.start()
    case.admin.names, case.admin.error = ["orders-1"], BrokerUnreachable("away", -195, "_TRANSPORT", True)
    new_topics.tell("orders-1")
    case.admin.asked.wait_for(1)
    case.admin.error = None
    new_topics.tell("orders-1")
    assert case.found.wait_for(1) == ["orders-1"]
    case.watch.close(10)


def test_a_topic_of_two_patterns_is_told_once(case: Case) -> None:
    case.add_pattern("orders.*", ".*-1")
    case.watch.start()
    case.admin.names = ["orders-1"]
    for count in (1, 2):
        new_topics.tell("orders-1")
        case.admin.asked.wait_for(count)
    case.watch.close(10)
    assert len(case.refused.items) == 1
    assert case.found.items == []


def test_a_route_that_can_not_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch)
    case.add_pattern("orders.*")

    def fail(route: object) -> None:
        raise OSError("no caller")

    case.watch = TopicWatch(case.app, case.app.settings, fail)
    case.watch.start()
    case.admin.names = ["orders-1"]
    new_topics.tell("orders-1")
    (event,) = case.refused.wait_for(1)
    case.watch.close(10)
    assert str(event.fields["error"]) == "no caller"


def test_a_route_that_fails_because_the_app_stops_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch)
    case.add_pattern("orders.*")
    begun, go_on = threading.Event(), threading.Event()

    def fail(route: object) -> None:
        begun.set()
        go_on.wait(30)
        raise awoke.ClosedError("the member is closed")

    case.watch = TopicWatch(case.app, case.app.settings, fail)
    case.watch.start()
    case.admin.names = ["orders-1"]
    new_topics.tell("orders-1")
    assert begun.wait(30)
    case.watch.close(0)
    go_on.set()
    case.watch.close(10)
    assert case.refused.items == []

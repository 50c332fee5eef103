"""A process that waits for its group says so once; its name in the group, and its end when another has that name."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import awoke
from awoke.observe.events import ClientError, GroupWaiting, PartitionsAssigned
from awoke.runtime.process import joining as module
from awoke.runtime.process.joining import FENCED_INSTANCE_ID, JoinWatch, fatal_error, instance_properties, is_name_taken
from awoke.settings import Settings
from tests.support.waiting import Collected

ASSIGNED = PartitionsAssigned(client="shop", partitions=[("orders", 0)])
LONG_S = 600.0


class Case:
    """A watch, and what it reports."""

    def __init__(self, **settings: Any) -> None:
        self.events, self.reported = awoke.Events(), Collected[GroupWaiting]()
        self.events.subscribe(GroupWaiting, self.reported.add)
        self.watch = JoinWatch(self.events, "shop", Settings(**settings))

    def reported_text(self) -> str:
        with contextlib.closing(self.watch) as watch:
            watch.start()
            (event,) = self.reported.wait_for(1)
        assert event.group == "shop"
        return event.text


@pytest.fixture
def is_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JOIN_WARNING_S", 0.0)


@pytest.mark.parametrize(
    ("settings", "found", "not_found"),
    [
        ({}, ["session.timeout.ms, 45 s", "With the setting instance_id"], []),
        ({"kafka": {"session.timeout.ms": "6000"}}, ["session.timeout.ms, 6 s"], []),
        ({"instance_id": "one"}, ["session.timeout.ms"], ["With the setting instance_id"]),
        ({"kafka": {"group.protocol": "consumer"}}, ["the brokers' session timeout"], ["instance_id"]),
    ],
)
def test_a_process_that_waits_says_how_long_that_may_last(
    is_impatient: None, settings: dict[str, Any], found: list[str], not_found: list[str]
) -> None:
    text = Case(**settings).reported_text()
    assert [words for words in found if words not in text] == []
    assert [words for words in not_found if words in text] == []


def test_a_process_that_has_its_partitions_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JOIN_WARNING_S", LONG_S)
    case = Case()
    case.watch.start()
    case.events.emit(ASSIGNED)
    case.watch._thread.join(30)
    assert not case.watch._thread.is_alive(), "it waits no longer"
    assert case.reported.items == []
    case.watch.close()


def test_a_process_that_stops_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JOIN_WARNING_S", LONG_S)
    case = Case()
    case.watch.start()
    case.watch.close()
    case.watch.close()
    assert case.reported.items == []


def test_a_watch_that_was_not_started_closes() -> None:
    Case().watch.close()


def test_a_subscriber_may_stop_the_app(is_impatient: None) -> None:
    case, closed = Case(), Collected[None]()

    def close(event: GroupWaiting) -> None:
        case.watch.close()  # On the thread of the watch.
        closed.add(None)

    case.events.subscribe(GroupWaiting, close)
    case.reported_text()
    closed.wait_for(1)


def test_the_name_in_the_group_holds_the_topics_in_any_order() -> None:
    settings = Settings(instance_id="one")
    first, same, other = (instance_properties(settings, topics) for topics in (["a", "b"], ["b", "a"], ["a"]))
    assert first == same != other
    assert first["group.instance.id"].startswith("one.")
    assert instance_properties(Settings(), ["a"]) == {}


def client_error(code: int) -> ClientError:
    return ClientError(client="shop", code=code, code_name="FATAL", text="fenced", is_fatal=True)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"instance_id": "one"}, "'one'"), ({"kafka": {"group.instance.id": "two"}}, "'two'")],
)
def test_a_process_whose_name_another_has_taken_says_so(settings: dict[str, Any], name: str) -> None:
    error = fatal_error(client_error(FENCED_INSTANCE_ID), Settings(**settings))
    assert (error.code, error.is_retriable) == (FENCED_INSTANCE_ID, False)
    assert f"the same instance_id, {name}: give each process its own" in str(error)
    assert is_name_taken(error)


def test_another_fatal_error_is_told_as_it_is() -> None:
    error = fatal_error(client_error(-150), Settings())
    assert str(error) == "shop can't go on: fenced (FATAL)"
    assert not is_name_taken(error)

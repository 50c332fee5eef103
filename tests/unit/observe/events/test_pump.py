"""The pump of the engine's events: one thread for all boxes, which lives no longer than they do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from awoke._native import Mailbox
from awoke.observe.events import Event, Events, PartitionsLost
from awoke.observe.events.pump import EventPump, EventSource, deliver
from tests.support.waiting import Collected


class FakeBox:
    """A box of the engine's, into which a test puts events."""

    def __init__(self) -> None:
        self._mailbox = Mailbox()
        self._events: list[tuple[str, str, dict[str, Any]]] = []
        self.fileno = self._mailbox.fileno

    def put(self, *clients: str, is_told: bool = True) -> None:
        """Puts an event of each of these clients; without being told, the pump does not see them."""
        self._events += [(client, "partitions.lost", {"partitions": []}) for client in clients]
        if is_told:
            self._mailbox.post(0)

    def drain(self) -> list[tuple[str, str, dict[str, Any]]]:
        self._mailbox.drain()
        found, self._events = self._events, []
        return found


class Listening:
    """Notes the clients of events, and the thread on which they come."""

    def __init__(self) -> None:
        self.heard = Collected[tuple[str, str]]()

    def emit(self, event: Event, /) -> None:
        assert isinstance(event, PartitionsLost)
        self.heard.add((event.client, threading.current_thread().name))


class Pumped:
    """A pump and its boxes."""

    def __init__(self) -> None:
        self.pump = EventPump()
        self._boxes: list[Any] = []

    def add(self, listener: Any) -> Any:
        box = FakeBox()
        native: Any = box
        self.pump.add(native, listener)
        self._boxes.append(box)
        return box

    def end(self) -> None:
        for box in self._boxes:
            self.pump.remove(box)


@pytest.fixture
def pumped() -> Iterator[Pumped]:
    pumped = Pumped()
    yield pumped
    pumped.end()


def test_events_go_to_the_listener_of_their_box_on_one_thread(pumped: Pumped) -> None:
    first, second = Listening(), Listening()
    boxes = [pumped.add(first), pumped.add(second)]
    boxes[0].put("a", "b")
    boxes[1].put("c")
    assert first.heard.wait_for(2) == [("a", "awoke-events"), ("b", "awoke-events")]
    assert second.heard.wait_for(1) == [("c", "awoke-events")]
    boxes[0].put("d")
    assert first.heard.wait_for(3)[2] == ("d", "awoke-events")


def test_the_last_events_of_a_box_come_when_it_is_removed(pumped: Pumped) -> None:
    listening = Listening()
    box = pumped.add(listening)
    box.put("late", is_told=False)
    assert listening.heard.items == []
    pumped.pump.remove(box)
    assert listening.heard.items == [("late", threading.current_thread().name)]
    box.put("after")
    pumped.pump.remove(box)
    assert len(listening.heard.items) == 1, "a box that is gone has no listener"


def test_the_thread_lives_while_there_is_a_box(pumped: Pumped) -> None:
    listening = Listening()
    boxes = [pumped.add(listening), pumped.add(listening)]
    thread = pumped.pump._thread
    assert thread is not None
    pumped.pump.remove(boxes[0])
    assert thread.is_alive()
    boxes[1].put("a")
    listening.heard.wait_for(1)
    pumped.pump.remove(boxes[1])
    assert not thread.is_alive()


def test_a_box_after_the_last_one_has_a_thread_again(pumped: Pumped) -> None:
    for _ in range(2):
        listening = Listening()
        box = pumped.add(listening)
        box.put("a")
        assert listening.heard.wait_for(1) == [("a", "awoke-events")]
        pumped.pump.remove(box)


def test_a_listener_may_remove_its_box_on_the_thread_of_the_pump(pumped: Pumped) -> None:
    ended = threading.Event()

    class Leaving(Listening):
        def emit(self, event: Event, /) -> None:
            super().emit(event)
            pumped.pump.remove(box)
            ended.set()

    box = pumped.add(Leaving())
    thread = pumped.pump._thread
    assert thread is not None
    box.put("a")
    assert ended.wait(30)
    thread.join(10)
    assert not thread.is_alive()


def test_events_are_delivered_as_classes_oldest_first() -> None:
    box, listening = FakeBox(), Listening()
    box.put("a", "b")
    native: Any = box
    deliver(native, listening)
    assert [client for client, _ in listening.heard.items] == ["a", "b"]
    deliver(native, listening)
    assert len(listening.heard.items) == 2


def test_a_source_is_a_box_that_the_pump_serves_until_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    added, removed, listening = list[tuple[object, object]](), list[object](), Listening()
    monkeypatch.setattr("awoke.observe.events.pump.pump.add", lambda *served: added.append(served))
    monkeypatch.setattr("awoke.observe.events.pump.pump.remove", removed.append)
    sources = [EventSource(listening), EventSource()]
    assert added[0] == (sources[0].box, listening)
    assert isinstance(added[1][1], Events), "without a listener, events are logged"
    sources[0].close()
    assert removed == [sources[0].box]


def test_a_source_closes_once_more_without_effect() -> None:
    for source in (EventSource(), EventSource(Listening())):
        source.close()
        source.close()


def test_a_source_of_a_parent_process_is_not_closed_in_its_child(monkeypatch: pytest.MonkeyPatch) -> None:
    source, removed = EventSource(), list[object]()
    with monkeypatch.context() as patch:
        patch.setattr("awoke.observe.events.pump.pump.remove", removed.append)
        patch.setattr("awoke.observe.events.pump.os.getpid", lambda: -1)
        source.close()
    assert removed == []
    source.close()

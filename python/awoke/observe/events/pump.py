"""Brings the engine's events to Python: one thread of the process serves the boxes in which the engine puts them."""

from __future__ import annotations

import os
import selectors
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Protocol

from awoke._native import EventBox, Mailbox
from awoke.observe.events.bus import Events
from awoke.observe.events.catalogue import from_engine
from awoke.observe.events.event import Event
from awoke.text.frames import is_of_awoke


class Listener(Protocol):
    """A receiver of the engine's events."""

    def emit(self, event: Event, /) -> None:
        """Receives one event, on the thread of the pump. Must not block."""


class EventPump:
    """The thread that takes the engine's events out of their boxes; it lives while there is a box.

    1. Wait until a box has events, or the boxes have changed.
    2. Give each event to its box's listener.
    3. End when the last box has gone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[EventBox, Listener] = {}
        self._places: dict[EventBox, str] = {}
        """Where the client of each box was made."""
        self._changed = Mailbox()
        self._thread: threading.Thread | None = None

    def add(self, box: EventBox, listener: Listener) -> None:
        """Serves this box from now on. Any thread; does not block."""
        with self._lock:
            self._listeners[box], self._places[box] = listener, place_of_user_code()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="awoke-events", daemon=True)
                self._thread.start()
        self._changed.post(0)

    def remove(self, box: EventBox) -> None:
        """Serves this box no longer; its last events are delivered here. Joins the thread after the last box."""
        with self._lock:
            listener = self._listeners.pop(box, None)
            self._places.pop(box, None)
            thread = self._thread if not self._listeners else None
            if thread is not None:
                self._thread = None
        self._changed.post(0)
        if listener is not None:
            deliver(box, listener)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def places(self) -> dict[EventBox, str]:
        """Returns the boxes of the clients that are open, with the file, line and function that made each client.

        Does not block.
        """
        with self._lock:
            return dict(self._places)

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._lock:
                if self._thread is not me:
                    return
                boxes = dict(self._listeners)
            with selectors.DefaultSelector() as selector:
                selector.register(self._changed.fileno(), selectors.EVENT_READ)
                for box in boxes:
                    selector.register(box.fileno(), selectors.EVENT_READ, box)
                self._serve(selector, boxes)

    def _serve(self, selector: selectors.BaseSelector, boxes: Mapping[EventBox, Listener]) -> None:
        """Serves these boxes until they have changed."""
        while True:
            for key, _ in selector.select():
                if key.data is None:
                    self._changed.drain()
                    return
                deliver(key.data, boxes[key.data])


def place_of_user_code() -> str:
    """Returns file, line and function of the nearest caller outside of awoke; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_of_awoke(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def deliver(box: EventBox, listener: Listener) -> None:
    """Gives all events of a box to its listener, oldest first."""
    for client, name, fields in box.drain():
        listener.emit(from_engine(client, name, fields))


pump = EventPump()


class EventSource:
    """A box of the engine's events, and the listener that gets them until `close`. Any thread."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.box = EventBox()
        self._pid = os.getpid()
        pump.add(self.box, listener or Events())

    def close(self) -> None:
        """Delivers the last events and ends. Closing again does nothing.

        Blocks until the pump's thread has ended, where this was the last box.
        """
        if self._pid == os.getpid():
            pump.remove(self.box)


def _forget_threads() -> None:
    """Starts anew in a forked child, where the parent's thread and its boxes are gone."""
    global pump
    pump = EventPump()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)

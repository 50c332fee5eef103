"""Tells the apps of this process that it has created a topic, so that their patterns match it at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

_lock = threading.Lock()
_listeners: list[Callable[[str], object]] = []


def listen(listener: Callable[[str], object]) -> Callable[[], None]:
    """Calls a function with the name of each topic that `awoke.Admin` creates; returns the function that ends this.

    The function must not block. Any thread.
    """
    with _lock:
        _listeners.append(listener)

    def end() -> None:
        with _lock:
            if listener in _listeners:
                _listeners.remove(listener)

    return end


def tell(topic: str) -> None:
    """Tells all listeners that this process has created a topic. Does not block. Any thread."""
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener(topic)

"""Condenses errors of connections: the log has one line for a change, and not one for each attempt.

librdkafka reports each failure twice, as a log line and as an error, for each of its connections to a broker
(as bootstrap server, by its id, as coordinator) and each client. Subscribers of events get all of them.
"""

from __future__ import annotations

import re
import threading
import time
from typing import Protocol

QUIET_S = 60.0
"""An error that comes again after this time is another change. librdkafka repeats an error within about 40 s."""

REMEMBERED_MAX = 1_000

ALL_DOWN = "_ALL_BROKERS_DOWN"

_ADDRESS = re.compile(r"(?:^|[\s/])((?:\[[^\]]+\]|[^\s/:\[\]]+):\d+)(?:/(?:bootstrap|-?\d+))?: ")
"""The broker in `GroupCoordinator: host:9092: Connect…`, `ssl://host:9092/bootstrap: …` and `host:9092/1: …`."""

_CONNECT = re.compile(r"Connect to ipv[46]#(\S+) failed")
"""The broker in `GroupCoordinator: Connect to ipv4#127.0.0.1:9092 failed…`, of a coordinator without a name yet."""

_COUNTS = re.compile(r"\d+")


class BrokerError(Protocol):
    """An error of a client: the event `client.error`."""

    @property
    def code_name(self) -> str: ...
    @property
    def text(self) -> str: ...


class BrokerLines:
    """The errors of clients that are known already. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said_at_s: dict[tuple[str, str], float] = {}

    def is_change(self, error: BrokerError) -> bool:
        """Returns whether an error of a client is new."""
        key = (error.code_name, _place(error.code_name, error.text))
        now_s = time.monotonic()
        with self._lock:
            said_at_s = self._said_at_s.pop(key, None)
            self._said_at_s[key] = now_s  # At the end: the first is the one that was silent longest.
            if len(self._said_at_s) > REMEMBERED_MAX:
                del self._said_at_s[next(iter(self._said_at_s))]
        return said_at_s is None or now_s - said_at_s > QUIET_S

    def is_return(self) -> bool:
        """Returns whether a broker that answers now is the first one since all were down."""
        with self._lock:
            return self._said_at_s.pop((ALL_DOWN, ""), None) is not None


def _place(code_name: str, text: str) -> str:
    """Returns the broker that an error names, else its text without numbers, which count attempts."""
    if code_name == ALL_DOWN:
        return ""
    found = _ADDRESS.search(text) or _CONNECT.search(text)
    return found[1] if found else _COUNTS.sub("", text)

"""Joins a group: the name of this process in it, and a warning if partitions are late."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable

from awoke.errors import KafkaError, ProducerFenced, kafka_error
from awoke.observe.events import ClientError, Events, GroupWaiting, PartitionsAssigned
from awoke.settings import SESSION_TIMEOUT, SESSION_TIMEOUT_MS, Settings, number

JOIN_WARNING_S = 3.0
"""A group that has assigned nothing by then waits for a member. Without old members, joining takes about 0.1 s."""

FENCED_INSTANCE_ID = 82


def instance_properties(settings: Settings, topics: Iterable[str]) -> dict[str, str]:
    """Returns the property that names this process in its group; none where no `instance_id` is set.

    The name holds the topics: a broker gives a static member that comes back the partitions that it had, even if it
    subscribes to other topics now.
    """
    if settings.instance_id is None:
        return {}
    return {"group.instance.id": f"{settings.instance_id}.{zlib.crc32(chr(10).join(sorted(topics)).encode()):08x}"}


def fatal_error(event: ClientError, settings: Settings) -> KafkaError:
    """Returns the error that ends the app after a fatal error of a client."""
    said = f"{event.client} can't go on: {event.text} ({event.code_name})"
    if event.code == FENCED_INSTANCE_ID:
        name = settings.instance_id or settings.kafka.get("group.instance.id")
        said += (
            f"; another process joined the group with the same instance_id, {name!r}: give each process its own. "
            "This one ends for good, because it would end the other one by joining again"
        )
    return kafka_error(said, event.code, event.code_name, is_retriable=False)


def is_name_taken(error: BaseException) -> bool:
    """Returns whether another process has taken this one's name, in its group or for its transactions."""
    return isinstance(error, ProducerFenced) or (isinstance(error, KafkaError) and error.code == FENCED_INSTANCE_ID)


class JoinWatch:
    """Reports once that a process waits for its group, if it does.

    1. Wait until partitions were assigned, the app stops, or `JOIN_WARNING_S` is over.
    2. In the last case emit `group.waiting`.
    """

    def __init__(self, events: Events, group: str, settings: Settings) -> None:
        self._events, self._group, self._settings = events, group, settings
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="awoke-joining", daemon=True)

    def start(self) -> None:
        """Starts to wait, before the process joins. Does not block."""
        self._unsubscribe = self._events.subscribe(PartitionsAssigned, lambda event: self._is_over.set())
        self._thread.start()

    def close(self) -> None:
        """Ends and joins the thread. Closing again, or without a start, does nothing."""
        self._is_over.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        is_over = self._is_over.wait(JOIN_WARNING_S)
        self._unsubscribe()
        if not is_over:
            self._events.emit(GroupWaiting(group=self._group, text=self._text()))

    def _text(self) -> str:
        session_ms = number(self._settings.kafka, SESSION_TIMEOUT, SESSION_TIMEOUT_MS)
        is_classic = self._settings.kafka.get("group.protocol", "classic") == "classic"
        most = f"{SESSION_TIMEOUT}, {session_ms / 1_000:g} s" if is_classic else "the brokers' session timeout"
        text = (
            "no partitions yet: the group has other members that must join again, or one that was killed, which it "
            f"misses after at most {most}; a member beyond the number of partitions gets none"
        )
        if is_classic and self._settings.instance_id is None:
            text += ". With the setting instance_id a process that was killed gets its partitions back at once"
        return text

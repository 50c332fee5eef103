"""Durable pauses: a compacted topic of partitions that are to be paused wherever they are assigned.

The thread:
1. read the topic to its end: from then on each assignment is paused at once, if it is to be;
2. read on: a pause or a resume of another process takes effect here, too;
3. after an error begin anew, with a back-off, until `close`.

With a secret, a record of another writer is no pause, and none is ended by it. But the brokers keep the last record of
a key only, so that it would take the place of the app's own, for processes that start later. A process that knows
better writes its own record again. Records have times, so that one that is repeated later is known as old.
"""

from __future__ import annotations

import hmac
import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from awoke._native import Message, Signal
from awoke.declare.reader import Reader
from awoke.errors import AwokeError, ClosedError, ConfigError
from awoke.operate.commands.verbs import checked
from awoke.settings import Settings
from awoke.text.records import decode, encode
from awoke.waiting.backoff import Backoff
from awoke.waiting.clock import wall_ms

logger = logging.getLogger(__name__)

SEND_TIMEOUT_S = 10.0
"""A topic that was just made may have no leader yet: the client sends again until then."""
LOAD_TIMEOUT_S = 30.0
AGAIN = Backoff(0.2, 30.0)

Place = tuple[str | None, str, int]
"""Group (None: all groups of the app), topic and partition."""
Send = Callable[[str, bytes | None, bytes, float, list[tuple[str, bytes]]], int]
"""Sends value and key to a topic, within a time, with these headers; returns the offset."""
SIGNATURE = "awoke-signature"
RESUMED_AT = "awoke-resumed-at"
"""The header of a signed record without a value: the time in milliseconds."""
PURPOSE = b"awoke-pause-v1"
Apply = Callable[[str | None, str, int, str | None], object]
"""Pauses a partition for a reason, or resumes it (None), where it is assigned to this process."""


class KeptPause(msgspec.Struct, kw_only=True):
    """The value of a record."""

    why: str
    at_ms: int


class Known(NamedTuple):
    """What is known of a place."""

    why: str | None
    """Why it is to be paused; None where it is not any more."""
    at_ms: int
    offset: int = -1
    """The offset of the record that this process has written of it last."""


class DurablePauses:
    """The durable pauses of an app, as one of its processes knows them. Any thread."""

    def __init__(self, topic: str, settings: Settings, send: Send, apply: Apply) -> None:
        self._topic, self._send, self._apply = topic, send, apply
        self._secret = None if settings.console_secret is None else settings.console_secret.encode()
        """Signs the records: with one, records of others are no pauses."""
        self._given: dict[str, Any] = {
            "bootstrap_servers": settings.bootstrap_servers,
            "kafka": settings.kafka,
            "oauth_token": settings.oauth_token,
        }
        self._lock = threading.Lock()
        self._known: dict[Place, Known] = {}
        self._covered: set[Place] = set()
        """The places over whose record another writer has written. Used by the thread only."""
        self._reader: Reader | None = None
        self._closing, self._loaded = Signal(), Signal()
        self._thread = threading.Thread(target=self._run, name="awoke-console-pauses", daemon=True)

    def start(self) -> None:
        """Starts the thread; the topic exists by now. Does not block."""
        self._thread.start()

    def wait_loaded(self, timeout_s: float) -> bool:
        """Waits until the topic was read to its end; returns whether it was. Blocks."""
        return self._loaded.wait(timeout_s)

    def find(self, group: str, topic: str, partition: int) -> str | None:
        """Returns why a partition is to be paused in a group; None where it is not. Does not block."""
        with self._lock:
            places = [self._known.get(place) for place in ((group, topic, partition), (None, topic, partition))]
        return next((each.why for each in places if each is not None and each.why is not None), None)

    def keep(self, topic: str, partition: int, group: str | None, why: str) -> None:
        """Pauses a partition until `drop`. Blocks until the brokers have the record.

        Raises:
            AwokeError: They do not have it.
        """
        self._write((group, topic, partition), why)

    def drop(self, topic: str, partition: int, group: str | None) -> bool:
        """Ends the durable pause of a partition; returns false where there is none. Blocks as `keep`.

        Without a group, the pauses of the partition in all groups end.

        Raises:
            AwokeError: The brokers do not have the record.
        """
        with self._lock:
            paused = [place for place, known in self._known.items() if known.why is not None]
        found = [each for each in paused if each[1:] == (topic, partition) and group in (None, each[0])]
        for each in found:
            self._write(each, None)
        return bool(found)

    def _write(self, place: Place, why: str | None, at_ms: int | None = None) -> None:
        """Sends the record of a place, and notes it. Blocks until the brokers have it."""
        with self._lock:
            last = self._known.get(place)
        if at_ms is None:  # Clocks of processes differ: a later record has a later time in any case.
            at_ms = max(wall_ms(), 0 if last is None else last.at_ms + 1)
        value, key = None if why is None else encode(KeptPause(why=why, at_ms=at_ms)), key_of(*place)
        headers = []
        if self._secret is not None:
            time = str(at_ms).encode() if why is None else b""
            headers = [(SIGNATURE, self._signature(self._secret, value, key, time))]
            headers += [(RESUMED_AT, time)] if time else []
        offset = self._send(self._topic, value, key, SEND_TIMEOUT_S, headers)
        self._note(place, Known(why, at_ms, offset))

    def _note(self, place: Place, known: Known) -> None:
        """Notes what is known of a place, unless something later is known meanwhile."""
        with self._lock:
            last = self._known.get(place)
            if last is not None and known.at_ms < last.at_ms:
                return
            self._known[place] = known
            if known.why is None and self._secret is None:
                del self._known[place]  # Anyone's record counts: those of places without a pause are not kept.

    def _signature(self, secret: bytes, value: bytes | None, key: bytes, time: bytes) -> bytes:
        """Returns the signature of a record: a copy under another key, or in another app's topic, is not signed."""
        parts = (PURPOSE, self._topic.encode(), key, b"none" if value is None else b"some", value or b"", time)
        signed = b"".join(len(each).to_bytes(8) + each for each in parts)
        return hmac.digest(secret, signed, "sha256")

    def _is_signed(self, message: Message[Any, Any]) -> bool:
        """Tells whether a record is of one who has the secret; without one, any record is taken."""
        if self._secret is None:
            return True
        headers = dict(message.headers)
        found, time = headers.get(SIGNATURE), headers.get(RESUMED_AT) or b""
        expected = self._signature(self._secret, message.value, message.key or b"", time)
        return found is not None and hmac.compare_digest(found, expected)

    @property
    def has_ended(self) -> bool:
        """True if the thread was started and is not alive, though this was not closed."""
        return self._thread.ident is not None and not self._thread.is_alive() and not self._closing.is_set()

    def close(self) -> None:
        """Ends the thread and joins it. Closing again, or without a start, does nothing."""
        self._closing.set()
        self._loaded.set()
        with self._lock:
            reader = self._reader
        if reader is not None:
            reader.close()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        attempt = 0
        while not self._closing.is_set():
            attempt += 1
            try:
                self._follow()
            except ClosedError:
                break
            except AwokeError as error:
                logger.debug("durable pauses can't be read from %s: %s", self._topic, error)
                self._closing.wait(AGAIN.delay_s(attempt))
            except Exception:  # A fault of awoke's own: pauses are read again, and none is lost.
                logger.exception("durable pauses can't be read from %s", self._topic)
                self._closing.wait(AGAIN.delay_s(attempt))

    def _follow(self) -> None:
        reader = Reader(self._topic, **self._given)
        with self._lock:
            self._reader = reader
        with reader:
            if self._closing.is_set():
                return
            for message in reader.read_until_end(LOAD_TIMEOUT_S):
                self._on_record(message)
            self._loaded.set()
            self._write_again()
            for message in reader:
                self._on_record(message)
                self._write_again()

    def _write_again(self) -> None:
        """Writes the record of each place again that another writer has written over. Blocks as `keep`.

        Raises:
            AwokeError: The brokers do not have one of them.
        """
        while self._covered:
            place = next(iter(self._covered))
            with self._lock:
                known = self._known[place]
            text = "%s: another writer has written over the record of %s[%d], which is written again: %s"
            logger.warning(text, self._topic, place[1], place[2], "let only this app write to the topic, by ACLs")
            self._write(place, known.why, known.at_ms)
            self._covered.discard(place)

    def _on_record(self, message: Message[Any, Any]) -> None:
        place = place_of(message.key)
        if place is None:
            return
        kept = None if message.value is None else decode(message.value, KeptPause)
        is_read = message.value is None or kept is not None
        with self._lock:
            last = self._known.get(place)
        at_ms = (0 if last is None else last.at_ms) if self._secret is None else _time_of(message, kept)
        if not is_read or not self._is_signed(message) or (last is not None and at_ms < last.at_ms):
            if self._secret is not None and last is not None and message.offset > last.offset:
                self._covered.add(place)
            return
        self._covered.discard(place)
        why = None if kept is None else kept.why
        self._note(place, Known(why, at_ms, -1 if last is None else last.offset))
        if (None if last is None else last.why) == why:
            return  # This process has sent it.
        try:
            self._apply(*place, why)
        except AwokeError as error:
            logger.debug("a durable pause of %s[%d] changes nothing here: %s", place[1], place[2], error)
        except Exception:  # Of one record: the others take effect all the same.
            logger.exception("a durable pause of %s[%d] can't be applied", place[1], place[2])


def _time_of(message: Message[Any, Any], kept: KeptPause | None) -> int:
    """Returns the time of a signed record, in milliseconds; 0 if it does not say one."""
    if kept is not None:
        return kept.at_ms
    said = dict(message.headers).get(RESUMED_AT) or b""
    return int(said) if said.isdigit() and len(said) < 20 else 0


def key_of(group: str | None, topic: str, partition: int) -> bytes:
    """Returns a place as the key of a record."""
    return encode([group, topic, partition])


def place_of(key: bytes | None) -> Place | None:
    """Returns the place in the key of a record; None where there is none."""
    place = decode(key, tuple[str | None, str, int])
    if place is None:
        return None
    try:
        checked("pause", dict(zip(("group", "topic", "partition"), place, strict=True)))
    except ConfigError:
        return None
    return place

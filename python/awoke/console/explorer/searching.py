"""Searches a topic: gives hits as they are found, tells its progress, and can be cancelled.

A search has no thread and no queue of its own: each step is read by the thread that asks for it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import msgspec

from awoke._native import Message
from awoke.console.access import Brokers
from awoke.console.explorer.parts import DecodedParts
from awoke.console.explorer.reading import ranges_of
from awoke.console.explorer.views import PartitionRange, SearchQuery, SearchStep
from awoke.errors import ClosedError, ConfigError, OperationTimeout, UnknownTopic
from awoke.payloads.registry.schema import Part
from awoke.waiting.clock import monotonic_s

TEXT_MAX = 1_000
HITS_MAX = 1_000
SCANNED_MAX = 10_000_000
TIMEOUT_S = 600.0
"""The longest search."""
STEP_S = 0.25
"""A step without a hit ends after this time, and tells the progress."""
CHECKED = 256
"""The messages after which the time of a step is looked at."""


class Search:
    """One search. One thread at a time asks for its steps; any thread may cancel. A context manager."""

    def __init__(self, brokers: Brokers, query: SearchQuery, parts: DecodedParts) -> None:
        check(query, parts)
        self._brokers, self._query, self._parts = brokers, query, parts
        self._matches = matcher(query, parts)
        self._reader: Any = None
        self._messages: Iterator[Message[Any, Any]] = iter(())
        self._is_open = self._is_cancelled = self._is_over = False
        self._scanned = self._found = self._total = 0

    def next(self) -> SearchStep | None:
        """Returns the next step; None after the last one. Blocks until there is a hit, some progress, or the end.

        Raises:
            UnknownTopic; AuthorizationFailed; BrokerUnreachable.
        """
        if self._is_over:
            return None
        try:
            if not self._is_open:
                self._open()
            step = self._scan()
        except OperationTimeout:
            step = self._step([], "time")
        except ClosedError:
            step = self._step([], "cancelled")
        self._is_over = step.over_because is not None
        if self._is_over:
            self._close()
        return step

    def steps(self) -> Iterator[SearchStep]:
        """Yields all steps. Blocks."""
        while (step := self.next()) is not None:
            yield step

    def cancel(self) -> None:
        """Ends the search: a thread that waits for a step gets the last one. Any thread."""
        self._is_cancelled = True
        self._close()

    def _close(self) -> None:
        if (reader := self._reader) is not None:
            reader.close()

    def _open(self) -> None:
        self._is_open = True
        query = self._query
        with self._brokers.admin() as admin:
            ranges = wanted(query, ranges_of(admin, query.topic))
            starts = starts_of(query, ranges, admin.offsets_at(query.topic, query.since_ms) if query.since_ms else {})
        self._total = sum(each.end - offset for each in ranges if (offset := starts.get(each.partition)) is not None)
        if not starts or self._is_cancelled:
            return
        self._reader = self._brokers.reader(query.topic, starts)
        self._messages = self._reader.read_until_end(TIMEOUT_S)
        if self._is_cancelled:  # Another thread has cancelled, and found no reader to close.
            self._close()

    def _scan(self) -> SearchStep:
        until_s = monotonic_s() + STEP_S
        for message in self._messages:
            self._scanned += 1
            hits = [message] if self._matches(message) else []
            self._found += len(hits)
            if self._is_cancelled:
                return self._step(hits, "cancelled")
            if self._found >= self._query.hits_max:
                return self._step(hits, "hits")
            if self._scanned >= self._query.scanned_max:
                return self._step(hits, "limit")
            if hits or (self._scanned % CHECKED == 0 and monotonic_s() >= until_s):
                return self._step(hits)
        return self._step([], "cancelled" if self._is_cancelled else "end")

    def _step(self, hits: list[Message[Any, Any]], over_because: Any = None) -> SearchStep:
        return SearchStep(
            hits=[self._parts.message(each) for each in hits],
            scanned=self._scanned,
            total=self._total,
            found=self._found,
            over_because=over_because,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()


def check(query: SearchQuery, parts: DecodedParts) -> None:
    """Refuses a search that is not allowed, or has no bounds.

    Raises:
        ConfigError: It is so. A search tells contents, so it is refused where they are hidden.
    """
    if not parts.reveals:
        raise ConfigError("a search tells the contents of messages, which are hidden from you", "text")
    if parts.secrets.unknown_because is not None:
        raise ConfigError(f"a search tells the contents of messages; {parts.secrets.unknown_because}", "text")
    if not 1 <= len(query.text) <= TEXT_MAX:
        raise ConfigError(f"a search needs a text of 1 to {TEXT_MAX} characters", "text")
    if not 1 <= query.hits_max <= HITS_MAX:
        raise ConfigError(f"hits is a number from 1 to {HITS_MAX}, not {query.hits_max}", "hits_max")
    if not 1 <= query.scanned_max <= SCANNED_MAX:
        raise ConfigError(f"scanned is a number from 1 to {SCANNED_MAX}, not {query.scanned_max}", "scanned_max")
    if query.field is not None and not all(query.field.split(".")):
        raise ConfigError(f"field is the path of a field, as in card.number, not {query.field!r}", "field")


def wanted(query: SearchQuery, ranges: list[PartitionRange]) -> list[PartitionRange]:
    """Returns the partitions that are searched.

    Raises:
        UnknownTopic: There is no such partition.
    """
    if query.partition is None:
        return ranges
    found = [each for each in ranges if each.partition == query.partition]
    if not found:
        raise UnknownTopic(f"topic {query.topic!r} has no partition {query.partition}", 3, "UNKNOWN_TOPIC_OR_PART")
    return found


def starts_of(query: SearchQuery, ranges: list[PartitionRange], at_time: dict[int, int]) -> dict[int, int]:
    """Returns the first offset that is searched, by partition; of a partition without messages none."""
    found = {each.partition: max(each.start, at_time.get(each.partition, 0)) for each in ranges}
    return {each.partition: found[each.partition] for each in ranges if found[each.partition] < each.end}


def matcher(query: SearchQuery, parts: DecodedParts) -> Callable[[Message[Any, Any]], bool]:
    """Returns the function that tells whether a message is a hit."""
    text, place = query.text.lower(), query.place
    path = None if query.field is None else query.field.split(".")

    def matches(message: Message[Any, Any]) -> bool:
        value = message.raw_value
        is_masked = parts.is_masked(message.topic, "value")
        if path is not None:
            document = None if value is None else _document(parts, message, value) or (b"" if is_masked else value)
            return document is not None and text in _field(document, path).lower()
        if place in ("any", "key") and _key_has(parts, message, text):
            return True
        headers = message.headers if place in ("any", "header") else []
        if any(text in name.lower() or found_in(each, text) for name, each in headers):
            return True
        if value is None or place not in ("any", "value"):
            return False
        return (not is_masked and found_in(value, text)) or text in (_document(parts, message, value) or "").lower()

    return matches


def _key_has(parts: DecodedParts, message: Message[Any, Any], text: str) -> bool:
    """Tells whether a key has a text in it. Of one with secret fields, only what is shown counts."""
    if message.raw_key is None or not parts.is_masked(message.topic, "key"):
        return found_in(message.raw_key, text)
    return text in (_document(parts, message, message.raw_key, "key") or "").lower()


def _document(parts: DecodedParts, message: Message[Any, Any], content: bytes, part: Part = "value") -> str | None:
    """Returns a value or a key as JSON; None where it has no decoder, or does not decode."""
    try:
        found = parts.document(message.topic, part, content, message.headers)
    except Exception:  # The decoders are user code, and libraries that read foreign bytes.
        return None
    return None if found is None else found.json


def found_in(content: bytes | None, text: str) -> bool:
    """Tells whether content has a text in lower case in it."""
    return content is not None and text in content.decode(errors="replace").lower()


def _field(document: str | bytes, path: list[str]) -> str:
    """Returns the text of a field of a JSON document; nothing where there is none. A number counts elements."""
    with contextlib.suppress(msgspec.MsgspecError, RecursionError, KeyError, IndexError, TypeError, ValueError):
        found = msgspec.json.decode(document)
        for name in path:
            found = found[int(name)] if isinstance(found, list) else found[name]
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return ""

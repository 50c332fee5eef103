"""Reads topics without a consumer group: from offsets, times or the ends, until the end or without one."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import msgspec

from awoke import _native
from awoke._native import Batch, Decoders, Message
from awoke.admin import Admin, TopicInfo
from awoke.declare.starts import Start, start_of
from awoke.errors import ConfigError, KafkaError, OperationTimeout, UnknownTopic
from awoke.observe.events import EventSource
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import decoders_of, format_of
from awoke.payloads.registry.schemas import schemas_of
from awoke.settings import KafkaValue, client_properties, load, origins
from awoke.settings.oauth import TokenFunction
from awoke.waiting.drive import drive, until
from awoke.waiting.time import patience_s

FIRST_OFFSETS_S = 0.5
"""The time in which a broker has to tell its first offsets; after it, librdkafka asks.

librdkafka (2.12.1) asks as soon as a reader begins, which fails while it connects to the leader, and again 500 ms
later.
"""

Starts = list[tuple[str, int, str, int]]
"""Topic, partition, and the start as the engine takes it."""


class Reader:
    """Messages of whole topics, each partition in order. One thread, or one task, may read at a time.

    `start` is `"earliest"`, `"latest"`, a negative number (-5 for the last five messages of each partition), an offset,
    or a datetime with its time zone; or such a start for each partition by its number, where only these are read.
    Iterating, with `for` or `async for`, has no end, and waits while there is no message: in a test with pytest, on the
    thread that runs it, for half a minute at most.

    `value` and `key` are the types or formats of values and keys, as a route takes them; left out, those of the topic
    (`awoke.Topic`), or else bytes. A value is decoded when it is read; a schema of the registry that is not there yet
    is loaded then, on the reading thread.

    `admin` is a client of the same brokers that looks the topics up; left out, one is opened for that.

    Raises:
        UnknownTopic: a topic, or a partition that was asked for, does not exist.
        BrokerUnreachable: no broker answered; AuthenticationFailed, TlsFailed: none lets the reader in.
        AuthorizationFailed: the brokers do not tell of a topic.
        ConfigError: a start that is none of these.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        *,
        bootstrap_servers: str | None = None,
        start: Start | Mapping[int, Start] = "earliest",
        kafka: Mapping[str, KafkaValue] | None = None,
        oauth_token: TokenFunction | None = None,
        value: Any = None,
        key: Any = None,
        admin: Admin | None = None,
    ) -> None:
        arguments = {"bootstrap_servers": bootstrap_servers, "kafka": kafka, "oauth_token": oauth_token}
        settings = load(arguments).values
        names = [topics] if isinstance(topics, str) else list(topics)
        self._schemas = schemas_of(settings)
        made = {str(name): self._decoders(name, value, key) for name in names}
        decoders = {name: each for name, each in made.items() if each is not None}
        wanted = (
            {number: _start(each) for number, each in start.items()} if isinstance(start, Mapping) else _start(start)
        )
        with Admin(settings=settings) if admin is None else contextlib.nullcontext(admin) as asked:
            found = [asked.find_topic(name, settings.startup_timeout_s) for name in names]
            starts = [each for topic in found for each in _at_first_offsets(asked, _starts(topic, wanted))]
        self._at_end: set[tuple[str, int]] = set()
        self._partitions = {(topic, partition) for topic, partition, _, _ in starts}
        self._numbers = itertools.count()
        self._lent: dict[int, weakref.ref[Batch[Any, Any]]] = {}
        """The batches of which something is kept. Each keeps the client, whose memory it is a view into."""
        self._source = EventSource()
        try:
            with origins.named():
                self._native = _native.Reader(client_properties(settings), starts, decoders, self._source.box)
        except BaseException:
            self._source.close()
            raise

    def _decoders(self, topic: str, value: Any, key: Any) -> Decoders | None:
        said = [getattr(topic, part, None) if kind is None else kind for part, kind in (("value", value), ("key", key))]
        try:
            of_value, of_key = (format_of(kind, BY_TYPE) for kind in said)
            return decoders_of(of_value, of_key, topic, self._schemas, loads=True)
        except (TypeError, msgspec.MsgspecError) as error:
            raise ConfigError(f"topic {topic!r} can't be read as its types say: {error}", "value") from None

    def __iter__(self) -> Iterator[Message[Any, Any]]:
        """Yields messages without end. Blocks while there is none; Ctrl-C ends the wait on the main thread.

        Raises:
            OperationTimeout: in a test, there was none for half a minute.
        """
        while True:
            yield from drive(self._next_patiently())

    async def __aiter__(self) -> AsyncIterator[Message[Any, Any]]:
        """Yields messages without end, on the running loop. Raises as `for`."""
        while True:
            for message in await self._next_patiently():
                yield message

    def read_until_end(self, timeout_s: float | None = None) -> Iterator[Message[Any, Any]]:
        """Yields messages until every partition is read to the end that its first messages here were fetched with.

        Messages that are produced meanwhile may lie behind that end. So this ends, however busy the topic is. A further
        reading yields what has been fetched since the one before: none, if nothing has. Blocks.

        Raises:
            OperationTimeout: the ends were not reached within `timeout_s`.
        """
        ends, began_s = _Ends(), time.monotonic()
        while (messages := drive(self._next_until_end(ends, began_s, timeout_s))) is not None:
            yield from messages

    def read_up_to(self, count: int, timeout_s: float | None = None) -> Iterator[Message[Any, Any]]:
        """Yields messages until each partition has given `count`, at least 1, or is read to its end. Blocks.

        Raises:
            OperationTimeout: neither was there within `timeout_s`.
        """
        began_s, given, full = time.monotonic(), Counter[tuple[str, int]](), set[tuple[str, int]]()
        while not self._partitions <= full | self._at_end:
            for message in drive(self._next_within(began_s, timeout_s)):
                place = message.topic, message.partition
                if place not in full:
                    given[place] += 1
                    if given[place] == count:
                        full.add(place)
                    yield message

    async def aread_until_end(self, timeout_s: float | None = None) -> AsyncIterator[Message[Any, Any]]:
        """Yields messages as `read_until_end`, on the running loop.

        Raises:
            OperationTimeout: the ends were not reached within `timeout_s`.
        """
        ends, began_s = _Ends(), time.monotonic()
        while (messages := await self._next_until_end(ends, began_s, timeout_s)) is not None:
            for message in messages:
                yield message

    async def _next_until_end(
        self, ends: _Ends, began_s: float, timeout_s: float | None
    ) -> Iterable[Message[Any, Any]] | None:
        """Returns the next messages, None when all partitions are at their ends. A flow."""
        is_first, ends.has_begun = not ends.has_begun, True
        if not self._partitions <= self._at_end | ends.reached:
            messages = await self._next_within(began_s, timeout_s)
        elif not is_first or not (messages := await self._next(0.0)):  # An end is told once: there may be more since.
            return None
        if isinstance(messages, Batch):
            ends.note(messages, self._native)
        return messages

    async def _next_within(self, began_s: float, timeout_s: float | None) -> Iterable[Message[Any, Any]]:
        """Returns the next messages, none when the time is up, and refuses to begin after it. A flow."""
        left_s = None if timeout_s is None else began_s + timeout_s - time.monotonic()
        if left_s is not None and left_s <= 0:
            text = f"read to the end: not there within {timeout_s} s"
            raise OperationTimeout(text, "read to the end", timeout_s or 0)
        return await self._next(left_s)

    async def _next_patiently(self) -> Iterable[Message[Any, Any]]:
        """Returns the next messages, none at the end of a partition. A flow."""
        limit_s, began_s = patience_s(), time.monotonic()
        if limit_s is None:
            return await self._next(None)
        while not (messages := await self._next(max(0.0, began_s + limit_s - time.monotonic()))):
            if time.monotonic() - began_s >= limit_s:
                topics = ", ".join(sorted({topic for topic, _ in self._partitions}))
                text = f"no message of {topics} within {limit_s:g} s: a test waits no longer; was one sent there? Read"
                text = f"{text} with read_until_end() what is there, or wait for the app first (probe.idle())"
                raise OperationTimeout(text, f"read {topics}", limit_s)
        return messages

    async def _next(self, timeout_s: float | None) -> Iterable[Message[Any, Any]]:
        """Returns the next messages: none at the end of a partition, or when the time is up. A flow."""
        return self._sort(await until(_Found(self._native, timeout_s)))

    def _sort(self, found: Batch[Any, Any] | tuple[str, int] | None) -> Iterable[Message[Any, Any]]:
        """Returns the messages of a batch; none for the end of a partition, which is noted."""
        if found is None:
            return ()
        if isinstance(found, tuple):
            self._at_end.add(found)
            return ()
        self._at_end.discard((found.topic, found.partition))
        number, lent = next(self._numbers), self._lent
        lent[number] = weakref.ref(found, lambda _: lent.pop(number, None))
        return found

    def close(self) -> None:
        """Stops reading; a waiting thread gets ClosedError. Closing again does nothing. Any thread.

        Messages that were kept are copied first: the client's threads end here, whatever is kept.
        """
        for lease in list(self._lent.values()):
            if (batch := lease()) is not None:
                batch.detach()
        self._native.close()
        self._schemas.close()
        self._source.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _start(start: Start) -> tuple[str, int]:
    found = start_of(start)
    if found is None:
        raise ConfigError("a reader needs a start", "start")
    return found


def _starts(topic: TopicInfo, wanted: tuple[str, int] | Mapping[int, tuple[str, int]]) -> Starts:
    partitions = [each.partition for each in topic.partitions]
    if isinstance(wanted, tuple):
        return [(topic.name, partition, *wanted) for partition in partitions]
    for number in wanted:
        if number not in partitions:
            raise UnknownTopic(f"topic {topic.name!r} has no partition {number}", 3, "UNKNOWN_TOPIC_OR_PART")
    return [(topic.name, partition, *each) for partition, each in wanted.items()]


def _at_first_offsets(admin: Admin, starts: Starts) -> Starts:
    """Returns the starts of one topic, with an offset in the place of `earliest` if a broker tells it. Blocks."""
    asked = [partition for _, partition, kind, _ in starts if kind == "earliest"]
    first: dict[int, int] = {}
    if asked:
        with contextlib.suppress(KafkaError, OperationTimeout):
            first = admin.start_offsets(starts[0][0], FIRST_OFFSETS_S, partitions=asked)
    return [
        (each[0], each[1], "offset", first[each[1]]) if each[2] == "earliest" and each[1] in first else each
        for each in starts
    ]


class _Ends:
    """The end of each partition as the fetch of its first batch saw it.

    librdkafka tells of an end where a fetch brings nothing: of a partition that gets messages all the time, never.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self.reached: set[tuple[str, int]] = set()
        self._ends: dict[tuple[str, int], int | None] = {}

    def note(self, batch: Batch[Any, Any], native: _native.Reader) -> None:
        """Notes a batch, and the end if this is the first one of its partition."""
        place = batch.topic, batch.partition
        if place not in self._ends:
            self._ends[place] = native.end_seen(*place)
        end = self._ends[place]
        if end is not None and batch.last_offset + 1 >= end:
            self.reached.add(place)


class _Found:
    """The next batch, or the end of a partition, for a flow to wait for; None when the time was up first."""

    __slots__ = ("_native", "_timeout_s")

    def __init__(self, native: _native.Reader, timeout_s: float | None) -> None:
        self._native, self._timeout_s = native, timeout_s

    def wait(self) -> Batch[Any, Any] | tuple[str, int] | None:
        """Waits on the calling thread, with the GIL released."""
        return self._native.next(self._timeout_s)

    def __await__(self) -> Generator[Any, Any, Batch[Any, Any] | tuple[str, int] | None]:
        return self._find().__await__()

    async def _find(self) -> Batch[Any, Any] | tuple[str, int] | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timeout_s):
                while (found := self._native.next(0.0)) is None:
                    await self._readable()
                return found
        return None

    async def _readable(self) -> None:
        """Waits until the native reader notifies that its empty queue has got something."""
        loop = asyncio.get_running_loop()
        rung = loop.create_future()
        loop.add_reader(self._native.fileno(), lambda: None if rung.done() else rung.set_result(None))
        try:
            await rung
        finally:
            loop.remove_reader(self._native.fileno())
            self._native.clear()


async def next_messages(reader: Reader, timeout_s: float | None) -> Iterable[Message[Any, Any]]:
    """Returns a reader's next messages: none at the end of a partition, or when the time is up. A flow."""
    return await reader._next(timeout_s)

"""Reads the rows of an app's table from any process: the owner of a key is asked over Kafka."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.events import _get_running_loop
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from awoke.errors import AwokeError, ConfigError, EncodeError, RpcError, UnknownTopic
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import Format
from awoke.payloads.formats.msgpack import msgpack
from awoke.payloads.registry.schemas import LOADS_MAX, SchemaNeeded, Schemas, schemas_of
from awoke.payloads.topics import Topic
from awoke.rpc.caller.caller import TIMEOUT_S, Caller, warn_blocking
from awoke.rpc.errors import Unavailable
from awoke.rpc.protocol import ServiceTopics
from awoke.rpc.topics import partitions_of
from awoke.settings import KafkaValue, Settings, load
from awoke.settings.oauth import TokenFunction
from awoke.state.queries import (
    GET,
    KEYS_MAX,
    SCAN,
    FoundValues,
    RowLookup,
    RowOrigin,
    RowPage,
    RowScan,
    key_in,
    partition_of,
    service_of,
)
from awoke.state.row_formats import RowFormats
from awoke.waiting.drive import drive, elsewhere

LOOKUP, FOUND, SCANNED, PAGE = msgpack(RowLookup), msgpack(FoundValues), msgpack(RowScan), msgpack(RowPage)
PAGES_MAX = 4
"""The pages of a scan that are under way: a slow reader keeps no more in memory."""
Rows = list[tuple[Any, Any]]
HASHED = ("murmur2", "murmur2_random")
"""The partitioners whose choice is known here before the request is sent."""


class FoundRow(NamedTuple):
    """The row of a key, and where it comes from."""

    value: Any
    """None: there is no row."""
    process: str
    """The process that answered: host and process id, and the node's number in a swarm."""
    partition: int
    offset: int | None
    """The offset that was committed for the partition of the route's topic; None before the first commit."""
    is_stale: bool
    """True if the partition was being restored: the row may be missing or old."""


class RemoteTable:
    """Reads a table of an app from any process: `awoke.Table("shop", "totals", key=str, value=Total)`.

    A query goes over Kafka to the process that owns the key, which answers from the committed rows. Any number of
    threads and event loops; a context manager: leaving it closes. It connects as `awoke.rpc.Caller` does: before this
    returns, or on the thread of a running event loop with `async with` or the first query.

    `key` and `value` are the types or formats of the table, bytes where they are left out, and `format` is the default
    format of its app. `group` is the consumer group of the route that writes the table, if it is not the name of the
    app: without an answer, a query ends with `awoke.rpc.NobodyThere` when that group has no member. With
    `checks_group=False` the group is not looked up: for a route with named partitions. Queries wait for `timeout_s`
    unless they say otherwise. `name` is the caller's name as the app sees it, and `secret` that of the app's
    `app.rpc.options(secret=…)`.

    Rows are looked for where messages with their key are. If a handler gives rows other keys than its messages have,
    say `partition=…`, or scan. Its queries raise:

        Restoring: the partition is being restored; `stale=True` gives what is there. NobodyThere: the app does not run.
        DeadlineExceeded: no answer in time, for example because the partition is moving from one process to another.
        EncodeError: the key is not of the table's type; DecodeError: a row is not. UnknownTopic (on an event loop).

    Raises:
        UnknownTopic: no app of this name has such a table, or has run since it has. ConfigError, BrokerUnreachable.
    """

    def __init__(
        self,
        app: str,
        name: str,
        *,
        key: Any = None,
        value: Any = None,
        format: Format = BY_TYPE,
        bootstrap_servers: str | None = None,
        group: str | None = None,
        checks_group: bool = True,
        timeout_s: float = TIMEOUT_S,
        caller: str = "",
        secret: bytes | None = None,
        kafka: Mapping[str, KafkaValue] | None = None,
        oauth_token: TokenFunction | None = None,
        settings: Settings | None = None,
        schemas: Schemas | None = None,
    ) -> None:
        for what, text in (("app", app), ("name", name)):
            if not isinstance(text, str) or not text:
                raise ConfigError(f"a table is named by two strings, its app's name and its own, not {text!r}", what)
        arguments = {"bootstrap_servers": bootstrap_servers, "kafka": kafka, "oauth_token": oauth_token}
        self._settings = settings or load(arguments).values
        self.app, self.name = app, name
        service = service_of(app, name)
        self._topics = ServiceTopics.of(service)
        own = schemas_of(self._settings) if schemas is None else None
        self._own_schemas = own
        kept = schemas or own
        assert kept is not None
        self._formats = RowFormats(f"table {name!r} of app {app!r}", Topic(service), key, value, format, kept)
        self._partitions: int | None = None
        with self._explained():
            self._caller = Caller(
                service,
                name=caller,
                group=(group or app) if checks_group else None,
                checks_group=checks_group,
                timeout_s=timeout_s,
                secret=secret,
                window=PAGES_MAX,
                settings=self._settings,
                schemas=kept,
            )

    # By key.

    def get(
        self,
        key: Any,
        default: Any = None,
        *,
        partition: int | None = None,
        stale: bool = False,
        timeout_s: float | None = None,
    ) -> Any:
        """Returns the committed row of a key; the default where there is none. Blocks, and raises as the class says."""
        found = self.find(key, partition=partition, stale=stale, timeout_s=timeout_s)
        return default if found.value is None else found.value

    async def aget(
        self,
        key: Any,
        default: Any = None,
        *,
        partition: int | None = None,
        stale: bool = False,
        timeout_s: float | None = None,
    ) -> Any:
        """As `get`, awaited on the running loop."""
        found = await self.afind(key, partition=partition, stale=stale, timeout_s=timeout_s)
        return default if found.value is None else found.value

    def find(
        self, key: Any, *, partition: int | None = None, stale: bool = False, timeout_s: float | None = None
    ) -> FoundRow:
        """Returns the committed row of a key, with the process that answered and the offset that it had committed.

        Blocks, and raises as the class says.
        """
        self._warn("find")
        return drive(self.afind(key, partition=partition, stale=stale, timeout_s=timeout_s))

    async def afind(
        self, key: Any, *, partition: int | None = None, stale: bool = False, timeout_s: float | None = None
    ) -> FoundRow:
        """As `find`, awaited on the running loop."""
        data = await self._loaded(self._key_bytes, key)
        found = await self._asked([data], partition, stale, timeout_s)
        value = found.values[0]
        return FoundRow(
            None if value is None else await self._loaded(self._formats.read, value), *_fields(found.origin)
        )

    def many(
        self, keys: Iterable[Any], *, partition: int | None = None, stale: bool = False, timeout_s: float | None = None
    ) -> dict[Any, Any]:
        """Returns the committed rows of keys, by key; keys without a row are left out.

        The owners of the keys are asked one after another, each for all of its keys at once. Blocks, and raises as the
        class says: one partition without an answer is an error for all.
        """
        self._warn("many")
        return drive(self.amany(keys, partition=partition, stale=stale, timeout_s=timeout_s))

    async def amany(
        self, keys: Iterable[Any], *, partition: int | None = None, stale: bool = False, timeout_s: float | None = None
    ) -> dict[Any, Any]:
        """As `many`, awaited on the running loop."""
        wanted = {await self._loaded(self._key_bytes, key): key for key in keys}
        rows = dict[bytes, bytes]()
        for group in await self._together(wanted, partition):
            while group:
                found = await self._asked(group[:KEYS_MAX], partition, stale, timeout_s)
                rows.update({key: value for key, value in zip(group, found.values, strict=False) if value is not None})
                group = group[len(found.values) or 1 :]
        return {key: await self._loaded(self._formats.read, rows[data]) for data, key in wanted.items() if data in rows}

    # All rows.

    def scan(
        self, partition: int | None = None, *, stale: bool = False, timeout_s: float | None = None
    ) -> Generator[tuple[Any, Any], None, None]:
        """Yields the keys and values of a partition, or of one partition after another, in no order.

        A partition's rows are those of one moment. They come in pages: neither a reply nor this process holds a whole
        partition. `timeout_s` is the time for a partition, as long as it is read. Blocks, and raises as the class says;
        Unavailable: the partition moved to another process in between, begin again.
        """
        self._warn("scan")
        return _driven(self._pages(partition, stale, timeout_s))

    def ascan(
        self, partition: int | None = None, *, stale: bool = False, timeout_s: float | None = None
    ) -> AsyncGenerator[tuple[Any, Any], None]:
        """As `scan`, on the running loop: `async for key, value in table.ascan():`."""
        return _awaited(self._pages(partition, stale, timeout_s))

    async def _pages(self, partition: int | None, stale: bool, timeout_s: float | None) -> AsyncGenerator[Rows, None]:
        """Yields rows page by page. A flow."""
        numbers = range(await self._count()) if partition is None else [await self._known(partition)]
        with self._explained():
            await elsewhere(self._caller.__enter__)
        for number in numbers:
            expected: tuple[bytes, int] | None = None
            async with contextlib.aclosing(aiter(self._stream(number, stale, timeout_s))) as pages:
                with self._explained():
                    async for page in pages:
                        expected = self._checked(page, expected)
                        yield await self._loaded(self._read_rows, page)

    def close(self, timeout_s: float = 5.0) -> None:
        """Ends all queries. Blocks. Closing again does nothing."""
        self._caller.close(timeout_s)
        if self._own_schemas is not None:
            self._own_schemas.close()

    async def aclose(self, timeout_s: float = 5.0) -> None:
        """As `close`, on another thread, so that the running loop goes on."""
        await asyncio.to_thread(self.close, timeout_s)

    def __enter__(self) -> Self:
        with self._explained():
            self._caller.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<table {self.name!r} of app {self.app!r}, read from elsewhere>"

    # Shared by both.

    async def _opened(self) -> None:
        with self._explained():
            await self._caller.__aenter__()

    async def _asked(
        self, keys: list[bytes], partition: int | None, stale: bool, timeout_s: float | None
    ) -> FoundValues:
        """Asks the owner of the first of these keys for all of them. A flow."""
        under = keys[0] if partition is None else key_in(await self._known(partition), await self._count())
        with self._explained():
            found: FoundValues = await self._caller.acall(
                GET,
                RowLookup(keys, partition, stale),
                key=under,
                timeout_s=timeout_s,
                idempotent=True,
                argument=LOOKUP,
                returns=FOUND,
            )
        return found

    def _stream(self, partition: int, stale: bool, timeout_s: float | None) -> Any:
        assert self._partitions is not None
        return self._caller.stream(
            SCAN,
            RowScan(partition, stale),
            key=key_in(partition, self._partitions),
            timeout_s=timeout_s,
            argument=SCANNED,
            returns=PAGE,
        )

    def _checked(self, page: RowPage, expected: tuple[bytes, int] | None) -> tuple[bytes, int]:
        """Checks that a page follows the one before; returns what the next one has to be.

        A partition that has moved is scanned from its beginning by its new owner, in another order.
        """
        if (page.scan, page.number) != (expected or (page.scan, 0)):
            place = f"partition {page.origin.partition} of table {self.name!r} of app {self.app!r}"
            raise Unavailable(f"{place} was given to another process while it was scanned: scan it again")
        return page.scan, page.number + 1

    async def _together(self, keys: Iterable[bytes], partition: int | None) -> list[list[bytes]]:
        """Returns keys in groups, those of one partition together as far as it is known. A flow."""
        if partition is not None:
            return [list(keys)]
        if self._settings.kafka.get("partitioner", HASHED[0]) not in HASHED:
            return [[key] for key in keys]
        groups, count = dict[int, list[bytes]](), await self._count()
        for key in keys:
            groups.setdefault(partition_of(key, count), []).append(key)
        return list(groups.values())

    async def _known(self, partition: int) -> int:
        count = await self._count()
        if not 0 <= partition < count:
            text = f"table {self.name!r} of app {self.app!r} has the partitions 0 to {count - 1}, and not {partition!r}"
            raise ConfigError(text, "partition")
        return partition

    async def _count(self) -> int:
        """Returns the number of partitions; looks it up once. A flow."""
        if self._partitions is None:
            calls = self._topics.calls
            found: int = (await elsewhere(partitions_of, self._settings, [calls]))[calls]
            if not found:
                raise UnknownTopic(self._unknown(), 3, "UNKNOWN_TOPIC_OR_PART")
            self._partitions = found
        return self._partitions

    def _key_bytes(self, key: Any) -> bytes:
        """Returns a key as bytes, which are read back: of a key of another type there is never a row."""
        data = self._formats.encode_key(key)
        try:
            self._formats.read_key(data)
        except SchemaNeeded:
            raise
        except AwokeError as error:
            owner = f"table {self.name!r} of app {self.app!r}"
            raise EncodeError(f"{owner}: {type(key).__qualname__} is not the type of its keys: {error}") from None
        return data

    def _read_rows(self, page: RowPage) -> Rows:
        return [(self._formats.read_key(key), self._formats.read(value)) for key, value in page.rows]

    async def _loaded(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """Calls a function, and loads the schemas that it needs. A flow."""
        for _ in range(LOADS_MAX):
            try:
                return function(argument)
            except SchemaNeeded as needed:
                missing = needed
            await elsewhere(missing.load)
        return function(argument)

    def _warn(self, method: str) -> None:
        if _get_running_loop() is not None:
            warn_blocking(method, f"table.a{method}(…)", "Table")

    def _unknown(self) -> str:
        return (
            f"app {self.app!r} has no table {self.name!r} that answers queries on {self._settings.bootstrap_servers}: "
            f"there is no topic {self._topics.calls}, which the app makes when it starts, unless its setting "
            "table_queries is false"
        )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except UnknownTopic as error:
            raise UnknownTopic(self._unknown(), error.code, error.code_name) from None
        except RpcError as error:
            service = f"{service_of(self.app, self.name)}."
            if error.message.startswith(service):  # The words of a caller of services.
                what = error.message.removeprefix(service).partition(": ")[2]
                error.message = f"table {self.name!r} of app {self.app!r}: {what}"
                error.args = (error.message,)
            raise


def _fields(origin: RowOrigin) -> tuple[str, int, int | None, bool]:
    return origin.process, origin.partition, origin.offset, origin.is_stale


def _driven(pages: AsyncGenerator[Rows, None]) -> Generator[tuple[Any, Any], None, None]:
    """Yields the rows of pages, and blocks between them."""

    async def following() -> Rows | None:
        try:
            return await anext(pages)  # With a default, Python 3.11 leaves it running after an error.
        except StopAsyncIteration:
            return None

    try:
        while (page := drive(following())) is not None:
            yield from page
    finally:
        drive(pages.aclose())


async def _awaited(pages: AsyncGenerator[Rows, None]) -> AsyncGenerator[tuple[Any, Any], None]:
    """Yields the rows of pages, on the running loop."""
    async with contextlib.aclosing(pages):
        async for page in pages:
            for row in page:
                yield row


Table = RemoteTable
"""As users write it. In the code the name is that of the table that its app has."""

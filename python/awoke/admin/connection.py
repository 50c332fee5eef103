"""The connection of an admin client: its requests, and their errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from awoke import _native
from awoke.errors import ConfigError, KafkaError, kafka_error, permanent_codes
from awoke.observe.events import EventSource
from awoke.settings import KafkaValue, Settings, client_properties, load, origins
from awoke.settings.oauth import TokenFunction
from awoke.waiting.drive import ResultOf, elsewhere, is_driven, until

ASK_AGAIN_S = 0.05
"""The delay between two questions for something that may be new."""
LEADER_CODES = frozenset({3, 5, 6, 9, 56, 74, 75, 78})
"""Answers of a broker that does not lead a partition yet, or no more: unknown topic or partition, leader or replica not
available, not leader, storage error, fenced or unknown leader epoch, offset not available."""
UNSUPPORTED_CODES = frozenset({-165, 35})
"""A broker does not know the request: librdkafka's code, and the protocol's."""
ADVICE = "it needs Apache Kafka 2.4 or newer"

Metadata = tuple[list[tuple[int, str]], list[tuple[str, int, list[tuple[int, int, list[int], list[int]]]]]]
"""Brokers, and topics with an error's code and their partitions."""
Refusal = tuple[int, str, str]
"""Why an entry of a request failed: code, its name, and the broker's text."""
Entries = list[tuple[str, Refusal | None]]
Offsets = list[tuple[str, int, int, Refusal | None]]


class AdminOptions(NamedTuple):
    """The arguments of a client."""

    bootstrap_servers: str | None = None
    kafka: Mapping[str, KafkaValue] | None = None
    oauth_token: TokenFunction | None = None
    settings: Settings | None = None


class Connection:
    """An engine's admin client. Its coroutines are flows, see `awoke.waiting.drive`."""

    def __init__(self, options: AdminOptions) -> None:
        arguments = options._asdict()
        settings = arguments.pop("settings") or load(arguments).values
        self._source = EventSource()
        self._closed = threading.Event()
        try:
            # A request for metadata must not create a topic: a misspelt name would not be noticed.
            properties = client_properties(settings)
            properties.setdefault("allow.auto.create.topics", "false")
            with origins.named():
                self._native = _native.Admin(properties, self._source.box)
        except BaseException:
            self._source.close()
            raise

    async def metadata(self, topic: str | None, timeout_s: float) -> Metadata:
        """Asks a broker for one topic, or for all, and for all brokers. A signal ends the wait of the main thread."""
        with origins.named():
            if is_driven() and threading.current_thread() is threading.main_thread():
                return _beside_main_thread(partial(self._native.metadata, topic, timeout_s))
            return await elsewhere(self._native.metadata, topic, timeout_s)

    async def request(self, kind: str, arguments: object, timeout_s: float, what: str) -> Any:
        """Sends a request of the engine's and returns its answer. `what` names the operation in errors.

        Raises:
            ConfigError: librdkafka refuses an argument.
        """
        try:
            with origins.named():
                return await until(ResultOf(self._native.request(kind, arguments, timeout_s)))
        except ValueError as error:
            raise ConfigError(f"{what}: {error}") from None
        except KafkaError as error:
            if error.code not in UNSUPPORTED_CODES:
                raise
            text = f"{what}: the brokers do not know this request; {ADVICE}"
            raise KafkaError(text, error.code, error.code_name) from None

    async def again(self) -> bool:
        """Waits a moment before something is asked again; returns False if the client was closed."""
        return not await until(_Pause(self._closed, ASK_AGAIN_S))

    def close(self) -> None:
        """Ends the client and every wait. Closing again does nothing. Usable from any thread."""
        self._closed.set()
        self._native.close()
        self._source.close()


def _beside_main_thread(ask: Callable[[], Metadata]) -> Metadata:
    """Asks on a thread of its own. librdkafka (2.12.1) waits for metadata in one call, which no signal ends.

    After a signal whose handler raises, the thread goes on by itself until the time is up.
    """
    answer: Future[Metadata] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=run, name="awoke-asking", daemon=True)
    thread.start()
    found = answer.result()
    thread.join()
    return found


class _Pause:
    """A short wait that a thread ends when the client is closed; returns whether it is."""

    def __init__(self, closed: threading.Event, delay_s: float) -> None:
        self._closed, self._delay_s = closed, delay_s

    def wait(self) -> bool:
        """Waits on the calling thread."""
        return self._closed.wait(self._delay_s)

    def __await__(self) -> Generator[Any, Any, bool]:
        yield from asyncio.sleep(self._delay_s).__await__()
        return self._closed.is_set()


def check(entries: Entries, what: str) -> None:
    """Raises the first error of an answer; `what` is the operation, before the name of an entry."""
    for name, refusal in entries:
        if refusal is not None:
            raise refused(f"{what} {name!r}" if name else what, refusal)


def check_offsets(offsets: Offsets, what: str) -> None:
    """Raises the first error of an answer about partitions; `what` is the operation."""
    for topic, partition, _, refusal in offsets:
        if refusal is not None:
            raise refused(f"{what}: {topic}[{partition}]" if topic else what, refusal)


def refused(what: str, refusal: Refusal) -> KafkaError:
    """Returns the error of one entry."""
    code, code_name, text = refusal
    if code in UNSUPPORTED_CODES:
        return KafkaError(f"{what}: the brokers do not know this request; {ADVICE}", code, code_name)
    return kafka_error(f"{what}: {text or code_name}", code, code_name, code in LEADER_CODES - permanent_codes())

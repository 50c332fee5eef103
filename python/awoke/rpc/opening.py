"""Opens a caller: checks the service's topics and finds the caller's place on the reply topic.

A constructor that ran on an event loop's thread would block the loop. There the caller has an `Unopened` instead of the
engine's caller until `async with`, `await Caller.open(…)` or its first use opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypedDict

from awoke import _native
from awoke.errors import RpcError
from awoke.events import Events, EventSource
from awoke.oauth import TokenFunction
from awoke.rpc import topics
from awoke.rpc.protocol import Topics
from awoke.rpc.retries import Retries
from awoke.secrets import shown_repr
from awoke.settings import KafkaValue, Settings, client_properties

DELIVERY_TIMEOUT = {"message.timeout.ms": "30000"}
"""A request that was not sent by then is dropped, and its call, if it still waits, ends with Unavailable."""


class CallerOptions(TypedDict, total=False):
    """The arguments of `Caller` that go by name."""

    name: str
    group: str | None
    checks_group: bool
    timeout_s: float
    retries: Retries | None
    idempotent: Iterable[str]
    errors: Iterable[type[RpcError]]
    secret: bytes | None
    calls_max: int
    bytes_max: int
    reply_bytes_max: int
    window: int
    create_topics: bool
    partitions: int
    kafka: Mapping[str, KafkaValue] | None
    oauth_token: TokenFunction | None
    settings: Settings | None
    events: Events | None


class Whom(NamedTuple):
    """Whom a caller asks, as the engine is told."""

    calls_topic: str
    replies_topic: str
    group: str
    """Empty: it is not looked at."""
    name: str
    calls_max: int
    bytes_max: int
    reply_bytes_max: int
    secret: bytes | None

    def __repr__(self) -> str:
        return shown_repr(self, self._fields)


class Opening(NamedTuple):
    """Everything that it takes to open a caller."""

    service: str
    settings: Settings
    whom: Whom
    events: Events | None
    creates_topics: bool
    partitions: int

    def open(self) -> tuple[_native.Caller, EventSource]:
        """Connects. Blocks up to `startup_timeout_s`, and as long for each topic.

        Raises:
            ConfigError, BrokerUnreachable; UnknownTopic: the service's topics are not there.
        """
        settings, at = self.settings, Topics.of(self.service)
        if self.creates_topics:
            topics.ensure(settings, at, self.partitions)
        else:
            topics.check(settings, self.service, at)
        source = EventSource(self.events)
        try:
            consuming, timeout_s = client_properties(settings), settings.startup_timeout_s
            native = _native.Caller(self._producing(), consuming, self.whom, timeout_s, source.box)
        except BaseException:
            source.close()
            raise
        return native, source

    def _producing(self) -> dict[str, str]:
        # Two names of one property: setting either decides.
        kafka = self.settings.kafka
        is_decided = any(name in kafka for name in ("message.timeout.ms", "delivery.timeout.ms"))
        timeout = {} if is_decided else DELIVERY_TIMEOUT
        return client_properties(self.settings, **{"linger.ms": "0", **timeout, **kafka})


class Unopened:
    """Stands for the engine's caller before the first use, which opens it. Then it blocks."""

    def __init__(self, open_now: Callable[[], _native.Caller]) -> None:
        self._open_now = open_now

    def call(self, *args: Any, **options: Any) -> _native.Call | None:
        """As the engine's."""
        return self._open_now().call(*args, **options)

    def ask(self, *args: Any) -> tuple[str, bytes | str | None, str | None]:
        """As the engine's."""
        return self._open_now().ask(*args)

    def cast(self, *args: Any, **options: Any) -> _native.DeliveryHandle:
        """As the engine's."""
        return self._open_now().cast(*args, **options)

    def replies_at(self) -> tuple[str, int]:
        """As the engine's."""
        return self._open_now().replies_at()

    def open_calls(self) -> int:
        """Returns 0. Does not block."""
        return 0

    def counters(self) -> dict[str, int]:
        """Returns no counters. Does not block."""
        return {}

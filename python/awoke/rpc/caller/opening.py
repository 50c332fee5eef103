"""Opens a caller: checks the service's topics and finds the caller's place on the reply topic.

A constructor that ran on an event loop's thread would block the loop. There `async with`, `await Caller.open(…)` or
the first call opens the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypedDict

from awoke import _native
from awoke.errors import RpcError
from awoke.observe.events import Events, EventSource
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc import topics
from awoke.rpc.caller.retries import Retries
from awoke.rpc.protocol import LINGER, Topics
from awoke.settings import KafkaValue, Settings, client_properties
from awoke.settings.oauth import TokenFunction
from awoke.text.secrets import shown_repr

DELIVERY_TIMEOUT = {"message.timeout.ms": "30000"}
"""A request that was not delivered by then is dropped, and its call, if it still waits, ends with Unavailable."""


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
    schemas: Schemas | None


class ServiceAddress(NamedTuple):
    """The service that a caller calls, and the caller's bounds, as the engine takes them."""

    calls_topic: str
    replies_topic: str
    group: str
    """Empty: it is not looked up."""
    name: str
    calls_max: int
    bytes_max: int
    reply_bytes_max: int
    secret: bytes | None

    def __repr__(self) -> str:
        return shown_repr(self, self._fields)


class Opening(NamedTuple):
    """Opens a caller."""

    service: str
    settings: Settings
    address: ServiceAddress
    events: Events | None
    creates_topics: bool
    partitions: int

    def open(self) -> tuple[_native.Caller, EventSource]:
        """Connects; returns the engine's caller and its events.

        Blocks up to `startup_timeout_s`, and as long for each topic.

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
            native = _native.Caller(self._producing(), consuming, self.address, timeout_s, source.box)
        except BaseException:
            source.close()
            raise
        return native, source

    def _producing(self) -> dict[str, str]:
        # Two names of one property: setting either decides.
        kafka = self.settings.kafka
        is_decided = any(name in kafka for name in ("message.timeout.ms", "delivery.timeout.ms"))
        timeout = {} if is_decided else DELIVERY_TIMEOUT
        return client_properties(self.settings, **{**LINGER, **timeout, **kafka})

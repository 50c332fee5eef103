"""librdkafka's measurements of its brokers, from the JSON of its event `client.statistics`.

The event comes every `statistics.interval.ms` (librdkafka's property; 5 s where metrics are served, else not at all).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from awoke.observe.events import ClientStatistics


class Window(msgspec.Struct, frozen=True):
    """Times of the last interval, of librdkafka's JSON."""

    avg: int = 0
    """In microseconds."""


class Broker(msgspec.Struct, frozen=True):
    """A broker of librdkafka's JSON."""

    nodeid: int = -1
    nodename: str = ""
    state: str = ""
    txbytes: int = 0
    rxbytes: int = 0
    txretries: int = 0
    txerrs: int = 0
    rxerrs: int = 0
    req_timeouts: int = 0
    int_latency: Window = Window()
    rtt: Window = Window()


class ClientNumbers(msgspec.Struct, frozen=True):
    """A client of librdkafka's JSON."""

    type: str
    brokers: Mapping[str, Broker] = {}


class BrokerStatistics(msgspec.Struct, frozen=True):
    """One broker as one client sees it. Counts are since the client was made, times are means of the last interval."""

    client: str
    """`producer` or `consumer`."""
    broker: str
    """Its address."""
    is_connected: bool
    queue_s: float
    """From `produce` to the request that carries the message."""
    round_trip_s: float
    sent_bytes: int
    received_bytes: int
    retries: int
    """Requests that were sent again."""
    errors: int
    """Requests that failed, timed out, or had an invalid answer."""

    def plus(self, other: BrokerStatistics) -> BrokerStatistics:
        """Returns the same broker as both clients see it."""
        return BrokerStatistics(
            client=self.client,
            broker=self.broker,
            is_connected=self.is_connected or other.is_connected,
            queue_s=max(self.queue_s, other.queue_s),
            round_trip_s=max(self.round_trip_s, other.round_trip_s),
            sent_bytes=self.sent_bytes + other.sent_bytes,
            received_bytes=self.received_bytes + other.received_bytes,
            retries=self.retries + other.retries,
            errors=self.errors + other.errors,
        )


_decoder = msgspec.json.Decoder(ClientNumbers)


def brokers_of(event: ClientStatistics) -> list[BrokerStatistics]:
    """Returns the brokers of a `client.statistics` event.

    Raises:
        msgspec.DecodeError: librdkafka changed what it writes.
    """
    client = _decoder.decode(event.json)
    return [
        BrokerStatistics(
            client=client.type,
            broker=broker.nodename,
            is_connected=broker.state == "UP",
            queue_s=broker.int_latency.avg / 1e6,
            round_trip_s=broker.rtt.avg / 1e6,
            sent_bytes=broker.txbytes,
            received_bytes=broker.rxbytes,
            retries=broker.txretries,
            errors=broker.txerrs + broker.rxerrs + broker.req_timeouts,
        )
        for broker in client.brokers.values()
        if broker.nodeid >= 0 and broker.nodename
    ]


def merged(found: Iterable[BrokerStatistics]) -> dict[tuple[str, str], BrokerStatistics]:
    """Returns the brokers by kind of client and address: counts of several clients are added, times are the longest."""
    brokers: dict[tuple[str, str], BrokerStatistics] = {}
    for each in found:
        key = (each.client, each.broker)
        other = brokers.get(key)
        brokers[key] = each if other is None else each.plus(other)
    return brokers

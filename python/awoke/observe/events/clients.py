"""Events of Kafka clients: errors, log lines, statistics, transactions."""

from __future__ import annotations

import logging
from typing import ClassVar

from awoke.observe.events.event import Counter, Event

__all__ = [
    "ClientError",
    "ClientLog",
    "ClientStatistics",
    "DeliveryLost",
    "OutputBlocked",
    "OutputUnblocked",
    "ProducerReplaced",
    "TransactionAbort",
]


class ClientError(Event, frozen=True, kw_only=True):
    """A client has an error; debug where it only repeats one, error where `is_fatal`: the app stops."""

    name: ClassVar[str] = "client.error"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "see `text`"
    client: str
    code: int
    code_name: str
    text: str
    is_fatal: bool

    @property
    def log_level(self) -> int:
        """ERROR where it is fatal."""
        return logging.ERROR if self.is_fatal else self.usual_level


class ClientLog(Event, frozen=True, kw_only=True):
    """librdkafka writes a line, which goes to the logger `awoke.librdkafka`."""

    name: ClassVar[str] = "client.log"
    client: str
    level: int
    """syslog's: 0 for an emergency, 7 for debugging."""
    facility: str
    text: str

    @property
    def log_level(self) -> int:
        """logging's level for librdkafka's; DEBUG for a line that another event repeats or that warns in vain.

        Producers and consumers get one set of properties, and librdkafka warns of those of the other kind (CONFWARN). A
        connection that failed (FAIL) is an event `client.error`, too.
        """
        if self.facility in ("CONFWARN", "FAIL"):
            return logging.DEBUG
        if self.level <= 3:
            return logging.ERROR
        return {4: logging.WARNING, 5: logging.INFO, 6: logging.INFO}.get(self.level, logging.DEBUG)


class ClientStatistics(Event, frozen=True, kw_only=True):
    """librdkafka's statistics, every `statistics.interval.ms`."""

    name: ClassVar[str] = "client.statistics"
    client: str
    json: str


class DeliveryLost(Event, frozen=True, kw_only=True):
    """Messages were not delivered, and their handles were not looked at; debug where the log has such a line already.

    A transaction that fails with its messages is `transaction.aborted` instead.
    """

    name: ClassVar[str] = "delivery.lost"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "send them again, if they matter; keep the handle of `produce`, and wait for it or await it"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_lost_messages_total",
        "Messages that were not delivered, and whose handles were not looked at.",
        {"topic": "topic", "code": "code_name"},
    )
    client: str
    topic: str
    code: int
    code_name: str
    text: str
    messages: int

    @property
    def increment(self) -> int:
        """The number of messages."""
        return self.messages


class OutputBlocked(Event, frozen=True, kw_only=True):
    """Nothing that was sent to a partition is acknowledged: `messages` wait, the first for `for_s` seconds at least.

    It is told of all that the process sends: outputs, dead letters, replies, requests, and what user code produces. The
    partition is -1 while no broker tells the topic's partitions.
    """

    name: ClassVar[str] = "output.blocked"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "look at the partition's leader and its in-sync replicas (`min.insync.replicas`)"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_blocked_outputs_total", "Partitions that were found to acknowledge nothing.", {"topic": "topic"}
    )
    client: str
    topic: str
    partition: int
    messages: int
    for_s: float
    text: str


class OutputUnblocked(Event, frozen=True, kw_only=True):
    """A partition acknowledges messages again, or no message waits for it any more; `text` says which."""

    name: ClassVar[str] = "output.unblocked"
    usual_level: ClassVar[int] = logging.INFO
    client: str
    topic: str
    partition: int
    text: str


class ProducerReplaced(Event, frozen=True, kw_only=True):
    """The connection of a transactional producer was replaced."""

    name: ClassVar[str] = "producer.replaced"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "nothing, unless it repeats"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_replaced_producers_total", "Connections of transactional producers that were replaced."
    )
    client: str
    reason: str


class TransactionAbort(Event, frozen=True, kw_only=True):
    """A transaction was aborted; no reader of committed messages sees any of it."""

    name: ClassVar[str] = "transaction.aborted"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "nothing: it is tried again"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_aborted_transactions_total", "Transactions that were aborted by an error.", {"code": "code_name"}
    )
    client: str
    code: int
    code_name: str
    text: str

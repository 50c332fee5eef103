"""The relay of the outbox: sends each row to Kafka once, whenever its process dies.

Its loop, in `Relay.run`:

1. waits for the lock that only one relay has (PostgreSQL), and listens for new rows;
2. opens a transactional producer, which ends what an earlier relay had not committed, and reads the *marker*: the last
   message of the marker's topic, which names the rows of the last transaction that was committed;
3. deletes these rows: the relay that sent them may have died before it could;
4. sends the next rows and a marker in one transaction of Kafka, then deletes the rows; again, until there are none.
   The first time it then tries whether it hears of rows: a pool between it and the server may keep it from that;
5. waits until PostgreSQL tells of new rows, or the relay is to stop. After an error, from the beginning, with a
   back-off.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import DatabaseError, connections

import awoke
from awoke.declare.starts import Start
from awoke.django.models import OutboxMessage
from awoke.django.outbox import CHANNEL
from awoke.errors import AwokeError, ConfigError, UnknownTopic
from awoke.text.json_bytes import bytes_of_json
from awoke.waiting.backoff import Backoff

logger = logging.getLogger(__name__)

ROWS_MAX = 500
"""The most rows of one transaction."""
UID_BYTES = 16
ECHO = "awoke_outbox_echo"
"""The channel on which a relay tries whether it hears what is told."""
ECHO_WITHIN_S = 10.0
LOST_AFTER_S = 30
"""A connection on which nothing comes is tried after this time. The system's own time is two hours, in which a relay
would listen on a connection that a firewall, or a server that was cut off, has forgotten."""
TRY_EVERY_S, TRIES = 10, 3
LOCK = 0x61776F6B65
"""The number of PostgreSQL's advisory lock."""
MARKERS: tuple[Start, ...] = (-10, -1_000, "earliest")
"""Where the last marker is looked for: transactions that were aborted may follow it."""


class NotHeard(ConfigError):
    """The server tells of new rows, and this relay does not hear it: it would wait for ever."""


class Relay:
    """Sends the rows of one database. One thread; `stop` may be called on any, and in the handler of a signal.

    `name` is the topic of the markers, which is created if it is missing, and the transactional id. Relays of one
    outbox have one name: a later one fences an earlier one.
    """

    def __init__(
        self, app: awoke.App, *, using: str = "default", name: str = "awoke.outbox", rows_max: int = ROWS_MAX
    ) -> None:
        self._app, self._using, self._name, self._rows_max = app, using, name, rows_max
        self._connection = connections[using]
        self._waking, self._woken = socket.socketpair()
        self._is_stopping = False

    def stop(self) -> None:
        """Makes `run` return after the current transaction. Does not block."""
        self._is_stopping = True
        with contextlib.suppress(OSError):  # It has returned.
            self._waking.send(b"\0")

    def run_once(self) -> int:
        """Sends all rows that are there; returns their number. Blocks. For every database of Django's.

        Raises:
            AwokeError: Kafka refuses a message, or is away; DatabaseError. No row is lost or sent twice then.
        """
        with self._producer() as producer:
            return self._send_all(producer)

    def run(self) -> None:
        """Sends rows until `stop`. Blocks. Only for PostgreSQL, which tells of new rows.

        Errors of Kafka and of the database are logged, and tried again.

        Raises:
            ConfigError: another database: call `run_once` there; or the server can't tell this relay of new rows.
        """
        if self._connection.vendor != "postgresql":
            text = f"the database {self._using!r} does not tell of new rows: only PostgreSQL does; use --once here"
            raise ConfigError(text, "outbox")
        backoff, failures = Backoff(), 0
        try:
            while not self._is_stopping:
                try:
                    for _ in self._sessions():
                        failures = 0
                except NotHeard:
                    raise
                except (AwokeError, DatabaseError) as error:
                    failures += 1
                    logger.error("the outbox is not sent now, and tried again: %s", error)
                    self._connection.close()
                    self._wait(backoff.delay_s(failures))
        finally:
            self._connection.close()
            self._waking.close()
            self._woken.close()

    def _sessions(self) -> Iterator[int]:
        """Sends until the relay stops, on one connection to the database; yields the rows of each round."""
        with self._connection.cursor() as cursor:
            notice_loss(self._connection.connection.fileno(), self._connection.settings_dict.get("OPTIONS", {}))
            if not self._lock(cursor):
                return
            cursor.execute(f"LISTEN {CHANNEL}")
        with self._producer() as producer:
            yield self._send_all(producer)
            self._check_hearing()
            while not self._is_stopping:
                yield self._send_all(producer)
                self._wait_for_rows()

    def _check_hearing(self) -> None:
        """Tells itself something, and waits until it hears it. Blocks.

        Raises:
            NotHeard: It does not hear it.
        """
        raw = self._connection.connection
        with self._connection.cursor() as cursor:
            cursor.execute(f"LISTEN {ECHO}")
            cursor.execute(f"NOTIFY {ECHO}")
        if not any(notice.channel == ECHO for notice in raw.notifies(timeout=ECHO_WITHIN_S)):
            text = (
                f"the database {self._using!r} does not tell this relay of new rows: connect it without a pool that "
                "changes connections between transactions (pgbouncer), and with AUTOCOMMIT"
            )
            raise NotHeard(text, "outbox")

    def _lock(self, cursor: Any) -> bool:
        """Waits for the lock of the relays, which ends with the connection; returns false if the relay stops."""
        raw = self._connection.connection
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        if cursor.fetchone()[0]:
            return True
        logger.info("another relay sends the outbox: this one waits for its end")
        with self._connection.wrap_database_errors:
            return self._wait_for_lock(raw.pgconn)

    def _wait_for_lock(self, server: Any) -> bool:
        """Asks without waiting for the answer: the thread waits for that and for `stop` at once."""
        server.send_query(b"SELECT pg_advisory_lock(%d)" % LOCK)
        server.flush()
        while server.is_busy():
            if self._woken in select.select([server.socket, self._woken], [], [])[0]:
                self._connection.close()  # The server drops the question.
                return False
            server.consume_input()
        while (result := server.get_result()) is not None:
            if result.error_message:
                raise DatabaseError(result.error_message.decode())
        return True

    def _wait_for_rows(self) -> None:
        """Waits until rows were committed, or the relay stops. Blocks without a limit: the server or `stop` ends it."""
        raw = self._connection.connection
        if raw is None:
            raise DatabaseError("the connection to the database was closed")
        with self._connection.wrap_database_errors:
            if not any(raw.notifies(timeout=0)):  # Rows may have come since they were read.
                select.select([raw.fileno(), self._woken], [], [])
                list(raw.notifies(timeout=0))

    def _wait(self, delay_s: float) -> None:
        select.select([self._woken], [], [], delay_s)

    @contextlib.contextmanager
    def _producer(self) -> Iterator[awoke.Producer]:
        """Opens the producer of the markers' name, and deletes the rows of the last marker."""
        self._make_topic()
        with awoke.Producer(settings=self._app.settings, transactional_id=self._name) as producer:
            with producer.transaction():
                pass  # From here on no earlier relay can commit.
            OutboxMessage.objects.using(self._using).filter(uid__in=self._marked()).delete()
            yield producer

    def _make_topic(self) -> None:
        settings = self._app.settings
        with awoke.Admin(settings=settings) as admin:
            try:
                admin.describe_topic(self._name, settings.startup_timeout_s)
            except UnknownTopic:
                admin.create_topic(self._name, config={"cleanup.policy": "compact"})

    def _marked(self) -> list[uuid.UUID]:
        """Returns the rows that the last committed transaction has sent."""
        settings = self._app.settings
        options = {"kafka": settings.kafka, "oauth_token": settings.oauth_token}
        for start in MARKERS:
            with awoke.Reader(
                self._name, bootstrap_servers=settings.bootstrap_servers, start=start, **options
            ) as reader:
                found = list(reader.read_until_end(settings.startup_timeout_s))
            if found:
                text = bytes(found[-1].value)
                return [uuid.UUID(bytes=text[at : at + UID_BYTES]) for at in range(0, len(text), UID_BYTES)]
        return []

    def _send_all(self, producer: awoke.Producer) -> int:
        sent = 0
        while not self._is_stopping and (rows := self._next()):
            with producer.transaction() as messages:
                for row in rows:
                    messages.produce(
                        row.topic,
                        _bytes(row.value),
                        key=_bytes(row.key),
                        headers=[(name, bytes_of_json(each)) for name, each in row.headers],
                        partition=row.partition,
                        timestamp_ms=row.timestamp_ms,
                    )
                messages.produce(self._name, b"".join(row.uid.bytes for row in rows), key=self._name)
            OutboxMessage.objects.using(self._using).filter(pk__in=[row.pk for row in rows]).delete()
            sent += len(rows)
        return sent

    def _next(self) -> Sequence[OutboxMessage]:
        return list(OutboxMessage.objects.using(self._using).order_by("id")[: self._rows_max])


def notice_loss(descriptor: int, options: Mapping[str, Any]) -> None:
    """Makes the system notice within a minute that a connection is lost, unless its options say other times."""
    if any(name.startswith("keepalives") or name == "tcp_user_timeout" for name in options):
        return
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in (("IDLE", LOST_AFTER_S), ("INTVL", TRY_EVERY_S), ("CNT", TRIES)):
                if hasattr(socket, f"TCP_KEEP{name}"):
                    connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_KEEP{name}"), value)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)

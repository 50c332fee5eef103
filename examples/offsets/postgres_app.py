"""Payments go to PostgreSQL, each exactly once: rows and offset are one transaction of the database.

`pip install "psycopg[binary]"`, then `LEDGER=postgresql://… awoke run examples.offsets.postgres_app:app` reads the
topic `payments`.
"""

from __future__ import annotations

import os

import msgspec
import psycopg

import awoke

LEDGER = os.environ.get("LEDGER", "postgresql://localhost/ledger")

TABLES = """
CREATE TABLE IF NOT EXISTS payments (number BIGINT, account TEXT, amount BIGINT);
CREATE TABLE IF NOT EXISTS offsets (
    topic TEXT, partition INTEGER, next_offset BIGINT NOT NULL, PRIMARY KEY (topic, partition)
);
"""
ADD_OFFSET = "INSERT INTO offsets VALUES (%s, %s, 0) ON CONFLICT DO NOTHING"
LOCK_OFFSET = "SELECT next_offset FROM offsets WHERE topic = %s AND partition = %s FOR UPDATE"
WRITE_OFFSET = "UPDATE offsets SET next_offset = %s WHERE topic = %s AND partition = %s"
WRITE_PAYMENT = "INSERT INTO payments VALUES (%s, %s, %s)"

Connection = psycopg.Connection[tuple[int, ...]]


class Payment(msgspec.Struct):
    """The values of topic `payments`."""

    number: int
    account: str
    amount: int


app = awoke.App("ledger")


def connect() -> Connection:
    """Opens a connection whose transactions end with a process that is frozen, and do not hold up its successor."""
    return psycopg.connect(LEDGER, autocommit=True, options="-c idle_in_transaction_session_timeout=10s")


@app.on_startup
def create_tables() -> None:
    """Creates the tables before the app joins its group."""
    with connect() as db:
        db.execute(TABLES)


@app.consumer("payments", value=Payment)
class Ledger(awoke.Consumer):
    """Writes the payments of one partition. psycopg's connections may be used on any thread, by one at a time."""

    db: Connection | None = None

    def assigned(self) -> None:
        """Reading begins where the database says, whatever the group has committed."""
        db = self.connection()
        db.execute(ADD_OFFSET, (self.topic, self.partition))
        self.seek(self.next_offset(db) or "earliest")

    def connection(self) -> Connection:
        """Returns this partition's connection: a new one after the server has closed the last."""
        if self.db is None or self.db.closed:
            self.db = connect()
        return self.db

    def next_offset(self, db: Connection) -> int:
        """Returns the offset after the last message that is in the database; waits for a transaction that writes it."""
        row = db.execute(LOCK_OFFSET, (self.topic, self.partition)).fetchone()
        assert row is not None, "assigned() adds it"
        return row[0]

    def consume(self, batch: awoke.Batch[Payment]) -> None:
        """Writes the batch; should that raise, it comes again."""
        self.write(list(batch))

    def write(self, messages: list[awoke.Message[Payment]]) -> None:
        """Writes payments and offset in one transaction, which leaves nothing if it raises."""
        db = self.connection()
        with db.transaction(), db.cursor() as cursor:
            first = self.next_offset(db)  # From here on this is the partition's only writer.
            new = [message.value for message in messages if message.offset >= first]
            if new:
                cursor.executemany(WRITE_PAYMENT, [(each.number, each.account, each.amount) for each in new])
                cursor.execute(WRITE_OFFSET, (messages[-1].offset + 1, self.topic, self.partition))

    def revoked(self) -> None:
        """Closes the connection."""
        if self.db is not None:
            self.db.close()

    lost = shutdown = revoked

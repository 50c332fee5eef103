"""Payments go to SQLite, each exactly once: rows and offset are one transaction of the database.

`LEDGER=ledger.sqlite awoke run examples.offsets.sqlite_app:app` reads the topic `payments`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

import msgspec

import awoke

LEDGER = os.environ.get("LEDGER", "ledger.sqlite")

TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS payments (number INTEGER, account TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS offsets (
    topic TEXT, partition INTEGER, next_offset INTEGER NOT NULL, PRIMARY KEY (topic, partition)
);
"""
READ_OFFSET = "SELECT next_offset FROM offsets WHERE topic = ? AND partition = ?"
WRITE_OFFSET = "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)"
WRITE_PAYMENT = "INSERT INTO payments VALUES (?, ?, ?)"


class Payment(msgspec.Struct):
    """The values of topic `payments`."""

    number: int
    account: str
    amount: int


app = awoke.App("ledger")


@app.on_startup
def create_tables() -> None:
    """Creates the tables before the app joins its group."""
    with contextlib.closing(sqlite3.connect(LEDGER, timeout=30)) as db:
        db.executescript(TABLES)


@app.consumer("payments", value=Payment, own_thread=True)
class Ledger(awoke.Consumer):
    """Writes the payments of one partition. sqlite3 wants its connection used on the thread that opened it."""

    def assigned(self) -> None:
        """Reading begins where the database says, whatever the group has committed."""
        self.db = sqlite3.connect(LEDGER, timeout=30, isolation_level=None)
        self.seek(self.next_offset() or "earliest")

    def next_offset(self) -> int:
        """Returns the offset after the last message that is in the database; 0 if there is none."""
        row = self.db.execute(READ_OFFSET, (self.topic, self.partition)).fetchone()
        return 0 if row is None else int(row[0])

    def consume(self, batch: awoke.Batch[Payment]) -> None:
        """Writes the batch; should that raise, it comes again."""
        self.write(list(batch))

    def write(self, messages: list[awoke.Message[Payment]]) -> None:
        """Writes payments and offset in one transaction, which leaves nothing if it raises."""
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")  # From here on this is the only writer.
            first = self.next_offset()
            new = [message.value for message in messages if message.offset >= first]
            if new:
                self.db.executemany(WRITE_PAYMENT, [(each.number, each.account, each.amount) for each in new])
                self.db.execute(WRITE_OFFSET, (self.topic, self.partition, messages[-1].offset + 1))

    def revoked(self) -> None:
        """Closes the connection."""
        self.db.close()

    lost = shutdown = revoked

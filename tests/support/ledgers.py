"""The databases that the examples with offsets outside Kafka write to, and what a test asks of them."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Protocol

from tests.support.postgres import Postgres


class Database(Protocol):
    """The questions of a test to a ledger."""

    example: str
    url: str

    def rows(self, query: str) -> list[tuple[int, ...]]: ...


class Sqlite:
    """A file."""

    example = "sqlite_app"

    def __init__(self, file: Path) -> None:
        self.url = str(file)

    def rows(self, query: str) -> list[tuple[int, ...]]:
        """Returns what the query finds."""
        with contextlib.closing(sqlite3.connect(self.url, timeout=30)) as db:
            return db.execute(query).fetchall()


class PostgresDatabase:
    """A server."""

    example = "postgres_app"

    def __init__(self, server: Postgres) -> None:
        self.server, self.url = server, server.url

    def rows(self, query: str) -> list[tuple[int, ...]]:
        """Returns what the query finds."""
        import psycopg  # Here: there is none for each Python.

        with psycopg.connect(self.url) as db:
            return db.execute(query.encode()).fetchall()


def numbers(database: Database) -> list[int]:
    """Returns the numbers of all payments in the database, sorted."""
    return [number for (number,) in database.rows("SELECT number FROM payments ORDER BY number")]


def offsets(database: Database) -> dict[int, int]:
    """Returns the offsets in the database by partition."""
    rows = database.rows("SELECT partition, next_offset FROM offsets")
    return {row[0]: row[1] for row in rows}

"""A stock in SQLite: each handler gets a transaction, a header and a logger; several handlers share one topic.

Run it without anything else: `python -m examples.arguments` brings its own broker.
"""

from __future__ import annotations

import logging
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec

import awoke
from awoke.testing import EmbeddedCluster, running


class Delivered(msgspec.Struct, tag=True):
    """Goods that have come."""

    article: str
    count: int


class Sold(msgspec.Struct, tag=True):
    """Goods that have gone."""

    article: str
    count: int


FILE = tempfile.NamedTemporaryFile(suffix=".db")  # noqa: SIM115 - it lasts as long as the program.
app = awoke.App("stock")
seen = threading.Barrier(2)


def database() -> Iterator[sqlite3.Connection]:
    """Opens the database once for each partition: jobs of several partitions run on several threads."""
    connection = sqlite3.connect(FILE.name, check_same_thread=False)
    connection.execute(
        "create table if not exists stock (article text primary key, count integer not null check (count >= 0))"
    )
    yield connection
    connection.close()


def transaction(
    database: Annotated[sqlite3.Connection, awoke.Depends(database, "assignment")],
) -> Iterator[sqlite3.Connection]:
    """Commits before the message counts as done, and rolls back where its handler raises."""
    with database:
        yield database


Transaction = Annotated[sqlite3.Connection, awoke.Depends(transaction)]
Clerk = Annotated[str, awoke.Header("clerk")]

changes = awoke.Handlers()


@changes.of_type(Delivered)
def add(change: awoke.Value[Delivered], stock: Transaction, clerk: Clerk, logger: logging.Logger) -> str:
    """Adds to the stock."""
    logger.info("%s books %s", clerk, change)
    count = "insert into stock values (?, ?) on conflict do update set count = count + excluded.count"
    stock.execute(count, (change.article, change.count))
    return f"{clerk}: {change.count} {change.article} came"


@changes.of_type(Sold)
def take(change: awoke.Value[Sold], stock: Transaction, clerk: Clerk = "the shop") -> Iterator[str]:
    """Takes from the stock; the database refuses what is not there."""
    stock.execute("update stock set count = count - ? where article = ?", (change.count, change.article))
    (left,) = stock.execute("select count from stock where article = ?", (change.article,)).fetchone()
    yield f"{clerk}: {change.count} {change.article} went"
    if left < 3:
        yield f"only {left} {change.article} left"


app.on("changes", output="news", dead_letter="changes.dead", retry=awoke.Retry(attempts=1))(changes)


@app.incoming
def count(message: awoke.Message[Any], call_next: Callable[[Any], Any]) -> Any:
    """Shows what the database refuses."""
    try:
        return call_next(message)
    except sqlite3.Error as error:
        print(f"refused: {error}")
        raise


@app.on("news")
def show(news: awoke.Value[str]) -> None:
    """Shows what has happened."""
    print(news)
    if news.startswith("only"):
        seen.wait(30)


def main() -> None:
    """Books three changes, one of which is refused."""
    with EmbeddedCluster() as cluster:
        for topic in ("changes", "news", "changes.dead"):
            cluster.create_topic(topic)
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            app.producer.produce("changes", Delivered("pear", 5), headers={"clerk": "Ada"}).wait()
            app.producer.produce("changes", Sold("pear", 9)).wait()
            app.producer.produce("changes", Sold("pear", 3)).wait()
            seen.wait(30)


if __name__ == "__main__":
    main()

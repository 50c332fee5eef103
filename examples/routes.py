"""Shows routes: a router with a prefix, a pattern, several handlers of one topic, and middleware around them.

Run it without anything else: `python -m examples.routes` brings its own broker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec

import awoke
from awoke.testing import EmbeddedCluster, running


class Placed(msgspec.Struct, tag=True):
    """An order was placed."""

    article: str


class Cancelled(msgspec.Struct, tag=True):
    """An order was cancelled."""

    article: str


COUNTRIES = ("de", "fr")

shop = awoke.Router(prefix="shop.")
steps = awoke.Handlers()
counts = dict.fromkeys(COUNTRIES, 0)
all_seen = threading.Event()


@steps.of_type(Placed)
def place(message: awoke.Message[Placed]) -> None:
    """Takes the orders that were placed, in any country."""
    print(f"{message.topic}: {message.value.article} is ordered")


@steps.of_type(Cancelled)
def cancel(message: awoke.Message[Cancelled]) -> None:
    """Takes the orders that were cancelled."""
    print(f"{message.topic}: {message.value.article} is cancelled")


shop.on(awoke.pattern(r"orders\.[a-z]{2}"), value=Placed | Cancelled)(steps)


@shop.incoming
def count(message: awoke.Message[Any], call_next: Callable[[Any], Any]) -> Any:
    """Counts the messages of each country, around whichever handler takes them."""
    result = call_next(message)
    counts[message.topic.rpartition(".")[2]] += 1
    if set(counts.values()) == {2}:
        all_seen.set()
    return result


app = awoke.App("shop")
app.include(shop)


def main() -> None:
    """Sends two messages to the topic of each country; the pattern finds both topics."""
    with EmbeddedCluster() as cluster:
        for country in COUNTRIES:
            cluster.create_topic(f"shop.orders.{country}")
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            for country in COUNTRIES:
                app.producer.produce(f"shop.orders.{country}", Placed("tea"))
                app.producer.produce(f"shop.orders.{country}", Cancelled("tea"))
            all_seen.wait(30)
    print(counts)


if __name__ == "__main__":
    main()

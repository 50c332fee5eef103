"""A consumer that seeks in its hook `assigned` begins there, and nowhere else."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected, became

CreateTopic = Callable[..., str]
MESSAGES = 300
SEEKS = {"forward": 100, "back": 20, "earliest": 0}
COMMITTED = 60
"""Where an earlier life of the group stopped."""


def new_app(cluster: Cluster, group: str) -> awoke.App:
    return awoke.App(group, bootstrap_servers=cluster.bootstrap_servers)


def send(cluster: Cluster, topic: str, first: int, count: int) -> None:
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(topic, b"%d" % number) for number in range(first, first + count)], 30)


def consume_to(cluster: Cluster, name: str, group: str, until: int) -> None:
    """Process and commit what lies before an offset."""
    app, seen = new_app(cluster, group), Collected[int]()

    @app.consumer(name, batch=awoke.Batching(max_messages=until), offsets="manual")
    class First(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            for message in batch:
                if message.offset < until:
                    self.mark(message)
                seen.add(message.offset)

    with running(app):
        seen.wait_for(until)


def add_consumer(app: awoke.App, name: str, where: str, offsets: str, kind: str, seen: Collected[int]) -> None:
    """Add the consumer under test."""
    to = where if where in ("earliest", "latest") else SEEKS[where]
    route = app.consumer(name, offsets=offsets)  # type: ignore[arg-type]
    if kind == "def":

        @route
        class Plain(awoke.Consumer):
            def assigned(self) -> None:
                self.seek(to)  # type: ignore[arg-type]

            def consume(self, batch: awoke.Batch[bytes]) -> None:
                for message in batch:
                    seen.add(message.offset)
    else:

        @route
        class Async(awoke.Consumer):
            async def assigned(self) -> None:
                self.seek(to)  # type: ignore[arg-type]

            async def consume(self, batch: awoke.Batch[bytes]) -> None:
                for message in batch:
                    seen.add(message.offset)


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("offsets", ["auto", "manual"])
@pytest.mark.parametrize("where", [*SEEKS, "latest"])
@pytest.mark.parametrize("has_committed", [False, True], ids=["fresh", "committed"])
def test_reading_begins_where_it_sought(
    cluster: Cluster, topic: CreateTopic, where: str, offsets: str, kind: str, has_committed: bool
) -> None:
    name, group = topic(), unique("app")
    send(cluster, name, 0, MESSAGES)
    if has_committed:
        consume_to(cluster, name, group, COMMITTED)
    app, seen = new_app(cluster, group), Collected[int]()
    add_consumer(app, name, where, offsets, kind, seen)
    with running(app):
        if where == "latest":
            sent = itertools.count(MESSAGES)

            def comes() -> bool:
                send(cluster, name, next(sent), 1)
                return bool(seen.items)

            assert became(comes, 30)
            items = seen.items  # Once: more of them may come at any time.
            assert items == list(range(items[0], items[0] + len(items)))
            assert items[0] >= MESSAGES
        else:
            send(cluster, name, MESSAGES, 10)
            expected = list(range(SEEKS[where], MESSAGES + 10))
            assert seen.wait_for(len(expected)) == expected

"""The progress of a job that still runs: another thread finds the messages that are done."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import awoke
from awoke.runtime.process.stopping import running_places, store_progress
from awoke.testing import running
from tests.contract.test_consume import new_app, send
from tests.support.clusters import Cluster, unique


class Held:
    """A handler that holds the message with the value 'hold' until `end`."""

    def __init__(self) -> None:
        self.begun, self._end = threading.Event(), threading.Event()

    def handle(self, message: awoke.Message[bytes]) -> None:
        if message.value == b"hold":
            self.begun.set()
            self._end.wait(30)

    async def handle_async(self, message: awoke.Message[bytes]) -> None:
        if message.value == b"hold":
            self.begun.set()
            await asyncio.to_thread(self._end.wait, 30)

    def end(self) -> None:
        self._end.set()


@pytest.mark.parametrize("kind", ["handle", "handle_async"])
@pytest.mark.parametrize(
    ("flow", "values", "stored"),
    [
        (awoke.Flow(), [b"done", b"done", b"hold", b"next"], 2),
        (awoke.Flow(where=lambda message: message.value != b"other"), [b"other", b"done", b"other", b"hold"], 2),
        (awoke.Flow(), [b"hold", b"next"], None),
    ],
    ids=["all", "filtered", "first"],
)
def test_what_is_done_of_a_running_job_is_stored(
    mock_cluster: Cluster, kind: str, flow: awoke.Flow, values: list[Any], stored: int | None
) -> None:
    name, app, held = unique_topic(mock_cluster), new_app(mock_cluster), Held()
    app.on(name, flow=flow)(getattr(held, kind))
    send(mock_cluster, name, values)
    with running(app) as runner:
        assert held.begun.wait(30)
        store_progress(runner._pool.running())
        found = [each.stored for each in runner.partitions()]
        places = running_places(runner._pool.running(), with_hooks=True)
        held.end()
    assert found == [stored]
    assert places == {(name, 0)}


def test_nothing_is_stored_where_results_are_still_to_be_acknowledged(mock_cluster: Cluster) -> None:
    name, app, held = unique_topic(mock_cluster), new_app(mock_cluster), Held()

    @app.on(name, output=unique_topic(mock_cluster))
    def forward(message: awoke.Message[bytes]) -> bytes:
        held.handle(message)
        return message.value

    send(mock_cluster, name, [b"done", b"hold"])
    with running(app) as runner:
        assert held.begun.wait(30)
        store_progress(runner._pool.running())
        found = [each.stored for each in runner.partitions()]
        held.end()
    assert found == [None]


def unique_topic(cluster: Cluster) -> str:
    """Creates a topic that no other test has."""
    name = unique("topic")
    cluster.create_topic(name, 1)
    return name

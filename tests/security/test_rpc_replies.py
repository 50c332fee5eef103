"""A reply that can't be sent does not have its method executed again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import awoke
from awoke import rpc
from awoke.rpc import topics
from awoke.rpc import topics as rpc_topics
from awoke.rpc.protocol import ServiceTopics
from awoke.rpc.topics import ReplyTopics
from awoke.settings import Settings
from awoke.testing import running
from tests.support.clusters import MockCluster, RealCluster
from tests.support.rpc_wire import Wire
from tests.support.services import calling, new_app
from tests.support.waiting import Collected


def deceived(monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    """Has responders believe that each topic of replies has this many partitions."""

    def partitions_of(_: Settings, names: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(names, partitions)

    monkeypatch.setattr(rpc_topics, "partitions_of", partitions_of)


def counting(app: awoke.App) -> tuple[Collected[str], Collected[str]]:
    """Counts executions of a method `echo`, and replies that were refused for good."""
    executed, refused = Collected[str](), Collected[str]()
    app.events.subscribe("rpc.reply_refused", lambda event: refused.add(event.fields["topic"]))

    @app.rpc.method
    def echo(text: str) -> str:
        executed.add(text)
        return text

    return executed, refused


def test_a_call_whose_reply_partition_does_not_exist_is_not_executed(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    executed, _ = counting(app)
    with running(app), awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        wire.call(b'["bad"]', wire.headers(rpc_reply_partition="99"))
        assert wire.refused.wait_for(1) == ["reply_partition"]
        wire.call(b'["good"]', wire.headers())
        assert wire.replies(1) == [("reply", "good")]
    assert executed.items == ["good"]
    assert wire.refused.items == ["reply_partition"]


def test_a_partition_that_was_added_is_found(mock_cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    app = new_app(mock_cluster, partitions=2)
    counting(app)
    for name in ServiceTopics.of(app.rpc.service):
        mock_cluster.create_topic(name, 2)
    with monkeypatch.context() as patch:
        deceived(patch, 1)
        patch.setattr(topics, "AGAIN_S", 0.0)
        with running(app), awoke.Producer(mock_cluster.bootstrap_servers) as producer:
            patch.undo()
            wire = Wire(app, producer)
            monkeypatch.setattr(topics, "AGAIN_S", 0.0)
            wire.call(b'["new"]', wire.headers(rpc_reply_partition="1"))
            assert wire.replies(1) == [("reply", "new")]
    assert wire.refused.items == []


@pytest.mark.parametrize("mode", ["at_least_once", "at_most_once"])
def test_a_reply_that_is_refused_for_good_ends_its_call(
    mock_cluster: MockCluster, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    deceived(monkeypatch, 100)
    refuse_once(new_app(mock_cluster, mode=mode), mock_cluster)


def test_a_reply_of_a_transaction_that_is_refused_for_good_ends_its_call(
    real_cluster: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    deceived(monkeypatch, 100)
    refuse_once(new_app(real_cluster, mode="exactly_once"), real_cluster)


def refuse_once(app: awoke.App, cluster: Any) -> None:
    """Executes two calls, of which the first has a reply partition that does not exist."""
    executed, refused = counting(app)
    with running(app), awoke.Producer(cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        wire.call(b'["bad"]', wire.headers(rpc_reply_partition="99"))
        assert refused.wait_for(1) == [wire.topic]
        wire.call(b'["good"]', wire.headers())
        assert wire.replies(1) == [("reply", "good")]
    assert executed.items.count("good") == 1
    # Within a transaction it may be executed for its neighbours' sake, never for its own.
    assert executed.items.count("bad") == 1
    assert refused.items == [wire.topic]


def test_an_error_that_is_too_large_is_sent_without_its_details(mock_cluster: MockCluster) -> None:
    app, executed = new_app(mock_cluster), Collected[int]()

    @app.rpc.method
    def fail() -> None:
        executed.add(1)
        raise rpc.NotFound("x" * 2_000_000, details=["y" * 2_000_000])

    with calling(app) as caller, pytest.raises(rpc.NotFound, match="too large"):
        caller.call("fail")
    assert executed.items == [1]


def test_a_lookup_is_begun_once_at_a_time_and_not_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    go, asked, told = threading.Event(), Collected[int](), Collected[Mapping[str, int]]()

    def partitions_of(_: Settings, names: Iterable[str]) -> dict[str, int]:
        asked.add(1)
        if len(asked.items) > 1:
            go.wait(30)
        return dict.fromkeys(names, len(asked.items))

    monkeypatch.setattr(rpc_topics, "partitions_of", partitions_of)
    found = ReplyTopics(Settings(), ["replies"])
    assert found.look_up() == {"replies": 1}
    assert not found.is_looking_again(told.add), "it was looked up just now"
    monkeypatch.setattr(topics, "AGAIN_S", 0.0)
    assert found.is_looking_again(told.add)
    assert found.is_looking_again(told.add)
    go.set()
    assert told.wait_for(1) == [{"replies": 2}]
    found.close(time.monotonic() + 30)
    assert found.is_looking_again(told.add), "a call that was read before may be known by now"
    assert len(asked.items) == 2

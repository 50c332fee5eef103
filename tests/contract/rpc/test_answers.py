"""Replies over Kafka, and the offsets of their calls: before the call, or in one transaction with the reply."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import awoke
from awoke import rpc
from tests.support.clusters import unique
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected


def test_at_most_once_commits_first(real_cluster: Any) -> None:
    app, committed = new_app(real_cluster, mode="at_most_once"), Collected[int]()

    @app.rpc.method
    def look() -> None:
        with awoke.Admin(real_cluster.bootstrap_servers) as admin:
            committed.add(sum(admin.group_offsets(app.name).values()))

    @app.rpc.method
    async def alook() -> None:
        await asyncio.to_thread(look)

    with calling(app) as caller:
        caller.call("look")
        caller.call("alook")
    assert committed.items[1] == committed.items[0] + 1
    assert committed.items[0] >= 2, "its own offset, behind that of the first question"


def test_exactly_once_forgets_a_result_that_was_not_committed(real_cluster: Any) -> None:
    app, out, sizes = new_app(real_cluster, mode="exactly_once"), unique("out"), [2_000_000, 10]
    real_cluster.create_topic(out)

    @app.rpc.method
    def order(number: int) -> int:
        sender = rpc.current_call().transaction_entry
        assert sender is not None
        sender.produce(out, b"x" * sizes.pop(0))  # The first is larger than messages may be.
        return number

    with calling(app) as caller:
        with pytest.raises(rpc.Internal, match="refused"):
            caller.call("order", number=1, idempotency_key="once")
        assert caller.call("order", number=1, idempotency_key="once") == 1
    with awoke.Reader(out, bootstrap_servers=real_cluster.bootstrap_servers) as reader:
        assert [message.value for message in reader.read_until_end(WITHIN_S)] == [b"x" * 10]


def test_exactly_once_tells_of_a_reply_that_is_too_large(real_cluster: Any) -> None:
    app, done = new_app(real_cluster, mode="exactly_once"), Collected[int]()

    @app.rpc.method
    def large(number: int) -> str:
        done.add(number)
        return "x" * 2_000_000

    with calling(app) as caller, pytest.raises(rpc.ResourceExhausted, match="too large"):
        caller.call("large", number=1)
    assert done.items == [1]


def test_exactly_once_commits_replies_with_offsets(real_cluster: Any) -> None:
    app, out = new_app(real_cluster, mode="exactly_once"), unique("out")
    real_cluster.create_topic(out)

    @app.rpc.method
    def order(number: int) -> int:
        sender = rpc.current_call().transaction_entry
        assert sender is not None
        sender.produce(out, number)
        if number == 3:
            raise rpc.Aborted("not this one")
        return number

    @app.rpc.method
    def count(to: int) -> Iterator[int]:
        yield from range(to)

    with calling(app) as caller:
        assert [caller.call("order", number=number) for number in range(3)] == [0, 1, 2]
        with pytest.raises(rpc.Aborted):
            caller.call("order", number=3)
        assert list(caller.stream("count", to=500)) == list(range(500))
    with awoke.Admin(real_cluster.bootstrap_servers) as admin:
        # The first question, four orders, a stream; what was said about the stream meanwhile may still lie behind them.
        assert sum(admin.group_offsets(app.name).values()) >= 6
    with awoke.Reader(out, bootstrap_servers=real_cluster.bootstrap_servers) as reader:
        assert [message.value for message in reader.read_until_end(WITHIN_S)] == [b"0", b"1", b"2"]

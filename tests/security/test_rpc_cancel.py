"""Cancellation by the call's own caller, and by another client of the same name."""

from __future__ import annotations

import threading

import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.support.clusters import MockCluster
from tests.support.rpc_wire import Wire
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected

SECRET = b"0123456789abcdef"


class Holding:
    """A service with a method that waits, until the test lets it go on or its call is cancelled."""

    def __init__(self, app: awoke.App) -> None:
        self.began, self.go = Collected[str](), threading.Event()

        @app.rpc.method
        def hold(name: str = "", until_cancelled: bool = True) -> str:
            call = rpc.current_call()
            self.began.add(name)
            if until_cancelled:
                call.when_cancelled(self.go.set)
            self.go.wait(WITHIN_S)
            return "cancelled halfway" if call.is_cancelled else "done"


def test_a_call_that_another_has_cancelled_ends_with_that_error(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    holding = Holding(app)
    with calling(app, name="web") as caller, awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        pending = caller.submit("hold")
        holding.began.wait_for(1)
        wire.call(b"", {"rpc-kind": "cancel", "rpc-id": pending.id, "rpc-caller": "web"})
        with pytest.raises(rpc.Cancelled) as cancelled:
            pending.wait()
        assert not cancelled.value.is_retryable


def test_another_caller_cancels_nothing(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    holding = Holding(app)
    with calling(app, name="web") as caller, awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        pending = caller.submit("hold", until_cancelled=False)
        holding.began.wait_for(1)
        for headers in ({"rpc-caller": "other"}, {}):
            wire.call(b"", {"rpc-kind": "cancel", "rpc-id": pending.id, **headers})
        caller.methods()  # The cancellations were read before this call.
        holding.go.set()
        assert pending.wait() == "done"


def test_a_cancellation_of_a_signed_call_can_not_be_forged(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster, secret=SECRET)
    holding = Holding(app)
    with (
        calling(app, name="web", secret=SECRET) as caller,
        awoke.Producer(mock_cluster.bootstrap_servers) as producer,
    ):
        wire = Wire(app, producer)
        pending = caller.submit("hold", until_cancelled=False)
        holding.began.wait_for(1)
        wire.call(b"", {"rpc-kind": "cancel", "rpc-id": pending.id, "rpc-caller": "web"})
        assert wire.refused.wait_for(1) == ["forged"]
        holding.go.set()
        assert pending.wait() == "done"


@pytest.mark.parametrize("comes_first", ["call", "cancellation"])
def test_a_call_that_was_cancelled_before_it_began_gets_an_error(mock_cluster: MockCluster, comes_first: str) -> None:
    app = new_app(mock_cluster, threads=1)
    holding = Holding(app)
    with running(app), awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        wire.call(b'["first", false]', wire.headers(rpc_method="hold", rpc_id=b"another"))
        holding.began.wait_for(1)
        records = [
            (b'["second"]', wire.headers(rpc_method="hold")),
            (b"", wire.headers(rpc_kind="cancel", rpc_method=None)),
        ]
        for body, headers in records if comes_first == "call" else reversed(records):
            wire.call(body, headers)
        wire.call(b"", {"rpc-kind": "nonsense"})
        wire.refused.wait_for(1)  # One thread reads, in order: the cancellation was read, too.
        if comes_first == "call":
            holding.go.set()
        ((kind, error),) = wire.replies(1)
        holding.go.set()
    assert (kind, error["code"], error["is_rejected"]) == ("error", "cancelled", True)  # type: ignore[index]
    assert holding.began.items == ["first"]


def test_the_result_of_a_cancelled_call_is_not_kept_for_its_idempotency_key(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)
    holding = Holding(app)
    with calling(app) as caller, awoke.Producer(mock_cluster.bootstrap_servers) as producer:
        wire = Wire(app, producer)
        pending = caller.submit("hold", idempotency_key="K")
        holding.began.wait_for(1)
        wire.call(b"", {"rpc-kind": "cancel", "rpc-id": pending.id})
        with pytest.raises(rpc.Cancelled):
            pending.wait()
        assert caller.call("hold", idempotency_key="K") == "done"
    assert len(holding.began.items) == 2

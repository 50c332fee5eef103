"""The small interfaces to the process of a responder: the app's own group and its parts have every part of them."""

from __future__ import annotations

import pytest

import awoke
from awoke.observe.metrics.recorder import Recorder
from awoke.observe.tracing import Tracer
from awoke.rpc.responder import host
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.process.transactions import Transactions
from tests.support.protocols import missing_parts, parts_of


def test_the_apps_own_group_is_a_host() -> None:
    group: host.ResponderHost = AppRunner(awoke.App("host")).own  # mypy compares the types of its parts.
    assert missing_parts(host.ResponderHost, group) == set()


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        (host.CallTransactions, Transactions),
        (host.CallMetrics, Recorder),
        (host.CallTracer, Tracer),
    ],
)
def test_the_parts_of_a_group_are_those_of_a_host(protocol: type, kind: type) -> None:
    assert parts_of(protocol)
    assert missing_parts(protocol, kind) == set()

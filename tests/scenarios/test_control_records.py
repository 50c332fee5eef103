"""The lag of a topic written in transactions is 0 at the end, though control records follow the last message."""

from __future__ import annotations

import pytest

import awoke
from awoke.testing import running
from tests.support import judge
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import Collected

KINDS = ("plain", "lanes", "exactly_once")
TRANSACTIONS = 3
WITHIN_S = 45.0


def write(servers: str, topic: str, transactions: int) -> None:
    """Write a message of one key in each of some transactions, and abort one more at the end."""
    with awoke.Producer(servers, transactional_id=unique("writer")) as producer:
        for number in range(transactions):
            with producer.transaction() as transaction:
                transaction.produce(topic, b"%d" % number, key=b"one")
        with pytest.raises(LookupError), producer.transaction() as transaction:
            transaction.produce(topic, b"aborted", key=b"one")
            raise LookupError("abort")


@pytest.mark.parametrize("kind", KINDS)
def test_the_committed_offset_goes_beyond_control_records(real_cluster: RealCluster, kind: str) -> None:
    # Given a route on a topic that is written in transactions
    servers, topic, output = real_cluster.bootstrap_servers, unique("control"), unique("control-output")
    for name in (topic, output):
        real_cluster.create_topic(name)
    app = awoke.App(unique("control-group"), bootstrap_servers=servers, commit_interval_s=0.1)
    handled: Collected[bytes] = Collected()

    def handle(message: awoke.Message[bytes]) -> bytes:
        handled.add(message.value)
        return message.value

    if kind == "exactly_once":
        app.on(topic, output=output, exactly_once=True)(handle)
    else:
        app.on(topic, concurrency=awoke.by_key(4) if kind == "lanes" else None)(handle)
    with running(app):
        for round_number in (1, 2):
            # When all messages are done, and the last one was aborted
            write(servers, topic, TRANSACTIONS)
            handled.wait_for(round_number * TRANSACTIONS, WITHIN_S)

            # Then the end of the log is committed
            assert judge.comes_to_end(servers, app.name, topic, WITHIN_S), judge.progress(servers, app.name, topic)
    assert handled.items == [b"0", b"1", b"2"] * 2

"""A member begins at its committed offset, which an unclean election has removed, and its first fetch is answered late.

By then the member has asked the leader where the logs part. The answer to the fetch, "offset out of range", does not
have it read the whole log again, or skip what is new: `auto.offset.reset` is for offsets that nothing is known of.
"""

from __future__ import annotations

import pytest

import awoke
from awoke.testing import running
from tests.history.brokers import ProxiedBrokers
from tests.scenarios.test_unclean_election import CONFIG, KEPT, LOST, WITHIN_S
from tests.support import judge
from tests.support.clusters import unique
from tests.support.waiting import Collected

NEW = [b"new-%d" % number for number in range(50)]
"""Fewer than were lost: the committed offset is beyond the end."""
LATE_S = 2.0


@pytest.mark.timeout(200)
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_fetch_that_is_answered_late_does_not_end_the_comparison_of_logs(reset: str) -> None:
    topic, group = unique("late"), unique("group")
    with ProxiedBrokers(has_internal_topics_on_1=True) as brokers:
        brokers.create_topic(topic, [[2, 3]], CONFIG)
        judge.feed(brokers.bootstrap_servers, topic, KEPT)
        brokers.wait_in_sync(topic, 0, 2)
        brokers.stop_broker(3)
        brokers.wait_in_sync(topic, 0, 1)
        judge.feed(brokers.bootstrap_servers, topic, LOST)
        assert handled(brokers, topic, group, "earliest", len(KEPT) + len(LOST)) == [*KEPT, *LOST]
        brokers.kill_broker(2)
        brokers.start_broker(3)
        brokers.wait_for_leader(topic, 0, 3)
        judge.feed(brokers.bootstrap_servers, topic, NEW)
        answer = brokers.proxies[3].rule("Fetch", "delay", "response", delay_s=LATE_S)
        assert handled(brokers, topic, group, reset, len(NEW)) == NEW
        assert answer.fired == 1


def handled(brokers: ProxiedBrokers, topic: str, group: str, reset: str, count: int) -> list[bytes]:
    """Have a member handle as many messages, and return those that it has handled and committed."""
    kafka = {"auto.offset.reset": reset}
    app = awoke.App(unique("app"), group=group, bootstrap_servers=brokers.proxied_servers, kafka=kafka)
    seen = Collected[bytes]()

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    with running(app):
        seen.wait_for(count, WITHIN_S)
    return seen.items

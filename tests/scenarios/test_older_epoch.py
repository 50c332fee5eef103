"""A topic that is made again begins at leader epoch 0, below the one that clients know. Its messages are processed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.support import judge
from tests.support.clusters import unique
from tests.support.kafka_cluster import ThreeBrokers
from tests.support.subjects import KINDS, Subject, new_subject, reading
from tests.support.waiting import became, wait_until

OLD = [b"old-%d" % number for number in range(100)]
"""In the first topic, before its leader changes."""
NEW = [b"new-%d" % number for number in range(150)]
"""In the second topic of that name."""
REPLICAS = [[2, 3]]
WITHIN_S = 60.0


class Renewal:
    """A topic whose leader changed is made again, with its first leader, under the eyes of each kind of subject."""

    def __init__(self) -> None:
        self.brokers = ThreeBrokers()
        self.topic = unique("older-epoch")
        self.subjects: dict[str, Subject] = {}
        self.lags: dict[str, int] = {}

    @property
    def servers(self) -> str:
        return self.brokers.bootstrap_servers

    def run(self) -> None:
        """Change the leader, make the topic again, and wait until all subjects are done or the time is up."""
        output = unique("older-epoch-output")
        self.brokers.create_topic(self.topic, REPLICAS, {})
        self.brokers.create_topic(output, [[1]], {})
        self.subjects = {kind: new_subject(kind, self.topic, output) for kind in KINDS}
        with contextlib.ExitStack() as stack:
            for subject in self.subjects.values():
                stack.enter_context(reading(subject, self.servers))
            self._change_the_leader()
            self._make_again()
            judge.feed(self.servers, self.topic, NEW)
            became(lambda: self._are_done(NEW), WITHIN_S, every_s=0.5)
            for kind, subject in self.subjects.items():
                if subject.group:
                    self.lags[kind] = judge.progress(self.servers, subject.group, self.topic)[0].lag

    def _change_the_leader(self) -> None:
        self.brokers.wait_in_sync(self.topic, 0, 2)
        self.brokers.stop_broker(2)
        self.brokers.wait_for_leader(self.topic, 0, 3)
        judge.feed(self.servers, self.topic, OLD)
        assert became(lambda: self._are_done(OLD), WITHIN_S), "not all of the first topic was processed"
        self.brokers.start_broker(2)
        self.brokers.wait_in_sync(self.topic, 0, 2)

    def _make_again(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.brokers.servers_of(1), "log_level": 0})
        admin.delete_topics([self.topic], operation_timeout=30)[self.topic].result(30)
        wait_until(lambda: self.topic not in admin.list_topics(timeout=30).topics, "the first topic is gone", WITHIN_S)
        self.brokers.create_topic(self.topic, REPLICAS, {})

    def _are_done(self, values: list[bytes]) -> bool:
        return all(subject.is_done(self.servers, set(values)) for subject in self.subjects.values())


@pytest.fixture(scope="module")
def renewal() -> Iterator[Renewal]:
    """The renewal, over; its brokers are gone with the last test."""
    found = Renewal()
    with found.brokers:
        found.run()
        yield found


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_new_topic_holds_is_processed(renewal: Renewal, kind: str) -> None:
    missing = set(NEW) - set(renewal.subjects[kind].handled.items)
    assert not missing, f"{len(missing)} of {len(NEW)} messages of the new topic were not processed"
    assert renewal.lags.get(kind, 0) == 0

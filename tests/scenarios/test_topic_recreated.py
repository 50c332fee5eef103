"""A topic is deleted and made again within a second: what the new one holds is processed to the end, none left out."""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support import judge
from tests.support.clusters import RealCluster, unique
from tests.support.subjects import KINDS, Subject, new_subject, reading
from tests.support.waiting import became

MESSAGES = (50, 50, 80)
"""In each of the topics that follow one another under the one name."""
WITHIN_S = 45.0


def recreate(servers: str, topic: str) -> None:
    """Delete a topic and make it again at once, as a foreign tool does."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.delete_topics([topic], operation_timeout=30)[topic].result(30)

    def is_made() -> bool:
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        except confluent_kafka.KafkaException:
            return False  # The broker has not forgotten the old one yet.
        return True

    assert became(is_made, 30, every_s=0.02)


def values_of(incarnation: int) -> list[bytes]:
    """The values of one of the topics."""
    return [b"%d-%d" % (incarnation, number) for number in range(MESSAGES[incarnation])]


def check(servers: str, subject: Subject, incarnation: int) -> None:
    """Waits until one topic's messages have been processed and its end is committed."""
    values = values_of(incarnation)
    became(lambda: subject.is_done(servers, set(values)), WITHIN_S)
    assert judge.values_of(servers, subject.topic) == values, "the topic holds what was written to it"
    missing = set(values) - set(subject.handled.items)
    assert not missing, f"{len(missing)} of {len(values)} messages of topic {incarnation} were not processed"
    assert not subject.group or judge.progress(servers, subject.group, subject.topic)[0].lag == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_new_topic_holds_is_processed(real_cluster: RealCluster, kind: str) -> None:
    servers, topic, output = real_cluster.bootstrap_servers, unique("recreated"), unique("recreated-output")
    for name in (topic, output):
        real_cluster.create_topic(name)
    subject = new_subject(kind, topic, output)
    with reading(subject, servers):
        judge.feed(servers, topic, values_of(0))
        check(servers, subject, 0)
        for incarnation in range(1, len(MESSAGES)):
            recreate(servers, topic)
            judge.feed(servers, topic, values_of(incarnation))
            check(servers, subject, incarnation)
    if kind == "exactly_once":
        expected = [value for incarnation in range(len(MESSAGES)) for value in values_of(incarnation)]
        assert judge.values_of(servers, output, "read_committed") == expected
    if kind != "reader":
        check_events(subject)


def check_events(subject: Subject) -> None:
    """An event tells where the log began anew, unless the group took the partition back while there was no topic."""
    rewinds = [event.fields for event in subject.rewinds.items]
    assert all((each["topic"], each["partition"]) == (subject.topic, 0) for each in rewinds)
    places = [(each["from_offset"], each["to_offset"]) for each in rewinds]
    assert set(places) <= {(count, 0) for count in MESSAGES[:-1]}
    assert len(places) < len(MESSAGES)
    assert all(each["reason"] for each in rewinds)

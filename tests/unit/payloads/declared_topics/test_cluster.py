"""The part of a cluster's administration that declared topics need: `awoke.Admin` has it."""

from __future__ import annotations

import awoke
from awoke.payloads.declared_topics.differences import DescribesTopics, TopicCluster
from tests.support.clusters import MockCluster
from tests.support.fake_topics import FakeTopics
from tests.support.protocols import missing_parts, parts_of


def test_an_admin_client_has_every_part(mock_cluster: MockCluster) -> None:
    with awoke.Admin(mock_cluster.bootstrap_servers) as admin:
        cluster: TopicCluster = admin  # mypy compares the types of its parts.
        assert missing_parts(TopicCluster, cluster) == set()


def test_the_fake_of_the_tests_has_every_part() -> None:
    fake: TopicCluster = FakeTopics()  # mypy compares the types of its parts.
    assert missing_parts(TopicCluster, fake) == set()
    assert parts_of(DescribesTopics) < parts_of(TopicCluster)

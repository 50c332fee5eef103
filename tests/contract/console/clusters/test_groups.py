"""Groups as the console shows them, and resets that were previewed."""

from __future__ import annotations

import pytest

import awoke
from awoke.console.clusters.groups import list_groups, show_group
from awoke.console.clusters.resets import preview_reset, reset
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected


def filled(cluster: Cluster) -> str:
    topic = unique("topic")
    cluster.create_topic(topic, 2)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(topic, b"x", partition=0) for _ in range(5)], 30)
    return topic


def test_a_group_without_members_is_shown_and_reset_as_previewed(cluster: Cluster) -> None:
    admin, topic, group = cluster.admin, filled(cluster), unique("group")
    admin.alter_group_offsets(group, {(topic, 0): 4, (topic, 1): 0})
    assert group in [each.name for each in list_groups(admin, group).groups]
    found = show_group(admin, group)
    assert [(each.partition, each.committed, each.end, each.lag) for each in found.places] == [
        (0, 4, 5, 1),
        (1, 0, 0, 0),
    ]
    assert (found.lag, found.members) == (1, [])
    preview = preview_reset(admin, group, 1)
    assert (preview.again, preview.skipped, preview.unchanged, preview.refused_because) == (3, 0, 1, None)
    admin.alter_group_offsets(group, {(topic, 0): 3})
    with pytest.raises(awoke.AwokeError, match="have moved since the preview"):
        reset(admin, group, 1, digest=preview.digest)
    reset(admin, group, 1, digest=preview_reset(admin, group, 1).digest)
    assert admin.group_offsets(group)[(topic, 0)] == 1
    ahead = preview_reset(admin, group, "latest")
    assert (ahead.again, ahead.skipped) == (0, 4)


def test_a_group_with_members_names_them_and_is_not_reset(cluster: Cluster) -> None:
    admin, topic = cluster.admin, filled(cluster)
    app = awoke.App(unique("group"), bootstrap_servers=cluster.bootstrap_servers)
    assigned = Collected[object]()
    app.events.subscribe("partitions.assigned", assigned.add)

    @app.on(topic, start="earliest")
    def handle(message: awoke.Message[bytes]) -> None: ...

    with running(app):
        assigned.wait_for(1)
        found = show_group(admin, app.name)
        assert [each.partitions for each in found.members] == [2]
        assert {each.member for each in found.places} == {found.members[0].id}
        preview = preview_reset(admin, app.name, "earliest", [topic])
        assert preview.refused_because == "the group has 1 member: stop them first"


def test_a_group_that_does_not_exist_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(awoke.UnknownGroup):
        show_group(cluster.admin, unique("missing"))

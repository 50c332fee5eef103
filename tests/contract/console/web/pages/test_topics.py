"""The pages of topics, and their acts."""

from __future__ import annotations

from awoke.console.web.grants import Role
from tests.contract.console.web.clients import act, audited, client_of, read
from tests.support.clusters import Cluster, unique


def test_topics_are_listed_and_shown(mock_cluster: Cluster) -> None:
    name = unique("shown")
    mock_cluster.create_topic(name, 2)
    with client_of(mock_cluster) as client:
        listed = read(client, f"/topics?q={name}")
        assert [each["name"] for each in listed["topics"]["rows"]] == [name]
        shown = read(client, f"/topics/{name}")
        assert [each["partition"] for each in shown["partitions"]["rows"]] == [0, 1]
        assert "Add partitions" not in client.get(f"/topics/{name}").text
        read(client, "/topics/missing", 404)


def test_an_admin_creates_and_changes_topics_and_each_act_is_recorded(mock_cluster: Cluster) -> None:
    name, app = unique("made"), unique("app")
    with client_of(mock_cluster, Role.ADMIN, app=app) as client:
        assert "Create a topic" in client.get("/topics").text
        assert act(client, "/topics", name=name, partitions="2") == (200, f"topic {name} was created")
        assert act(client, "/topics", name=name)[0] == 409
        assert act(client, "/topics", name="a b")[0] == 400
        assert act(client, f"/topics/{name}/partitions", total="3")[0] == 200
        changed = act(client, f"/topics/{name}/config", setting="retention.ms", value="2000")
        assert changed[0] == 200
        assert "to 2000" in changed[1]
        assert act(client, f"/topics/{name}/config", setting="retention.ms", value="1", reason=" ")[0] == 400
    found = mock_cluster.admin.describe_configs(name)["retention.ms"]
    assert (found.value, len(mock_cluster.admin.describe_topic(name).partitions)) == ("2000", 3)
    assert [each for each in audited(mock_cluster, app) if each[3] != "begun"] == [
        ("ada", "create_topic", "a test", "done"),
        ("ada", "create_topic", "a test", "KafkaError"),
        ("ada", "add_partitions", "a test", "done"),
        ("ada", "configure", "a test", "done"),
    ]


def test_an_operator_may_not_change_topics(mock_cluster: Cluster) -> None:
    name = unique("kept")
    with client_of(mock_cluster, Role.OPERATE) as client:
        assert act(client, "/topics", name=name)[0] == 403
    assert name not in [each.name for each in mock_cluster.admin.topics()]

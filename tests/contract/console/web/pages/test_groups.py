"""The pages of groups, and a reset that is previewed and made."""

from __future__ import annotations

import awoke
from awoke.console.web.grants import Role
from tests.contract.console.web.clients import act, audited, client_of, read
from tests.support.clusters import Cluster, unique


def test_offsets_are_previewed_and_moved_by_an_admin(mock_cluster: Cluster) -> None:
    topic, group, app = unique("topic"), unique("team/group"), unique("app")
    mock_cluster.create_topic(topic)
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        awoke.wait_all([producer.produce(topic, b"x") for _ in range(5)], 30)
    mock_cluster.admin.alter_group_offsets(group, {(topic, 0): 4})
    with client_of(mock_cluster, Role.ADMIN, app=app) as client:
        assert group in [each["name"] for each in read(client, f"/groups?q={group}")["groups"]["rows"]]
        (place,) = read(client, f"/groups/{group}")["places"]["rows"]
        assert (place["committed"], place["end"], place["lag"]) == (4, 5, 1)
        plan = read(client, f"/groups/{group}/reset?to=offset&value=1")["preview"]
        assert (plan["again"], plan["skipped"]) == (3, 0)
        wrong = act(client, f"/groups/{group}/reset", to="offset", value="2", digest=plan["digest"])
        assert wrong[0] == 409
        assert "have moved since the preview" in wrong[1]
        done = act(client, f"/groups/{group}/reset", to="offset", value="1", digest=plan["digest"])
        assert done == (200, f"1 offsets of group {group} were moved: 3 are read again, 0 are skipped")
        read(client, f"/groups/{group}/reset?to=sooner", 400)
        read(client, "/groups/missing", 404)
    assert mock_cluster.admin.group_offsets(group) == {(topic, 0): 1}
    assert [each[3] for each in audited(mock_cluster, app)] == ["begun", "AwokeError", "begun", "done"]
    with client_of(mock_cluster, Role.OPERATE, app=app) as client:
        assert act(client, f"/groups/{group}/reset", to="earliest")[0] == 403

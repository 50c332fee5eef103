"""ACLs are created, described and deleted on brokers with an authorizer, and refused by brokers without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import awoke
from tests.support.clusters import RealCluster, unique
from tests.support.kafka_broker import KafkaCluster
from tests.support.waiting import wait_until

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def authorized() -> Iterator[str]:
    """The address of a broker with an authorizer."""
    with KafkaCluster(1, PROPERTIES) as cluster:
        yield cluster.bootstrap_servers


def described(admin: awoke.Admin, selected: awoke.AclFilter, count: int) -> list[awoke.Acl]:
    """Returns the selected ACLs once they have this number: the controller answers before the broker knows of them."""
    wait_until(lambda: len(admin.describe_acls(selected)) == count, f"the broker knows of {count} ACLs")
    return admin.describe_acls(selected)


def test_acls_are_created_selected_and_deleted(authorized: str) -> None:
    orders, group = unique("orders"), unique("billing")
    read = awoke.Acl("topic", orders, "User:billing", "read")
    write = awoke.Acl("topic", orders, "User:shop", "write", "deny", "prefixed", "10.0.0.1")
    join = awoke.Acl("group", group, "User:billing", "read")
    with awoke.Admin(authorized) as admin:
        admin.create_acls([read, write, join])
        assert described(admin, awoke.AclFilter("topic", orders), 2) == [read, write]
        assert described(admin, awoke.AclFilter(principal="User:billing"), 2) == [join, read]
        assert described(admin, awoke.AclFilter(permission="deny", operation="write"), 1) == [write]
        matching = awoke.AclFilter("topic", f"{orders}-eu", pattern="match")
        assert described(admin, matching, 1) == [write]
        assert admin.describe_acls(awoke.AclFilter("topic", unique("nothing"))) == []
        admin.create_acls([read])
        assert admin.delete_acls([read]) == [read]
        assert described(admin, awoke.AclFilter("topic", orders), 1) == [write]
        assert admin.delete_acls([awoke.AclFilter("topic", orders), awoke.AclFilter("group", group)]) == [join, write]
        assert described(admin, awoke.AclFilter(), 0) == []


def test_an_acl_takes_effect(authorized: str) -> None:
    topic = unique("secret")
    deny = awoke.Acl("topic", topic, "User:ANONYMOUS", "all", "deny")
    with awoke.Admin(authorized) as admin:
        admin.create_topic(topic)
        admin.create_acls([deny])
        described(admin, awoke.AclFilter("topic", topic), 1)
        with pytest.raises(awoke.AuthorizationFailed, match=topic):
            admin.describe_configs(topic)
        with pytest.raises(awoke.AuthorizationFailed, match=topic):
            admin.alter_configs(topic, {"retention.ms": "1"})
        assert admin.delete_acls([deny]) == [deny]
        described(admin, awoke.AclFilter("topic", topic), 0)
        admin.alter_configs(topic, {"retention.ms": "1"})


READ: dict[str, Any] = {"resource": "topic", "name": "orders", "principal": "User:a", "operation": "read"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"resource": "topik"}, "resource of an ACL is one of topic, group"),
        ({"operation": "reed"}, "operation of an ACL is one of all, read"),
        ({"pattern": "match"}, "pattern of an ACL is one of literal"),
        ({"resource": "unknown"}, "resource of an ACL"),
    ],
)
def test_an_acl_with_an_unknown_word_is_refused(change: dict[str, Any], text: str, authorized: str) -> None:
    with awoke.Admin(authorized) as admin, pytest.raises(awoke.ConfigError, match=text):
        admin.create_acls([awoke.Acl(**{**READ, **change})])


def test_brokers_refuse_a_principal_without_its_kind(authorized: str) -> None:
    with awoke.Admin(authorized) as admin, pytest.raises(awoke.KafkaError, match="billing"):
        admin.create_acls([awoke.Acl("topic", "orders", "billing", "read")])


def test_a_client_that_may_not_see_acls_is_told_so(authorized: str) -> None:
    # The brokers are the same user: what no ACL of the cluster allows is denied to them as soon as it has one.
    allow = awoke.Acl("cluster", "kafka-cluster", "User:ANONYMOUS", "all")
    deny = allow._replace(operation="describe", permission="deny")
    with awoke.Admin(authorized) as admin:

        def is_denied() -> bool:
            try:
                admin.describe_acls()
            except awoke.AuthorizationFailed:
                return True
            return False

        assert not is_denied()
        admin.create_acls([allow])
        described(admin, awoke.AclFilter("cluster"), 1)
        admin.create_acls([deny])
        wait_until(is_denied, "the broker knows of the ACL")
        assert admin.delete_acls([deny]) == [deny]
        wait_until(lambda: not is_denied(), "the broker knows that the ACL is gone")
        assert admin.delete_acls([allow]) == [allow]
        described(admin, awoke.AclFilter("cluster"), 0)


def test_brokers_without_an_authorizer_refuse_acls(real_cluster: RealCluster) -> None:
    with awoke.Admin(real_cluster.bootstrap_servers) as admin:
        for ask in (
            lambda: admin.create_acls([awoke.Acl("topic", "orders", "User:a", "read")]),
            lambda: admin.delete_acls([awoke.AclFilter("topic", "orders")]),
            lambda: admin.describe_acls(),
        ):
            with pytest.raises(
                awoke.KafkaError, match=r"No Authorizer is configured|Security features are disabled"
            ) as error:
                ask()
            assert error.value.code_name == "SECURITY_DISABLED"

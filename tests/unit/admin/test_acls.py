"""ACLs in Kafka's numbers and in words, without brokers."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.admin.acls import OPERATIONS, Acls
from awoke.admin.results import EVERY_ACL
from awoke.waiting.drive import drive
from tests.unit.admin.fakes import FakeConnection

READ = awoke.Acl("topic", "orders", "User:a", "read")
NATIVE = (2, "orders", 3, "User:a", "*", 3, 3)


def test_an_acl_is_sent_in_kafkas_numbers_and_read_in_words() -> None:
    connection = FakeConnection(create_acls=[[("", None)]], describe_acls=[[(None, [NATIVE])]])
    drive(Acls(connection).create([READ], 5))
    assert drive(Acls(connection).describe(EVERY_ACL, 5)) == [READ]
    assert connection.asked == [("create_acls", [NATIVE]), ("describe_acls", (1, None, 1, None, None, 1, 1))]


def test_operations_have_the_numbers_of_the_protocol() -> None:
    named = {2: "all", 3: "read", 7: "alter", 8: "describe", 10: "describe_configs", 12: "idempotent_write"}
    assert {number: OPERATIONS[number] for number in named} == named


def test_a_kind_of_a_later_version_is_unknown() -> None:
    connection = FakeConnection(describe_acls=[[(None, [(99, "x", 99, "User:a", "*", 99, 99)])]])
    assert drive(Acls(connection).describe(EVERY_ACL, 5)) == [
        awoke.Acl("unknown", "x", "User:a", "unknown", "unknown", "unknown")
    ]


def test_the_refused_acl_is_named() -> None:
    connection = FakeConnection(create_acls=[[("", None), ("", (54, "SECURITY_DISABLED", "No Authorizer"))]])
    with pytest.raises(awoke.KafkaError, match=r"create Acl\(resource='topic', name='refunds'.*No Authorizer"):
        drive(Acls(connection).create([READ, READ._replace(name="refunds")], 5))


def test_deleted_acls_of_all_filters_are_returned_once() -> None:
    connection = FakeConnection(delete_acls=[[(None, [NATIVE]), (None, [NATIVE])]])
    assert drive(Acls(connection).delete([READ, awoke.AclFilter("topic")], 5)) == [READ]
    assert connection.asked == [("delete_acls", [NATIVE, (2, None, 1, None, None, 1, 1)])]


def test_the_error_of_a_filter_is_raised() -> None:
    connection = FakeConnection(delete_acls=[[((31, "CLUSTER_AUTHORIZATION_FAILED", "no"), [])]])
    with pytest.raises(awoke.AuthorizationFailed, match=r"delete ACLs \(done before: none\): no"):
        drive(Acls(connection).delete([READ], 5))


def test_an_acl_that_the_broker_kept_is_named_with_those_that_are_gone() -> None:
    other = (2, "refunds", 3, "User:a", "*", 3, 3)
    refusal = (29, "TOPIC_AUTHORIZATION_FAILED", "no")
    connection = FakeConnection(delete_acls=[[(None, [NATIVE]), (refusal, [other])]])
    with pytest.raises(awoke.AuthorizationFailed, match=r"delete ACLs Acl\(.*refunds.*done before: Acl\(.*orders"):
        drive(Acls(connection).delete([awoke.AclFilter("topic")], 5))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"resource": "topik"}, "resource"),
        ({"resource": None}, "resource"),
        ({"operation": "reed"}, "operation"),
        ({"permission": "maybe"}, "permission"),
        ({"pattern": "match"}, "pattern"),
        ({"pattern": "unknown"}, "pattern"),
    ],
)
def test_an_unknown_word_is_refused(change: dict[str, Any], field: str) -> None:
    connection = FakeConnection()
    with pytest.raises(awoke.ConfigError, match=f"{field} of an ACL is one of") as error:
        drive(Acls(connection).create([READ._replace(**change)], 5))
    assert (error.value.property, connection.asked) == (field, [])


def test_no_acls_need_no_request() -> None:
    connection = FakeConnection()
    drive(Acls(connection).create([], 5))
    assert drive(Acls(connection).delete([], 5)) == []
    assert connection.asked == []

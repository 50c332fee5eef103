"""The flows about groups, without brokers."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.admin.groups import Groups, counted_members
from awoke.errors import kafka_error
from awoke.waiting.drive import drive
from tests.unit.admin.fakes import FakeConnection

LOADING = (14, "COORDINATOR_LOAD_IN_PROGRESS", "loading")
MEMBERS = [("b-1", "shop", "/10.0.0.2", None, [("orders", 1)]), ("a-1", "shop", "/10.0.0.1", "s1", [("orders", 0)])]


def described(refusal: Any = None, state: str = "Stable", members: Any = MEMBERS) -> list[Any]:
    return [("billing", refusal, state, "Classic", "range", (1, "a", 9092), members)]


def test_a_group_has_its_members_in_order() -> None:
    connection = FakeConnection(describe_groups=[described()])
    found = drive(Groups(connection).describe("billing", 5))
    assert found[:5] == ("billing", "Stable", "classic", "range", awoke.BrokerInfo(1, "a:9092"))
    assert found.members == [
        awoke.MemberInfo("a-1", "shop", "10.0.0.1", "s1", [("orders", 0)]),
        awoke.MemberInfo("b-1", "shop", "10.0.0.2", None, [("orders", 1)]),
    ]


@pytest.mark.parametrize("answer", [described(state="Dead", members=[]), described((69, "GROUP_ID_NOT_FOUND", "no"))])
def test_a_dead_group_does_not_exist(answer: list[Any]) -> None:
    with pytest.raises(awoke.UnknownGroup, match="group 'billing' does not exist"):
        drive(Groups(FakeConnection(describe_groups=[answer])).describe("billing", 5))


def test_a_coordinator_that_loads_is_asked_again() -> None:
    moved = kafka_error("moved", 16, "NOT_COORDINATOR", is_retriable=True)
    connection = FakeConnection(describe_groups=[described(LOADING), moved, described()])
    assert drive(Groups(connection).describe("billing", 600)).state == "Stable"
    assert connection.waits == 2


def test_a_coordinator_that_keeps_loading_is_an_error_when_the_client_closes() -> None:
    connection = FakeConnection(delete_groups=[[("billing", LOADING)]])
    connection.waits_max = 4
    with pytest.raises(awoke.KafkaError, match="delete group 'billing': loading"):
        drive(Groups(connection).delete("billing", 600))
    assert len(connection.asked) == 5


def test_a_list_without_the_groups_of_a_broker_is_an_error() -> None:
    listings = [("billing", "Stable", "Classic", False)]
    connection = FakeConnection(list_groups=[(listings, []), (listings, [(-195, "_TRANSPORT", "gone")])])
    groups = Groups(connection)
    assert drive(groups.all(5)) == [awoke.GroupListing("billing", "Stable", "classic", is_simple=False)]
    with pytest.raises(awoke.BrokerUnreachable, match="1 of the brokers gave no list: gone"):
        drive(groups.all(5))


@pytest.mark.parametrize("code", [22, 25, 27, 68, 86])
def test_a_change_of_a_group_with_members_names_some_of_them(code: int) -> None:
    refused = [("orders", 0, 5, (code, "NAME", "no"))]
    connection = FakeConnection(alter_group_offsets=[refused], describe_groups=[described()])
    words = r"group 'billing': it has 2 members \(shop on 10.0.0.1, shop on 10.0.0.2\); stop them first"
    with pytest.raises(awoke.GroupNotEmpty, match=words) as error:
        drive(Groups(connection).alter_offsets("billing", {("orders", 0): 5}, 5))
    assert error.value.code == code


def test_a_group_with_members_that_cannot_be_described_is_named_without_them() -> None:
    denied = kafka_error("denied", 30, "GROUP_AUTHORIZATION_FAILED", is_retriable=False)
    connection = FakeConnection(delete_groups=[[("billing", (68, "NON_EMPTY_GROUP", "no"))]], describe_groups=[denied])
    with pytest.raises(awoke.GroupNotEmpty, match="it has members; stop them first"):
        drive(Groups(connection).delete("billing", 5))


def test_nothing_to_change_needs_no_request() -> None:
    connection = FakeConnection()
    drive(Groups(connection).alter_offsets("billing", {}, 5))
    drive(Groups(connection).delete_offsets("billing", [], 5))
    assert connection.asked == []


def test_partitions_whose_offsets_are_deleted_are_named_once() -> None:
    connection = FakeConnection(delete_group_offsets=[[("orders", 0, -1, None)]])
    drive(Groups(connection).delete_offsets("billing", [("orders", 0), ("orders", 0)], 5))
    assert connection.asked == [("delete_group_offsets", ("billing", [("orders", 0)]))]


def test_many_members_are_counted_and_some_named() -> None:
    members = [awoke.MemberInfo(f"m{number}", f"c{number}", "h", None, []) for number in range(5)]
    assert counted_members(members) == "5 members (c0 on h, c1 on h, c2 on h, …)"
    assert counted_members(members[:1]) == "1 member (c0 on h)"

"""`awoke groups`: what is asked of the brokers, and what is shown."""

from __future__ import annotations

import pytest

import awoke
from tests.unit.cli.fakes import FakeAdmin, run
from tests.unit.cli.test_topics import rows_of

MEMBERS = [
    awoke.MemberInfo("shop-1", "shop", "10.0.0.1", None, [("orders", 0)]),
    awoke.MemberInfo("shop-2", "shop", "10.0.0.2", "s2", [("orders", 1), ("gone", 0)]),
]
GROUP = awoke.GroupInfo("billing", "Stable", "classic", "range", awoke.BrokerInfo(1, "a:9092"), MEMBERS)


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    """Brokers with a topic and two groups."""
    admin = FakeAdmin(orders={0: (3, 7), 1: (0, 9)})
    admin.groups = {"billing": GROUP, "idle": awoke.GroupInfo("idle", "Empty", "consumer", "", None, [])}
    monkeypatch.setattr(awoke, "Admin", admin)
    return admin


def test_groups_are_listed_with_state_and_kind(admin: FakeAdmin) -> None:
    output = run("groups", "list", "-b", "a:1", "--kafka", "client.id=x").output
    assert output == "billing\tStable\tclassic\nidle\tEmpty\tconsumer\n"
    assert admin.made == [{"bootstrap_servers": "a:1", "kafka": {"client.id": "x"}}]


def test_a_group_is_described_with_the_lag_of_each_partition(admin: FakeAdmin) -> None:
    admin.committed = {("orders", 0): 4, ("gone", 0): 5}
    output = run("groups", "describe", "billing").output
    assert output.startswith("billing: Stable, classic, range, coordinator a:9092, lag 3\n")
    assert rows_of(output, "topic") == [
        ["gone", "0", "5", "-", "-", "shop", "shop-2"],
        ["orders", "0", "4", "7", "3", "shop", "shop-1"],
        ["orders", "1", "-", "9", "-", "shop", "shop-2"],
    ]
    assert rows_of(output.partition("└")[2], "member") == [
        ["shop-1", "shop", "10.0.0.1", "-", "1"],
        ["shop-2", "shop", "10.0.0.2", "s2", "2"],
    ]


def test_a_group_without_members_has_its_offsets(admin: FakeAdmin) -> None:
    admin.committed = {("orders", 1): 11}
    output = run("groups", "describe", "idle").output
    assert output.startswith("idle: Empty, consumer, lag 0\n")
    assert rows_of(output, "topic") == [["orders", "1", "11", "9", "0", "-", "-"]]
    assert "static id" not in output


def test_a_group_that_does_not_exist_is_an_error(admin: FakeAdmin) -> None:
    with pytest.raises(awoke.UnknownGroup, match="'bilinng' does not exist"):
        run("groups", "describe", "bilinng")


def test_names_from_brokers_cannot_control_the_terminal(admin: FakeAdmin) -> None:
    admin.groups = {"x": awoke.GroupInfo("a\x1b[2J", "Empty", "classic", "\x07", None, [])}
    assert "\x1b" not in run("groups", "list").output
    assert "\x07" not in run("groups", "describe", "x").output


def test_a_group_is_deleted(admin: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match="there is no terminal to ask at: say --yes"):
        run("groups", "delete", "idle")
    assert admin.asked == []
    assert run("groups", "delete", "idle", "--yes").output == "group idle deleted\n"
    assert admin.asked == [("delete_group", "idle")]

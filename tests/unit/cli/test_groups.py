"""`awoke groups`: what is asked of the brokers, and what is shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

import awoke
from tests.unit.cli.fakes import FakeAdmin, rows_of, run

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
    assert rows_of(output, "group") == [["billing", "Stable", "classic"], ["idle", "Empty", "consumer"]]
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
    assert rows_of(output, "member") == [
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
    assert run("groups", "delete", "idle", "billing", "--yes").output == "deleted groups idle and billing\n"
    assert admin.asked == [("delete_group", "idle"), ("delete_group", "billing")]


def test_nothing_is_deleted_if_a_group_does_not_exist(admin: FakeAdmin) -> None:
    with pytest.raises(awoke.UnknownGroup, match="'bilinng' does not exist"):
        run("groups", "delete", "idle", "bilinng", "--yes")
    assert admin.asked == []


def test_groups_are_documents_for_programs(admin: FakeAdmin) -> None:
    first, _ = map(json.loads, run("groups", "list", "--json").output.splitlines())
    assert first == {"group": "billing", "state": "Stable", "kind": "classic"}
    admin.committed = {("orders", 0): 4}
    described = json.loads(run("groups", "describe", "billing", "--json").output)
    assert (described["group"], described["lag"], described["coordinator"]) == ("billing", 3, "a:9092")
    assert described["partitions"][1] == {
        "topic": "orders", "partition": 0, "committed": 4, "next_offset": 7, "lag": 3, "client": "shop",
        "member": "shop-1"
    }  # fmt: skip
    assert described["members"][1]["static_id"] == "s2"


PLAN = [
    awoke.OffsetChange("billing", "orders", 0, 4, 7, 3, 7, is_clamped=True),
    awoke.OffsetChange("billing", "orders", 1, None, 5, 0, 9),
    awoke.OffsetChange("billing", "refunds", 0, 2, 2, 0, 9),
]


@pytest.fixture
def planning(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    """Brokers with a plan for a group."""
    admin = FakeAdmin()
    admin.plan = PLAN
    monkeypatch.setattr(awoke, "Admin", admin)
    return admin


@pytest.mark.parametrize(
    ("options", "to"),
    [
        (["--to-earliest"], "earliest"),
        (["--to-latest"], "latest"),
        (["--to-offset", "0"], 0),
        (["--shift-by", "-3"], awoke.Shift(-3)),
        (["--shift-by", "3"], awoke.Shift(3)),
        (["--to-time", "2026-01-31T12:00+00:00"], datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_a_reset_has_one_target(options: list[str], to: Any, planning: FakeAdmin) -> None:
    run("groups", "reset", "billing", *options, "--dry-run")
    assert planning.asked == [("plan", "billing", None, to)]


@pytest.mark.parametrize("options", [[], ["--to-earliest", "--to-latest"], ["--to-offset", "1", "--shift-by", "0"]])
def test_no_target_and_several_are_refused(options: list[str], planning: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match="one of --to-time, --to-offset, --to-earliest"):
        run("groups", "reset", "billing", *options)
    assert planning.asked == []


def test_a_wrong_time_is_refused(planning: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match=r"--to-time takes a time .* not 'noon'"):
        run("groups", "reset", "billing", "--to-time", "noon")
    assert planning.asked == []


def test_the_changes_are_shown_and_only_those_are_made(planning: FakeAdmin) -> None:
    output = run(
        "groups", "reset", "billing", "--topic", "orders", "--topic", "refunds", "--to-offset", "9", "-y"
    ).output
    assert rows_of(output, "topic") == [
        ["orders", "0", "4", "7", "3", "7", "nearest in the log"],
        ["orders", "1", "-", "5", "0", "9", "-"],
        ["refunds", "0", "2", "2", "0", "9", "-"],
    ]
    assert output.endswith("moved 2 offsets of group billing\n")
    assert planning.asked == [("plan", "billing", ["orders", "refunds"], 9), ("reset", PLAN[:2])]


def test_a_dry_run_shows_and_changes_nothing(planning: FakeAdmin) -> None:
    output = run("groups", "reset", "billing", "--to-latest", "--dry-run").output
    assert len(rows_of(output, "topic")) == 3
    assert [each[0] for each in planning.asked] == ["plan"]


def test_offsets_that_are_there_already_are_left_alone(planning: FakeAdmin) -> None:
    planning.plan = PLAN[2:]
    assert run("groups", "reset", "billing", "--to-latest").output.endswith("there is nothing to change\n")
    assert [each[0] for each in planning.asked] == ["plan"]

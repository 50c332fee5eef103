"""Plans of resets, without brokers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import awoke
from awoke.admin.groups import Groups
from awoke.admin.resets import Resets, check_target
from awoke.admin.topics import AdminTopics
from awoke.waiting.drive import drive
from tests.unit.admin.fakes import FakeConnection


def offsets(first: int, second: int) -> list[tuple[str, int, int, None]]:
    return [("orders", 0, first, None), ("orders", 1, second, None)]


def resets(connection: FakeConnection) -> Resets:
    return Resets(AdminTopics(connection), Groups(connection))


def planned(to: Any, *at_time: Any) -> list[tuple[int | None, int, bool]]:
    """Returns before, after and clamped for two partitions: from 5 to 20 with a commit, and from 0 to 10 without."""
    committed = [("orders", 0, 12, None), ("orders", 1, -1001, None)]
    answers = [offsets(5, 0), offsets(20, 10), offsets(20, 10), *at_time]
    plan = drive(resets(FakeConnection(list_offsets=answers, group_offsets=[committed])).plan("g", None, to, 5))
    assert {each.group for each in plan} == {"g"}
    return [(each.before, each.after, each.is_clamped) for each in plan]


def test_a_plan_has_the_partitions_of_the_groups_topics() -> None:
    assert planned("earliest") == [(12, 5, False), (None, 0, False)]
    assert planned("latest") == [(12, 20, False), (None, 10, False)]


def test_an_offset_outside_of_the_log_becomes_the_nearest() -> None:
    assert planned(15) == [(12, 15, False), (None, 10, True)]
    assert planned(3) == [(12, 5, True), (None, 3, False)]


def test_a_shift_moves_committed_offsets_only() -> None:
    assert planned(awoke.Shift(-3)) == [(12, 9, False)]
    assert planned(awoke.Shift(100)) == [(12, 20, True)]


def test_a_time_becomes_the_first_offset_after_it() -> None:
    assert planned(datetime(2026, 1, 1, tzinfo=UTC), offsets(8, -1)) == [(12, 8, False), (None, 10, False)]
    assert planned(datetime(1960, 1, 1, tzinfo=UTC), offsets(5, 0)) == [(12, 5, False), (None, 0, False)]


def test_a_group_without_offsets_needs_topics() -> None:
    connection = FakeConnection(group_offsets=[[]], list_offsets=[offsets(0, 0), offsets(4, 4)])
    with pytest.raises(awoke.UnknownGroup, match="'g' has no committed offsets: name the topics"):
        drive(resets(connection).plan("g", None, "earliest", 5))
    assert [each.after for each in drive(resets(connection).plan("g", ["orders"], 2, 5))] == [2, 2]


def test_topics_are_a_list() -> None:
    with pytest.raises(awoke.ConfigError, match="topics is a list of names, not 'orders'"):
        drive(resets(FakeConnection()).plan("g", "orders", "earliest", 5))


CHANGE = awoke.OffsetChange("g", "orders", 0, 3, 1, 0, 9)
NOT_THERE: list[Any] = [("g", (69, "GROUP_ID_NOT_FOUND", "no"), "Dead", "", "", None, [])]
OCCUPIED: list[Any] = [("g", None, "Stable", "classic", "range", None, [("m", "shop", "/h", None, [])])]


def test_a_reset_commits_the_planned_offsets() -> None:
    committed = [("orders", 0, 3, None)]
    answers: Any = {"describe_groups": [NOT_THERE], "group_offsets": [committed]}
    connection = FakeConnection(**answers, alter_group_offsets=[[("orders", 0, 1, None)]])
    drive(resets(connection).reset([CHANGE], 5))
    assert connection.asked[-1] == ("alter_group_offsets", ("g", [("orders", 0, 1)]))


def test_a_plan_that_is_older_than_a_commit_is_refused() -> None:
    committed = [("orders", 0, 7, None)]
    connection = FakeConnection(describe_groups=[NOT_THERE], group_offsets=[committed])
    with pytest.raises(
        awoke.AwokeError, match=r"orders\[0\] was committed meanwhile \(7, and 3 in the plan\); plan again"
    ):
        drive(resets(connection).reset([CHANGE], 5))
    assert "alter_group_offsets" not in [kind for kind, _ in connection.asked]


def test_a_group_with_members_is_not_reset() -> None:
    connection = FakeConnection(describe_groups=[OCCUPIED])
    with pytest.raises(awoke.GroupNotEmpty, match=r"reset offsets of group 'g': it has 1 member \(shop on h\)"):
        drive(resets(connection).reset([CHANGE], 5))
    assert [kind for kind, _ in connection.asked] == ["describe_groups"]


def test_a_plan_is_of_one_group() -> None:
    with pytest.raises(awoke.ConfigError, match="of one group, and this one of g, h"):
        drive(resets(FakeConnection()).reset([CHANGE, CHANGE._replace(group="h")], 5))
    connection = FakeConnection()
    drive(resets(connection).reset([], 5))
    assert connection.asked == []


@pytest.mark.parametrize(
    ("to", "text"),
    [
        (datetime(2026, 1, 1), "without a time zone"),
        (-1, r"negative offset, -1; Shift\(-1\) moves offsets back"),
        ("start", "'earliest', 'latest', a datetime with a time zone, an offset or a Shift, not 'start'"),
        (True, "not True"),
        (1.5, "not 1.5"),
        (None, "not None"),
        (awoke.Shift("2"), "not Shift"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_target_is_refused(to: Any, text: str) -> None:
    with pytest.raises(awoke.ConfigError, match=text) as error:
        check_target(to)
    assert error.value.property == "to"

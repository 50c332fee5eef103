"""`awoke groups reset`: the target that is asked for, the table before the change, and the question."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import awoke
from tests.unit.cli.fakes import FakeAdmin, run
from tests.unit.cli.test_topics import rows_of

PLAN = [
    awoke.OffsetChange("billing", "orders", 0, 4, 7, 3, 7, is_clamped=True),
    awoke.OffsetChange("billing", "orders", 1, None, 5, 0, 9),
    awoke.OffsetChange("billing", "refunds", 0, 2, 2, 0, 9),
]


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
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
def test_a_reset_has_one_target(options: list[str], to: Any, admin: FakeAdmin) -> None:
    run("groups", "reset", "billing", *options, "--dry-run")
    assert admin.asked == [("plan", "billing", None, to)]


@pytest.mark.parametrize("options", [[], ["--to-earliest", "--to-latest"], ["--to-offset", "1", "--shift-by", "0"]])
def test_no_target_and_several_are_refused(options: list[str], admin: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match="one of --to-time, --to-offset, --to-earliest"):
        run("groups", "reset", "billing", *options)
    assert admin.asked == []


def test_a_wrong_time_is_refused(admin: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match=r"--to-time takes a time .* not 'noon'"):
        run("groups", "reset", "billing", "--to-time", "noon")
    assert admin.asked == []


def test_the_changes_are_shown_and_only_those_are_made(admin: FakeAdmin) -> None:
    output = run(
        "groups", "reset", "billing", "--topic", "orders", "--topic", "refunds", "--to-offset", "9", "-y"
    ).output
    assert rows_of(output, "topic") == [
        ["orders", "0", "4", "7", "3", "7", "nearest in the log"],
        ["orders", "1", "-", "5", "0", "9", ""],
        ["refunds", "0", "2", "2", "0", "9", ""],
    ]
    assert output.endswith("moved 2 offsets of group billing\n")
    assert admin.asked == [("plan", "billing", ["orders", "refunds"], 9), ("reset", PLAN[:2])]


def test_a_dry_run_shows_and_changes_nothing(admin: FakeAdmin) -> None:
    output = run("groups", "reset", "billing", "--to-latest", "--dry-run").output
    assert len(rows_of(output, "topic")) == 3
    assert [each[0] for each in admin.asked] == ["plan"]


def test_without_a_terminal_yes_must_be_said(admin: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match="say --yes"):
        run("groups", "reset", "billing", "--to-latest")
    assert [each[0] for each in admin.asked] == ["plan"]


def test_offsets_that_are_there_already_are_left_alone(admin: FakeAdmin) -> None:
    admin.plan = PLAN[2:]
    assert run("groups", "reset", "billing", "--to-latest").output.endswith("there is nothing to change\n")
    assert [each[0] for each in admin.asked] == ["plan"]

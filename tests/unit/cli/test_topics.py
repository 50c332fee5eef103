"""`awoke topics`: what is asked of the brokers, and what is shown."""

from __future__ import annotations

import pytest

import awoke
from tests.unit.cli.fakes import FakeAdmin, run


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    """Brokers with two topics."""
    admin = FakeAdmin(orders={0: (3, 7), 1: (0, 0)}, payments={0: (0, 1)})
    monkeypatch.setattr(awoke, "Admin", admin)
    return admin


def test_topics_are_listed_with_the_number_of_their_partitions(admin: FakeAdmin) -> None:
    assert run("topics", "list", "-b", "a:1", "--kafka", "acks=1").output == "orders\t2\npayments\t1\n"
    assert admin.made == [{"bootstrap_servers": "a:1", "kafka": {"acks": "1"}}]


def test_a_topic_is_described_by_its_partitions(admin: FakeAdmin) -> None:
    rows = [line.split("│")[1:-1] for line in run("topics", "describe", "orders").output.splitlines() if "│" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["0", "1", "[1, 2]", "[1]", "3", "7"],
        ["1", "1", "[1, 2]", "[1]", "0", "0"],
    ]


def rows_of(output: str, first: str) -> list[list[str]]:
    """Returns the cells of the table whose first column has this name."""
    _, _, table = output.partition(f"┃ {first}")
    lines = [line.split("│")[1:-1] for line in table.partition("└")[0].splitlines() if "│" in line]
    return [[cell.strip() for cell in line] for line in lines]


def test_a_topic_is_described_with_its_settings_that_are_no_defaults(admin: FakeAdmin) -> None:
    admin.configs = [
        awoke.ConfigEntry("cleanup.policy", "compact", "topic", False, False, False),
        awoke.ConfigEntry("index.interval.bytes", "4096", "default", True, False, False),
        awoke.ConfigEntry("secret", None, "broker", False, True, False),
    ]
    shown = rows_of(run("topics", "describe", "orders").output, "setting")
    assert shown == [["cleanup.policy", "compact", "topic"], ["secret", "(hidden)", "broker"]]


def test_settings_that_brokers_do_not_tell_leave_the_partitions(admin: FakeAdmin) -> None:
    admin.error = awoke.AuthorizationFailed("not allowed", 29, "TOPIC_AUTHORIZATION_FAILED")
    output = run("topics", "describe", "orders").output
    assert [row[0] for row in rows_of(output, "partition")] == ["0", "1"]
    assert "settings: not allowed" in output


def test_several_topics_are_created_and_those_that_can_not_be_are_named(admin: FakeAdmin) -> None:
    assert run("topics", "create", "a", "b", "a").output == "topic a created\ntopic b created\n"
    assert run("topics", "create", "c", "--quiet").output == ""
    created = [asked[1] for asked in admin.asked]
    assert created == ["a", "b", "c"]
    admin.refused = {"e": "topic 'e' exists already", "g": "topic 'g' exists already"}
    with pytest.raises(awoke.AwokeError, match="topic 'e' exists already; topic 'g' exists already"):
        run("topics", "create", "e", "f", "g")
    assert [asked[1] for asked in admin.asked] == ["a", "b", "c", "f"]


def test_a_topic_is_altered_by_the_options_that_are_given(admin: FakeAdmin) -> None:
    options = ("--partitions", "4", "--config", "retention.ms=1", "--config", "a=b=c", "--default", "segment.ms")
    assert run("topics", "alter", "orders", *options).output == "topic orders altered\n"
    changes = {"retention.ms": "1", "a": "b=c", "segment.ms": None}
    assert admin.asked == [("create_partitions", "orders", 4), ("alter_configs", "orders", changes)]


def test_altering_nothing_is_refused(admin: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match="say what is to be changed: --partitions, --config or --default"):
        run("topics", "alter", "orders")
    assert admin.asked == []


def test_a_topic_that_does_not_exist_is_an_error(admin: FakeAdmin) -> None:
    with pytest.raises(awoke.UnknownTopic, match="'ordres' does not exist"):
        run("topics", "describe", "ordres")


def test_a_topic_is_created_with_its_settings(admin: FakeAdmin) -> None:
    options = ("--partitions", "3", "--replicas", "2", "--config", "retention.ms=1", "--config", "a=b=c")
    assert run("topics", "create", "receipts", *options).output == "topic receipts created\n"
    config = {"retention.ms": "1", "a": "b=c"}
    assert admin.asked == [("create", "receipts", {"partitions": 3, "replicas": 2, "config": config})]


def test_the_brokers_defaults_are_taken_otherwise(admin: FakeAdmin) -> None:
    run("topics", "create", "receipts")
    assert admin.asked == [("create", "receipts", {"partitions": -1, "replicas": -1, "config": {}})]


@pytest.mark.parametrize("config", ["retention.ms", "=1"])
def test_a_setting_without_name_or_value_is_refused_before_anything_is_created(config: str, admin: FakeAdmin) -> None:
    with pytest.raises(awoke.ConfigError, match="--config takes name=value"):
        run("topics", "create", "receipts", "--config", config)
    assert admin.asked == []


def test_a_topic_is_deleted(admin: FakeAdmin) -> None:
    assert run("topics", "delete", "orders").output == "topic orders deleted\n"
    assert admin.asked == [("delete", "orders")]

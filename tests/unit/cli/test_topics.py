"""`awoke topics`: what is asked of the brokers, and what is shown."""

from __future__ import annotations

import json

import pytest

import awoke
from tests.unit.cli.fakes import FakeAdmin, rows_of, run


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    """Brokers with two topics."""
    admin = FakeAdmin(orders={0: (3, 7), 1: (0, 0)}, payments={0: (0, 1)})
    monkeypatch.setattr(awoke, "Admin", admin)
    return admin


def test_topics_are_listed_with_the_number_of_their_partitions(admin: FakeAdmin) -> None:
    output = run("topics", "list", "-b", "a:1", "--kafka", "acks=1").output
    assert output == "topic     partitions\norders             2\npayments           1\n"
    assert admin.made == [{"bootstrap_servers": "a:1", "kafka": {"acks": "1"}}]


def test_a_topic_is_described_by_its_partitions(admin: FakeAdmin) -> None:
    output = run("topics", "describe", "orders", "payments").output
    assert rows_of(output, "partition") == [["0", "1", "1,2", "1", "3", "7"], ["1", "1", "1,2", "1", "0", "0"]]
    assert [line for line in output.splitlines() if line in ("orders", "payments")] == ["orders", "payments"]


def test_lists_are_documents_for_programs(admin: FakeAdmin) -> None:
    admin.configs = [awoke.ConfigEntry("cleanup.policy", "compact", "topic", False, False, False)]
    first, second = map(json.loads, run("topics", "list", "--json").output.splitlines())
    assert (first, second["topic"]) == ({"topic": "orders", "partitions": 2}, "payments")
    described = json.loads(run("topics", "describe", "payments", "--json").output)
    (partition,) = described["partitions"]
    assert partition == {
        "partition": 0, "leader": 1, "replicas": [1, 2], "in_sync": [1], "first_offset": 0, "next_offset": 1
    }  # fmt: skip
    assert described["settings"] == [{"setting": "cleanup.policy", "value": "compact", "source": "topic"}]


def test_all_topics_that_do_not_exist_are_named_at_once(admin: FakeAdmin) -> None:
    for command in (["describe"], ["delete", "--yes"]):
        with pytest.raises(awoke.UnknownTopic, match="'ordres' does not exist; topic 'paymnets' does not exist"):
            run("topics", *command, "ordres", "orders", "paymnets")
    assert admin.asked == []


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
    assert run("topics", "create", "a", "b", "a").output == "created topics a and b\n"
    assert run("topics", "create", "c", "--quiet").output == ""
    created = [asked[1] for asked in admin.asked]
    assert created == ["a", "b", "c"]
    admin.refused = {"e": "topic 'e' exists already", "g": "topic 'g' exists already"}
    with pytest.raises(awoke.AwokeError, match="topic 'e' exists already; topic 'g' exists already"):
        run("topics", "create", "e", "f", "g")
    assert [asked[1] for asked in admin.asked] == ["a", "b", "c", "f"]


def test_a_topic_is_altered_by_the_options_that_are_given(admin: FakeAdmin) -> None:
    options = ("--partitions", "4", "--config", "retention.ms=1", "--config", "a=b=c", "--default", "segment.ms")
    assert run("topics", "alter", "orders", *options, "--yes").output == "altered topic orders\n"
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
    assert run("topics", "create", "receipts", *options).output == "created topic receipts\n"
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
    assert run("topics", "delete", "orders", "payments", "-y").output == "deleted topics orders and payments\n"
    assert admin.asked == [("delete", "orders"), ("delete", "payments")]


def test_the_messages_that_a_deletion_takes_are_counted(admin: FakeAdmin) -> None:
    done = run("topics", "delete", "orders", "payments", "--dry-run")
    assert done.output == "dry run: would delete topics orders and payments with 5 messages for good\n"
    assert admin.asked == []

"""The flows about settings, without brokers."""

from __future__ import annotations

import pytest

import awoke
from awoke.admin.configs import SOURCES, Configs
from awoke.waiting.drive import drive
from tests.unit.admin.fakes import FakeConnection

REFUSED = (40, "INVALID_CONFIG", "Unknown topic config name: colour")


def test_settings_are_sorted_and_have_the_name_of_their_source() -> None:
    entries = [
        ("b", None, 4, False, True, True),
        ("a", "1", 1, False, False, False),
        ("c", "2", 77, False, False, False),
    ]
    connection = FakeConnection(describe_configs=[[("1", None, entries)]])
    found = drive(Configs(connection).of_broker(1, 5))
    assert list(found) == ["a", "b", "c"]
    assert [each.source for each in found.values()] == ["topic", "broker", "unknown"]
    assert found["b"] == awoke.ConfigEntry("b", None, "broker", False, True, True)
    assert connection.asked == [("describe_configs", [(4, "1")])]


def test_each_source_has_its_own_name() -> None:
    assert len(set(SOURCES.values())) == len(SOURCES)


def test_a_default_is_taken_back_by_none() -> None:
    connection = FakeConnection(alter_configs=[[("orders", None)]])
    drive(Configs(connection).alter_topic("orders", {"retention.ms": "1", "segment.ms": None}, 5))
    changes = [("retention.ms", "1"), ("segment.ms", None)]
    assert connection.asked == [("alter_configs", [(2, "orders", changes)])]


def test_no_change_needs_no_request() -> None:
    connection = FakeConnection()
    drive(Configs(connection).alter_topic("orders", {}, 5))
    assert connection.asked == []


def test_a_refused_setting_is_an_error() -> None:
    connection = FakeConnection(alter_configs=[[("orders", REFUSED)]])
    with pytest.raises(awoke.KafkaError, match="alter settings of topic 'orders': Unknown topic config name: colour"):
        drive(Configs(connection).alter_topic("orders", {"colour": "red"}, 5))


def test_a_broker_that_does_not_exist_is_not_asked() -> None:
    connection = FakeConnection()
    with pytest.raises(awoke.ConfigError, match="there is no broker 7: the brokers are 1, 2"):
        drive(Configs(connection).alter_broker(7, {"a": "1"}, 5))
    assert connection.asked == []

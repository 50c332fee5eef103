"""Settings of topics and brokers: written as Kafka writes them, and refused where it takes none."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.settings.config_values import ConfigValue, changes_of, config_of


def test_values_are_written_as_kafka_writes_them() -> None:
    config: dict[str, ConfigValue] = {
        "a": "b",
        "b": 604_800_000,
        "c": 7 * 24 * 3.6e6,
        "d": 0.25,
        "e": True,
        "f": False,
        "g": "",
    }
    assert config_of("topic 'orders'", config) == {
        "a": "b",
        "b": "604800000",
        "c": "604800000",
        "d": "0.25",
        "e": "true",
        "f": "false",
        "g": "",
    }
    assert config_of("topic 'orders'", None) == {}


def test_changes_keep_their_order_and_none_takes_a_setting_back() -> None:
    changes: dict[str, ConfigValue | None] = {"b": 5_000, "a": None, "c": True}
    assert changes_of("alter", changes) == [("b", "5000"), ("a", None), ("c", "true")]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("compact", "config is given as in config="),
        ({5: "compact"}, "5 is no name of a setting"),
        ({"retention.ms": None}, "leave a setting out to keep the cluster's"),
        ({"retention.ms": ["1"]}, "setting retention.ms is a text, a finite number, True or False"),
    ],
)
def test_what_kafka_does_not_take_is_refused(config: Any, text: str) -> None:
    with pytest.raises(awoke.ConfigError, match=text):
        config_of("topic 'orders'", config)


@pytest.mark.parametrize("changes", [None, ["retention.ms"], "retention.ms=1"])
def test_changes_that_are_no_mapping_are_refused(changes: Any) -> None:
    with pytest.raises(awoke.ConfigError, match=r"^alter settings: settings are given as in \{\"cleanup.policy\""):
        changes_of("alter settings", changes)

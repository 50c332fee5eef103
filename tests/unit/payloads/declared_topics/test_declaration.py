"""Declarations: numbers and settings are checked where they are given, and written as Kafka writes them."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.payloads.declared_topics.declaration import Declaration, declaration_of, is_same


def test_a_topic_without_options_is_not_declared() -> None:
    assert declaration_of("orders", None, None, None) is None
    assert declaration_of("orders", None, None, {}) == Declaration(None, None, {})


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("partitions", 0, "partitions must be a whole number from 1, not 0"),
        ("partitions", True, "partitions must be a whole number from 1, not True"),
        ("partitions", 2**31, "partitions must be at most 2147483647"),
        ("replication", -1, "replication must be a whole number from 1, not -1"),
        ("replication", 40_000, "replication must be at most 32767"),
        ("config", "compact", "config is given as in config="),
        ("config", {"cleanup policy": "compact"}, "'cleanup policy' is no name of a setting"),
        ("config", {5: "compact"}, "5 is no name of a setting"),
        ("config", {"retention.ms": None}, "leave a setting out to keep the cluster's"),
        ("config", {"retention.ms": float("nan")}, "setting retention.ms is a text, a finite number, True or False"),
        ("config", {"retention.ms": ["1"]}, "setting retention.ms is a text"),
        ("config", {"retention.ms": "1\0"}, "setting retention.ms is a text"),
    ],
)
def test_what_kafka_does_not_take_is_refused_where_it_is_given(option: str, value: Any, text: str) -> None:
    given: dict[str, Any] = {"partitions": None, "replication": None, "config": None, option: value}
    with pytest.raises(awoke.ConfigError, match="topic 'orders': ") as refused:
        declaration_of("orders", **given)
    assert text in str(refused.value)
    assert refused.value.property == option


def test_a_declaration_is_told_in_words() -> None:
    assert Declaration(1, 3, {"retention.ms": "5"}).text() == "1 partition, 3 replicas, retention.ms=5"
    assert Declaration(12, 1, {}).text() == "12 partitions, 1 replica"
    assert Declaration(None, None, {}).text() == "as the brokers choose"


@pytest.mark.parametrize(
    ("declared", "found", "same"),
    [
        ("compact", "compact", True),
        ("compact, delete", "compact,delete", True),
        ("delete,compact", "compact,delete", False),
        ("0.50", "0.5", True),
        ("1E+3", "1000", True),
        ("9007199254740993", "9007199254740992", False),
        ("TRUE", "true", True),
        ("true", "false", False),
        ("Compact", "compact", False),
        ("", "0", False),
        ("nan", "nan", True),
        ("nan", "NaN", False),
    ],
)
def test_values_are_compared_as_kafka_reads_them(declared: str, found: str, same: bool) -> None:
    assert is_same(declared, found) is same

"""Naming strategies: the subject of each, and a schema without a name."""

from __future__ import annotations

import pytest

from awoke.errors import ConfigError
from awoke.payloads.registry import SubjectName, record_name, topic_name, topic_record_name


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [(topic_name, "orders-value"), (record_name, "shop.Order"), (topic_record_name, "orders-shop.Order")],
)
def test_a_strategy_names_the_subject(strategy: SubjectName, subject: str) -> None:
    assert strategy("orders", "value", "shop.Order") == subject


def test_the_name_of_the_topic_tells_keys_from_values_and_needs_no_record() -> None:
    assert topic_name("orders", "key", None) == "orders-key"


@pytest.mark.parametrize("strategy", [record_name, topic_record_name])
@pytest.mark.parametrize("record", [None, ""])
def test_a_schema_without_a_name_is_refused_with_advice(strategy: SubjectName, record: str | None) -> None:
    with pytest.raises(ConfigError, match=r"'orders': the schema of the key has no name; .* topic_name"):
        strategy("orders", "key", record)

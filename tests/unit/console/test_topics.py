"""The topics of the console: names, and creation by whichever process comes first."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.console.topics import ERRORS_CONFIG, REPORTS_CONFIG, ConsoleTopics, ensure
from awoke.errors import KafkaError, UnknownTopic

TOPICS = ConsoleTopics.of("shop")


class FakeAdmin:
    """An admin client of a cluster with these topics; creation ends with this error."""

    def __init__(self, *existing: str, error: KafkaError | None = None) -> None:
        self.existing, self.error = existing, error
        self.created: dict[str, Any] = {}

    def describe_topic(self, name: str, timeout_s: float) -> None:
        if name not in self.existing:
            raise UnknownTopic("there is none", 3, "UNKNOWN_TOPIC_OR_PART")

    def create_topic(self, name: str, *, partitions: int, config: Any, timeout_s: float) -> None:
        if self.error is not None:
            raise self.error
        if name in self.existing:
            raise KafkaError("it exists", 36, "TOPIC_ALREADY_EXISTS")
        self.created[name] = (partitions, config)


def ensured(admin: Any) -> Any:
    ensure(admin, TOPICS.configs, 1.0)
    return admin.created


def test_the_names_are_made_of_the_apps_name_with_characters_that_kafka_takes() -> None:
    names = ("reports", "errors", "audit", "pauses")
    assert list(TOPICS) == [f"__awoke-shop.{each}" for each in names]
    assert ConsoleTopics.of("my shop/1").reports == "__awoke-my_shop_1.reports"


def test_topics_that_do_not_exist_are_created_with_their_settings() -> None:
    assert ensured(FakeAdmin()) == {TOPICS.reports: (1, REPORTS_CONFIG), TOPICS.errors: (1, ERRORS_CONFIG)}
    assert ensured(FakeAdmin(*TOPICS)) == {}


NOT_ALLOWED = KafkaError("not allowed", 29, "TOPIC_AUTHORIZATION_FAILED")


def test_a_process_that_may_create_no_topic_takes_those_that_exist() -> None:
    assert ensured(FakeAdmin(*TOPICS, error=NOT_ALLOWED)) == {}


def test_a_topic_that_can_not_be_created_is_an_error() -> None:
    with pytest.raises(KafkaError, match="not allowed"):
        ensured(FakeAdmin(error=NOT_ALLOWED))

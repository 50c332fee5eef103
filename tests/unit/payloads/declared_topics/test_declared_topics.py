"""The declared topics of an app: each once, from wherever it is named."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.payloads.topics import DeclaredTopics


def handle(message: Any) -> bytes:
    return b""


def test_topics_that_are_declared_are_kept_by_name_and_in_order() -> None:
    topics = DeclaredTopics()
    for each in (
        awoke.Topic("b", partitions=2),
        "plain",
        None,
        awoke.Topic("typed", key=int),
        awoke.Topic("a", config={}),
    ):
        topics.add(each)
    assert list(topics) == ["b", "a"]
    assert len(topics) == 2
    assert topics["b"].partitions == 2
    assert repr(topics) == "{'b': 'b', 'a': 'a'}"


def test_a_topic_may_be_declared_twice_in_the_same_way() -> None:
    topics = DeclaredTopics()
    for value in (int, bool):
        topics.add(awoke.Topic("orders", partitions=1, config={"retention.ms": 1}, value=value))
    topics.add(awoke.Topic("orders", key=int))
    assert len(topics) == 1


def test_two_declarations_of_one_topic_are_an_error_that_says_where_they_differ() -> None:
    topics = DeclaredTopics()
    topics.add(awoke.Topic("orders", partitions=12, config={"retention.ms": 1}))
    with pytest.raises(awoke.ConfigError, match="topic 'orders' is declared twice, and differently") as refused:
        topics.add(awoke.Topic("orders", partitions=6, replication=3, config={"retention.ms": 1}))
    assert "partitions 12 and 6, replication not given and 3;" in str(refused.value)
    assert topics["orders"].partitions == 12


def test_an_app_has_the_topics_of_its_routes_outputs_and_dead_letters() -> None:
    app = awoke.App("shop")
    audit = app.topic("audit", partitions=3, replication=2, config={"cleanup.policy": "compact"})
    orders, out, dead = (awoke.Topic(name, partitions=6) for name in ("orders", "out", "dead"))
    app.on([orders, "plain"], output=out, dead_letter=dead)(handle)
    assert set(app.topics) == {"audit", "orders", "out", "dead"}
    assert app.topics["audit"] is audit
    assert (audit.partitions, audit.replication, audit.config) == (3, 2, {"cleanup.policy": "compact"})


def test_an_app_refuses_a_route_whose_topic_is_declared_otherwise() -> None:
    app = awoke.App("shop")
    app.topic("orders", partitions=12)
    with pytest.raises(awoke.ConfigError, match="partitions 12 and 6"):
        app.on("clicks", output=awoke.Topic("orders", partitions=6))(handle)
    assert not app.routes


def test_an_app_has_the_topics_of_its_routers() -> None:
    router, app = awoke.Router(), awoke.App("shop")
    router.on(awoke.Topic("orders", partitions=6))(handle)
    app.include(router)
    assert app.topics["orders"].partitions == 6

"""The topics of an app are looked up before it joins its group."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.rpc import topics
from awoke.runtime import startup_checks as module
from awoke.runtime.startup_checks import check_topics
from awoke.settings import Settings
from tests.support.fake_admin import FakeAdmin

SETTINGS = Settings(bootstrap_servers="kafka:9092")


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    admin = FakeAdmin(orders=2, clicks=3, out=8, dead=8)
    monkeypatch.setattr(module, "Admin", admin)
    monkeypatch.setattr(topics, "Admin", admin)
    return admin


def handle(message: Any) -> bytes:
    return b""


def app_of(*routes: tuple[str, str]) -> awoke.App:
    app = awoke.App("shop")
    for topic, output in routes:
        app.on(topic, output=output, dead_letter="dead")(handle)
    return app


def test_the_partitions_of_topics_that_are_read_are_counted(admin: FakeAdmin) -> None:
    assert check_topics(app_of(("orders", "out"), ("clicks", "out")), SETTINGS) == 5


def test_a_topic_that_is_read_and_written_counts_once(admin: FakeAdmin) -> None:
    assert check_topics(app_of(("orders", "clicks"), ("clicks", "out")), SETTINGS) == 5


@pytest.mark.parametrize("missing", ["orders", "out", "dead"])
def test_a_topic_that_does_not_exist_is_named_with_the_command_that_creates_it(admin: FakeAdmin, missing: str) -> None:
    del admin.partitions[missing]
    with pytest.raises(awoke.UnknownTopic, match=f"kafka:9092; create it: awoke topics create {missing}") as unknown:
        check_topics(app_of(("orders", "out")), SETTINGS)
    assert unknown.value.code_name == "UNKNOWN_TOPIC_OR_PART"


def test_the_topics_of_methods_are_created_and_count_with_those_of_routes(admin: FakeAdmin) -> None:
    app = app_of(("orders", "out"))
    app.rpc.method(handle)
    app.rpc.options(partitions=4)
    assert check_topics(app, SETTINGS) == 6
    assert [(name, partitions) for name, partitions, _ in admin.created] == [
        ("shop.rpc.calls", 4),
        ("shop.rpc.replies", 4),
    ]


def test_without_methods_no_topic_is_created(admin: FakeAdmin) -> None:
    check_topics(app_of(("orders", "out")), SETTINGS)
    assert admin.created == []


def test_brokers_that_do_not_answer_are_named() -> None:
    settings = Settings(bootstrap_servers="127.0.0.1:1", startup_timeout_s=0.1)
    with pytest.raises(awoke.BrokerUnreachable, match=r"127\.0\.0\.1:1"):
        check_topics(app_of(("orders", "out")), settings)

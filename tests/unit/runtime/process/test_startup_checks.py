"""The topics of an app are looked up before it joins its group."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

import pytest

import awoke
from awoke.observe.events import TopicUnchecked
from awoke.rpc import topics
from awoke.runtime.process import startup_checks as module
from awoke.runtime.process.startup_checks import check_topics
from awoke.settings import Settings
from awoke.settings.config_values import ConfigValue
from awoke.testing import EmbeddedCluster
from tests.support.fake_admin import FakeAdmin
from tests.support.fake_topics import FakeTopics

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
    assert check_topics(app_of(("orders", "out"), ("clicks", "out")), SETTINGS) == {"orders": 2, "clicks": 3}


def test_a_topic_that_is_read_and_written_counts_once(admin: FakeAdmin) -> None:
    assert check_topics(app_of(("orders", "clicks"), ("clicks", "out")), SETTINGS) == {"orders": 2, "clicks": 3}


def test_all_topics_that_do_not_exist_are_named_at_once_with_what_creates_them(admin: FakeAdmin) -> None:
    app = awoke.App("shop")
    for topic in ("visits", "views", "orders"):
        app.on(topic, output="summary")(handle)
    app.topic("audit", partitions=3)
    with pytest.raises(awoke.UnknownTopic) as refused:
        check_topics(app, SETTINGS)
    assert str(refused.value) == (
        "topics 'audit', 'summary', 'views', 'visits' do not exist on kafka:9092; create them: "
        "awoke topics create summary views visits, awoke topics apply MODULE:APP"
    )


def test_a_topic_that_two_groups_read_is_looked_up_once(admin: FakeAdmin) -> None:
    app = app_of(("orders", "out"))
    app.on("orders", group="audit", output="clicks")(handle)
    app.on("orders", partitions=[0, 1])(handle)
    assert check_topics(app, SETTINGS) == {"orders": 2}


def test_a_topic_that_only_a_named_group_writes_to_must_exist(admin: FakeAdmin) -> None:
    app = app_of(("orders", "out"))
    app.on("orders", group="audit", output="audited")(handle)
    with pytest.raises(awoke.UnknownTopic, match="'audited' does not exist"):
        check_topics(app, SETTINGS)


def test_a_partition_that_the_topic_does_not_have_is_refused(admin: FakeAdmin) -> None:
    app = app_of(("orders", "out"))
    app.on("clicks", partitions=[0, 3])(handle)
    with pytest.raises(
        awoke.ConfigError, match=r"route 'clicks': partitions=\[0, 3\]: the topic has 3 partitions, 0 to 2"
    ) as refused:
        check_topics(app, SETTINGS)
    assert refused.value.property == "partitions"


@pytest.mark.parametrize("missing", ["orders", "out", "dead"])
def test_a_topic_that_does_not_exist_is_named_with_the_command_that_creates_it(admin: FakeAdmin, missing: str) -> None:
    del admin.partitions[missing]
    with pytest.raises(awoke.UnknownTopic, match=f"kafka:9092; create it: awoke topics create {missing}") as unknown:
        check_topics(app_of(("orders", "out")), SETTINGS)
    assert unknown.value.code_name == "UNKNOWN_TOPIC_OR_PART"


def test_brokers_that_do_not_know_a_topic_are_asked_for_some_seconds(admin: FakeAdmin) -> None:
    check_topics(app_of(("orders", "out")), SETTINGS)
    assert admin.looked_for_s == pytest.approx(module.KNOWN_WITHIN_S, abs=2.0)


def test_a_pattern_waits_for_a_broker_that_does_not_know_its_topics_yet(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.unknown = ["else", "bills.eu"]
    app = awoke.App("shop")
    app.on(awoke.pattern(r"bills\..*"))(handle)
    assert check_topics(app, SETTINGS) == {"bills.eu": 1}
    monkeypatch.setattr(module, "KNOWN_WITHIN_S", 0.0)
    other = awoke.App("shop")
    other.on(awoke.pattern("nothing.*"))(handle)
    with pytest.raises(awoke.UnknownTopic, match="matches no topic of kafka:9092"):
        check_topics(other, SETTINGS)


def test_all_that_is_missing_is_told_at_once(admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KNOWN_WITHIN_S", 0.0)
    app = app_of(("ordres", "out"), ("visits", "views"))
    for regex in ("nothing.*", "none.*"):
        app.on(awoke.pattern(regex))(handle)
    with pytest.raises(awoke.UnknownTopic) as refused:
        check_topics(app, SETTINGS)
    for name in ("ordres", "visits", "pattern('nothing.*') matches no topic", "pattern('none.*') matches no topic"):
        assert name in str(refused.value)


def test_a_declared_topic_that_does_not_exist_is_created_as_it_is_declared(admin: FakeAdmin) -> None:
    app = app_of(("orders", "out"))
    app.topic("audit", partitions=3)
    with pytest.raises(awoke.UnknownTopic, match="'audit' does not exist on kafka:9092; create it: awoke topics apply"):
        check_topics(app, SETTINGS)
    off = Settings(bootstrap_servers="kafka:9092", topics_check="off")
    assert check_topics(app, off) == {"orders": 2}


def differences_of(
    admin: FakeTopics, monkeypatch: pytest.MonkeyPatch, mode: Literal["off", "warn", "error"] = "warn"
) -> list[tuple[Any, ...]]:
    """Starts an app whose topic differs in everything; returns the fields of the events."""
    monkeypatch.setattr(module, "Admin", lambda settings: contextlib.nullcontext(admin))
    app = awoke.App("shop")
    config: dict[str, ConfigValue] = {"cleanup.policy": "compact", "retention.ms": 604_800_000}
    app.on(app.topic("orders", partitions=3, replication=2, config=config))(handle)
    found: list[tuple[Any, ...]] = []
    app.events.subscribe("*", lambda event: found.append((event.name, *event.fields.values())))
    assert check_topics(app, Settings(bootstrap_servers="kafka:9092", topics_check=mode)) == {"orders": 2}
    return found


def test_each_difference_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences_of(FakeTopics(orders=[1, 1]), monkeypatch) == [
        ("topic.differs", "orders", "partitions", "2", "3"),
        ("topic.differs", "orders", "replication", "1", "2"),
        ("topic.differs", "orders", "cleanup.policy", "delete", "compact"),
    ]


def test_without_the_check_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeTopics(orders=[1, 1])
    assert differences_of(admin, monkeypatch, "off") == []
    assert admin.described == []


def test_no_other_mode_is_taken() -> None:
    with pytest.raises(awoke.ConfigError, match="topics_check"):
        awoke.App("shop", topics_check="loud").load_settings()


def test_a_difference_may_end_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    text = r"topic 'orders': partitions is 2, and 3 is declared; .* awoke topics apply MODULE:APP ends"
    with pytest.raises(awoke.ConfigError, match=text) as refused:
        differences_of(FakeTopics(orders=[1, 1]), monkeypatch, "error")
    assert refused.value.property == "topics_check"


def test_the_error_names_some_of_many_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    topics: dict[str, list[int]] = {f"t{number}": [1] for number in range(8)}
    monkeypatch.setattr(module, "Admin", lambda settings: contextlib.nullcontext(FakeTopics(**topics)))
    app = awoke.App("shop")
    for name in topics:
        app.topic(name, partitions=2)
    with pytest.raises(awoke.ConfigError, match=r"topic 't4': .*; 3 more differences; awoke topics plan") as refused:
        check_topics(app, Settings(bootstrap_servers="kafka:9092", topics_check="error"))
    assert "t5" not in str(refused.value)


@pytest.mark.parametrize("mode", ["warn", "error"])
def test_settings_that_can_not_be_read_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, mode: Literal["warn", "error"]
) -> None:
    admin = FakeTopics(orders=[2, 2])
    denied = admin.refused["describe_configs"] = awoke.AuthorizationFailed("not allowed", 29)
    monkeypatch.setattr(module, "Admin", lambda settings: contextlib.nullcontext(admin))
    app = awoke.App("shop")
    app.topic("orders", partitions=2, config={"cleanup.policy": "compact"})
    found: list[awoke.Event] = []
    app.events.subscribe("*", found.append)
    check_topics(app, Settings(bootstrap_servers="kafka:9092", topics_check=mode))
    assert found == [TopicUnchecked(topic="orders", error=denied)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (awoke.AuthorizationFailed("not allowed", 29), ["clicks", "orders"]),
        (awoke.OperationTimeout("no answer"), ["clicks"]),
        (awoke.KafkaError("no answer", -185), ["clicks"]),
    ],
)
def test_brokers_that_do_not_answer_are_asked_once(
    monkeypatch: pytest.MonkeyPatch, error: awoke.AwokeError, told: list[str]
) -> None:
    admin = FakeTopics(orders=[2], clicks=[2])
    admin.refused["describe_configs"] = error
    monkeypatch.setattr(module, "Admin", lambda settings: contextlib.nullcontext(admin))
    app = awoke.App("shop")
    for name in ("orders", "clicks"):
        app.topic(name, config={"cleanup.policy": "compact"})
    found: list[str] = []
    app.events.subscribe(TopicUnchecked, lambda event: found.append(event.topic))
    check_topics(app, SETTINGS)
    assert found == told


def test_brokers_inside_the_process_are_not_compared() -> None:
    app = app_of(("orders", "out"))
    app.topic("orders", partitions=3, replication=3, config={"cleanup.policy": "compact"})
    app.topic("audit", partitions=3)
    with EmbeddedCluster() as cluster:
        for name in ("orders", "out", "dead"):
            cluster.create_topic(name)
        settings = Settings(bootstrap_servers=cluster.bootstrap_servers, topics_check="error")
        assert check_topics(app, settings) == {"orders": 1}


def test_the_topics_of_methods_are_created_and_count_with_those_of_routes(admin: FakeAdmin) -> None:
    app = app_of(("orders", "out"))
    app.rpc.method(handle)
    app.rpc.options(partitions=4)
    assert check_topics(app, SETTINGS) == {"shop.rpc.calls": 4, "orders": 2}
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

"""The topics of a service: looked up, checked, or created; another process may create them at the same time."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import awoke
from awoke.errors import KafkaError, UnknownTopic
from awoke.rpc import topics as module
from awoke.rpc.protocol import ServiceTopics
from awoke.rpc.topics import AGAIN_S, FRESH_S, RETENTION, ReplyTopics, check, ensure, partitions_of
from awoke.settings import Settings
from tests.support.fake_admin import FakeAdmin
from tests.support.waiting import Collected

SHOP = ServiceTopics.of("shop")


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    admin = FakeAdmin(**{SHOP.calls: 3})
    monkeypatch.setattr(module, "Admin", admin)
    return admin


def test_a_topic_that_does_not_exist_or_may_not_be_seen_has_no_partitions(admin: FakeAdmin) -> None:
    admin.partitions["secret"] = 7
    admin.denied.add("secret")
    assert partitions_of(Settings(), [SHOP.calls, SHOP.replies, "secret"]) == {
        SHOP.calls: 3,
        SHOP.replies: 0,
        "secret": 0,
    }


def test_only_missing_topics_are_created_and_their_requests_expire(admin: FakeAdmin) -> None:
    ensure(Settings(), SHOP, 5)
    assert admin.created == [(SHOP.replies, 5, RETENTION)]
    assert int(RETENTION["retention.ms"]) == 3_600_000


@pytest.mark.parametrize(("kafka", "found"), [({}, "true"), ({"allow.auto.create.topics": "false"}, "false")])
def test_brokers_may_create_topics_themselves_unless_the_user_forbids_it(
    admin: FakeAdmin, kafka: dict[str, str], found: str
) -> None:
    ensure(Settings(kafka=kafka), SHOP, 5)
    assert admin.settings is not None
    assert admin.settings.kafka["allow.auto.create.topics"] == found


def test_a_topic_that_another_process_has_just_created_is_waited_for(admin: FakeAdmin) -> None:
    admin.error = KafkaError("exists", 36, "TOPIC_ALREADY_EXISTS")
    ensure(Settings(), SHOP, 5)
    assert admin.waited_for == [SHOP.replies]


def test_a_topic_that_can_not_be_created_is_named_with_the_command(admin: FakeAdmin) -> None:
    admin.error = KafkaError("denied", 29, "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(
        UnknownTopic, match=r"can't be created \(denied.*awoke topics create .* --partitions 5"
    ) as raised:
        ensure(Settings(), SHOP, 5)
    assert (raised.value.code, raised.value.code_name) == (29, "TOPIC_AUTHORIZATION_FAILED")


def test_a_missing_topic_of_a_service_names_both_ways_to_make_it(admin: FakeAdmin) -> None:
    settings = Settings(bootstrap_servers="kafka:9092")
    with pytest.raises(UnknownTopic, match=r"'shop' has no topic shop\.rpc\.replies on kafka:9092.*create_topics=True"):
        check(settings, "shop", SHOP)
    admin.partitions[SHOP.replies] = 1
    check(settings, "shop", SHOP)
    assert admin.created == []


NAMES = ["shop.rpc.replies", "other"]


class Lookups:
    """The lookups, which end when they may; and the clock, which a test moves."""

    def __init__(self) -> None:
        self.asked, self.may_end = Collected[list[str]](), threading.Event()
        self.may_end.set()
        self.now_s = 1_000.0
        self.error: Exception | None = None

    def partitions_of(self, settings: Settings, names: Any) -> dict[str, int]:
        self.asked.add(list(names))
        assert self.may_end.wait(30)
        if self.error is not None:
            raise self.error
        return {"other": len(self.asked.items)}


class Case:
    def __init__(self, lookups: Lookups) -> None:
        self.lookups, self.told = lookups, list[Any]()
        self.topics = ReplyTopics(Settings(), NAMES)

    def is_looking_again(self) -> bool:
        return self.topics.is_looking_again(self.told.append)

    def close(self) -> None:
        self.topics.close(time.monotonic() + 30)


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> Case:
    lookups = Lookups()
    monkeypatch.setattr(module, "partitions_of", lookups.partitions_of)
    monkeypatch.setattr(module, "monotonic_s", lambda: lookups.now_s)
    return Case(lookups)


def test_topics_are_looked_up_by_name(case: Case) -> None:
    assert case.topics.look_up() == {"other": 1}
    assert case.lookups.asked.items == [sorted(NAMES)]


def test_an_unknown_partition_is_looked_up_once_and_the_result_told(case: Case) -> None:
    case.lookups.may_end.clear()
    assert case.is_looking_again()
    assert case.is_looking_again(), "it may be known soon"
    case.lookups.may_end.set()
    case.close()
    assert len(case.lookups.asked.items) == 1
    assert case.told == [{"other": 1}]


def test_after_a_lookup_a_call_that_was_read_before_is_read_again(case: Case) -> None:
    case.is_looking_again()
    case.close()
    case.lookups.now_s += FRESH_S / 2
    assert case.is_looking_again()
    case.lookups.now_s += FRESH_S
    assert not case.is_looking_again(), "the partition is still unknown"
    assert len(case.lookups.asked.items) == 1


def test_another_lookup_begins_after_a_while(case: Case) -> None:
    case.topics.look_up()
    assert not case.is_looking_again()
    case.lookups.now_s += AGAIN_S
    assert case.is_looking_again()
    case.close()
    assert len(case.lookups.asked.items) == 2
    assert case.told == [{"other": 2}]


def test_a_lookup_that_fails_is_told_in_the_log_and_tried_again_later(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    case.lookups.error = awoke.BrokerUnreachable("no broker")
    assert case.is_looking_again()
    case.close()
    assert case.told == []
    assert "other, shop.rpc.replies could not be looked up: no broker" in caplog.text
    case.lookups.error = None
    case.lookups.now_s += AGAIN_S
    assert case.is_looking_again()
    case.close()
    assert case.told == [{"other": 2}]


def test_the_end_waits_for_a_lookup_until_its_deadline_only(case: Case) -> None:
    case.close()
    case.lookups.may_end.clear()
    case.is_looking_again()
    case.topics.close(time.monotonic())
    assert case.told == []
    case.lookups.may_end.set()
    case.close()
    assert case.told == [{"other": 1}]

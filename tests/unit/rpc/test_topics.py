"""The topics of a service: looked up, checked, or created; another process may create them at the same time."""

from __future__ import annotations

import pytest

from awoke.errors import KafkaError, UnknownTopic
from awoke.rpc import topics as module
from awoke.rpc.protocol import Topics
from awoke.rpc.topics import RETENTION, check, ensure, partitions_of
from awoke.settings import Settings
from tests.support.fake_admin import FakeAdmin

SHOP = Topics.of("shop")


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

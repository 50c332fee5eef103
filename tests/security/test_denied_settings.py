"""An ACL that forbids to describe a topic's settings: the app starts with a warning, the plan has a note."""

from __future__ import annotations

from typing import Literal

import pytest
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined]

import awoke
from awoke.observe.events import TopicUnchecked
from awoke.payloads.declared_topics.plan import apply, plan_of
from awoke.testing import running
from tests.support.clusters import unique
from tests.support.entrances import Client
from tests.support.secure_broker import SecureBroker


@pytest.fixture
def client(secure_broker: SecureBroker) -> Client:
    """A client that may do what is not denied."""
    return Client(secure_broker.at("SASL"), secure_broker.sasl("PLAIN"))


def app_of(client: Client, topic: str) -> awoke.App:
    """Returns an app that declares and reads a topic, which has one partition and no such setting."""
    app = awoke.App(unique("app"), **client.arguments)
    app.on(app.topic(topic, partitions=1, config={"cleanup.policy": "compact"}))(lambda message: None)
    return app


@pytest.mark.parametrize("mode", ["warn", "error"])
def test_settings_that_must_not_be_described_do_not_end_the_start(
    secure_broker: SecureBroker, client: Client, mode: Literal["warn", "error"]
) -> None:
    topic = secure_broker.create_topic()
    app = app_of(client, topic)
    app.use(topics_check=mode)
    found: list[TopicUnchecked] = []
    app.events.subscribe(TopicUnchecked, found.append)
    with secure_broker.denied(ResourceType.TOPIC, topic, AclOperation.DESCRIBE_CONFIGS), running(app):
        (told,) = found
    assert told.topic == topic
    assert isinstance(told.error, awoke.AuthorizationFailed)


def test_settings_that_must_not_be_described_are_a_note_of_the_plan(
    secure_broker: SecureBroker, client: Client
) -> None:
    topic = secure_broker.create_topic()
    with (
        secure_broker.denied(ResourceType.TOPIC, topic, AclOperation.DESCRIBE_CONFIGS),
        awoke.Admin(**client.arguments) as admin,
    ):
        plan = plan_of(admin, app_of(client, topic).topics)
    assert plan.differences == ()
    (note,) = plan.notes
    assert note.startswith(f"{topic}: its settings can't be compared: ")


def test_a_change_that_is_not_allowed_is_an_error_that_says_so(secure_broker: SecureBroker, client: Client) -> None:
    topic = secure_broker.create_topic()
    with (
        secure_broker.denied(ResourceType.TOPIC, topic, AclOperation.ALTER_CONFIGS),
        awoke.Admin(**client.arguments) as admin,
        pytest.raises(awoke.AwokeError, match="0 of 1 changes were made before") as refused,
    ):
        list(apply(plan_of(admin, app_of(client, topic).topics), admin))
    assert isinstance(refused.value.__cause__, awoke.AuthorizationFailed)
    assert topic in str(refused.value)

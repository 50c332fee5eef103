"""An operation that an ACL denies is an error that says so, at once."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined]

import awoke
from awoke.rpc.protocol import ServiceTopics
from tests.support.clusters import unique
from tests.support.entrances import WITHIN_S, Client, begin_transaction, error_of, produce, read, start_app
from tests.support.secure_broker import SecureBroker


@pytest.fixture
def client(secure_broker: SecureBroker) -> Client:
    """A client that may do what is not denied."""
    return Client(secure_broker.at("SASL"), secure_broker.sasl("PLAIN"))


def test_a_denied_topic(secure_broker: SecureBroker, client: Client) -> None:
    topic = secure_broker.create_topic()
    with secure_broker.denied(ResourceType.TOPIC, topic):
        for entrance in (start_app, read):
            with pytest.raises(awoke.AuthorizationFailed, match=topic):
                entrance(client, topic)
        assert_not_written(client, topic)


def test_a_topic_that_may_be_seen_and_not_read(secure_broker: SecureBroker, client: Client) -> None:
    topic = secure_broker.create_topic()
    produce(client, topic)
    with (
        secure_broker.denied(ResourceType.TOPIC, topic, AclOperation.READ),
        pytest.raises(awoke.AuthorizationFailed, match=topic),
    ):
        read(client, topic)


def test_a_topic_that_may_be_seen_and_not_written(secure_broker: SecureBroker, client: Client) -> None:
    topic = secure_broker.create_topic()
    with secure_broker.denied(ResourceType.TOPIC, topic, AclOperation.WRITE):
        assert_not_written(client, topic)


def test_a_denied_transactional_id(secure_broker: SecureBroker, client: Client) -> None:
    name = unique("denied")
    with (
        secure_broker.denied(ResourceType.TRANSACTIONAL_ID, name),
        awoke.Producer(**client.arguments, transactional_id=name) as producer,
        pytest.raises(awoke.AuthorizationFailed),
        producer.transaction(WITHIN_S),
    ):
        pass


def test_an_app_whose_transactional_id_is_denied_stops_at_once(secure_broker: SecureBroker, client: Client) -> None:
    topic, output, name = secure_broker.create_topic(), secure_broker.create_topic(), unique("denied")
    app = awoke.App(unique("app"), **client.arguments, transactional_id=name)
    app.on(topic, output=output, exactly_once=True)(lambda message: message.value)
    replaced: list[awoke.Event] = []
    app.events.subscribe("producer.replaced", replaced.append)
    produce(client, topic)
    with secure_broker.denied(ResourceType.TRANSACTIONAL_ID, name, is_prefix=True):
        assert isinstance(error_of(app), awoke.AuthorizationFailed)
    assert len(replaced) <= 1


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_app_whose_group_is_denied_stops(secure_broker: SecureBroker, client: Client, protocol: str) -> None:
    topic = secure_broker.create_topic()
    app = awoke.App(unique("app"), **client.arguments)
    app.use(kafka={"group.protocol": protocol})
    app.on(topic)(lambda message: None)
    with secure_broker.denied(ResourceType.GROUP, app.name):
        error = error_of(app)
    assert isinstance(error, awoke.AuthorizationFailed)
    assert app.name in str(error)


def test_a_denied_action_of_the_cluster(secure_broker: SecureBroker, client: Client) -> None:
    name = unique("created")
    with (
        secure_broker.denied(ResourceType.BROKER, "kafka-cluster"),
        secure_broker.denied(ResourceType.TOPIC, name),
        awoke.Admin(**client.arguments) as admin,
        pytest.raises(awoke.AuthorizationFailed, match=name),
    ):
        admin.create_topic(name)


def test_a_producer_that_may_not_be_idempotent(secure_broker: SecureBroker, client: Client) -> None:
    topic = secure_broker.create_topic()
    with (
        secure_broker.denied(ResourceType.BROKER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE),
        secure_broker.denied(ResourceType.TOPIC, "*", AclOperation.WRITE),
        pytest.raises(awoke.DeliveryFailed) as failed,
    ):
        produce(client, topic)
    assert isinstance(failed.value.__cause__, awoke.AuthorizationFailed)


def test_a_caller_of_a_service_whose_topic_is_denied(secure_broker: SecureBroker, client: Client) -> None:
    service, calls = new_service(secure_broker)
    with (
        secure_broker.denied(ResourceType.TOPIC, calls),
        pytest.raises(awoke.AuthorizationFailed, match=calls),
        awoke.rpc.Caller(service, **client.arguments),
    ):
        pass


def test_a_call_that_may_not_be_sent(secure_broker: SecureBroker, client: Client) -> None:
    service, calls = new_service(secure_broker)
    with (
        secure_broker.denied(ResourceType.TOPIC, calls, AclOperation.WRITE),
        awoke.rpc.Caller(service, **client.arguments, checks_group=False) as caller,
        pytest.raises(awoke.RpcError, match="uthoriz"),
    ):
        caller.call("method", timeout_s=WITHIN_S)


def new_service(broker: SecureBroker) -> tuple[str, str]:
    """Creates the topics of a service; returns its name, and the topic of calls."""
    service = unique("service")
    with awoke.Admin(broker.plain) as admin:
        for name in ServiceTopics.of(service):
            admin.create_topic(name)
    return service, ServiceTopics.of(service).calls


def assert_not_written(client: Client, topic: str) -> None:
    """Produces to the topic, alone and in a transaction: both fail because it is not allowed."""
    for entrance in (produce, begin_transaction):
        with pytest.raises(awoke.KafkaError) as failed:
            entrance(client, topic)
        # Where librdkafka knows the topic already, it refuses the message itself.
        assert isinstance(failed.value.__cause__ or failed.value, awoke.AuthorizationFailed), repr(failed.value)

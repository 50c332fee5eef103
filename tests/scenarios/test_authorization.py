"""An operation that the brokers do not allow is an error at the start, and a reason of the health of a running app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import awoke
from awoke.testing import running
from tests.support import judge
from tests.support.clusters import unique
from tests.support.entrances import error_of
from tests.support.kafka_broker import KafkaCluster
from tests.support.waiting import Collected, became, wait_until

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
KAFKA: dict[str, str | int] = {"topic.metadata.refresh.interval.ms": 500}
WITHIN_S = 60.0


class Acls:
    """Brokers with an authorizer, and the permissions that they deny to all users."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def deny(self, kind: ResourceType, name: str, operation: AclOperation = AclOperation.ALL) -> None:
        """Deny an operation, and wait until the broker's own authorizer knows of it: the controller answers before."""
        binding = _binding(kind, name, operation)
        for created in self._admin.create_acls([binding]).values():
            created.result(30)
        wait_until(lambda: self._is_known(kind, binding), f"{name} is denied")

    def allow_again(self, kind: ResourceType, name: str) -> None:
        """Take back everything that is denied on this."""
        any_of = (AclOperation.ANY, AclPermissionType.ANY)
        literal = ResourcePatternType.LITERAL
        everything = AclBindingFilter(kind, name, literal, None, None, *any_of)  # type: ignore[arg-type]
        for deleted in self._admin.delete_acls([everything]).values():
            deleted.result(30)

    def _is_known(self, kind: ResourceType, binding: AclBinding) -> bool:
        any_of = (AclOperation.ANY, AclPermissionType.ANY)
        any_pattern = ResourcePatternType.ANY
        of_this = AclBindingFilter(kind, binding.name, any_pattern, None, None, *any_of)  # type: ignore[arg-type]
        return binding in self._admin.describe_acls(of_this).result(30)


def _binding(kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    # A process has two producers, whose transactional ids begin with the setting's.
    is_prefix = kind is ResourceType.TRANSACTIONAL_ID
    pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, "User:ANONYMOUS", "*", operation, AclPermissionType.DENY)


@pytest.fixture(scope="module")
def acls() -> Iterator[Acls]:
    """A broker with an authorizer."""
    with KafkaCluster(1, PROPERTIES) as cluster:
        yield Acls(cluster.bootstrap_servers)


def make_topic(acls: Acls) -> str:
    name = unique("topic")
    with awoke.Admin(acls.servers) as admin:
        admin.create_topic(name)
    return name


def new_app(acls: Acls) -> awoke.App:
    return awoke.App(unique("app"), bootstrap_servers=acls.servers, kafka=KAFKA)


def new_reader(acls: Acls, topic: str) -> tuple[awoke.App, Collected[bytes]]:
    """An app that reads a topic."""
    app, seen = new_app(acls), Collected[bytes]()

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add(message.value)

    return app, seen


def assert_stopped(app: awoke.App, *words: str) -> None:
    """Start the app, which must end by itself with an error that says these words."""
    error = error_of(app)
    assert isinstance(error, awoke.AuthorizationFailed), repr(error)
    for word in words:
        assert word in str(error)
    assert "not exist" not in str(error)


def test_a_topic_that_may_not_be_seen_is_no_topic_that_does_not_exist(acls: Acls) -> None:
    topic = make_topic(acls)
    app, _ = new_reader(acls, topic)
    acls.deny(ResourceType.TOPIC, topic)
    assert_stopped(app, topic, "not allowed")


def test_an_output_that_may_not_be_seen_is_refused_at_the_start(acls: Acls) -> None:
    topic, output = make_topic(acls), make_topic(acls)
    app = new_app(acls)
    app.on(topic, output=output)(lambda message: message.value)
    acls.deny(ResourceType.TOPIC, output)
    assert_stopped(app, output, "not allowed")


def test_a_group_that_may_not_be_joined_ends_the_start(acls: Acls) -> None:
    app, _ = new_reader(acls, make_topic(acls))
    acls.deny(ResourceType.GROUP, app.name)
    assert_stopped(app, app.name, "group", "not allowed")


@pytest.mark.parametrize("start", [None, "earliest"])
def test_the_group_of_named_partitions_that_may_not_be_used_ends_the_start(
    acls: Acls, start: Literal["earliest"] | None
) -> None:
    topic, app = make_topic(acls), new_app(acls)
    app.on(topic, partitions=[0], start=start)(lambda message: None)
    acls.deny(ResourceType.GROUP, f"{app.name}.partitions")
    assert_stopped(app, f"{app.name}.partitions", "group", "not allowed")


def test_a_transactional_id_that_may_not_be_used_ends_the_start(acls: Acls) -> None:
    topic, output = make_topic(acls), make_topic(acls)
    app = new_app(acls)
    name = unique("transactional")
    app.use(transactional_id=name)
    app.on(topic, output=output, exactly_once=True)(lambda message: message.value)
    acls.deny(ResourceType.TRANSACTIONAL_ID, name)
    judge.feed(acls.servers, topic, [b"value"])
    assert_stopped(app, name, "not allowed")


def test_a_topic_that_is_forbidden_while_it_is_read_is_a_reason_and_nothing_is_lost(acls: Acls) -> None:
    topic = make_topic(acls)
    app, seen = new_reader(acls, topic)
    first, second = [b"%d" % n for n in range(100)], [b"%d" % n for n in range(100, 200)]
    with running(app) as server:
        judge.feed(acls.servers, topic, first)
        seen.wait_for(100)
        assert became(lambda: judge.is_at_end(acls.servers, app.name, topic), WITHIN_S), "or they would come again"
        acls.deny(ResourceType.TOPIC, topic, AclOperation.READ)
        assert became(lambda: any(topic in reason for reason in server.health().reasons), WITHIN_S)
        assert all("authorization failed" in reason for reason in server.health().reasons)
        acls.allow_again(ResourceType.TOPIC, topic)
        judge.feed(acls.servers, topic, second)
        assert seen.wait_for(200, 60) == first + second
        assert became(lambda: server.health().is_healthy, WITHIN_S)


def test_a_group_that_is_forbidden_while_the_app_runs_is_a_reason(acls: Acls) -> None:
    app, seen = new_reader(acls, topic := make_topic(acls))
    with running(app) as server:
        judge.feed(acls.servers, topic, [b"0"])
        seen.wait_for(1)
        acls.deny(ResourceType.GROUP, app.name)
        judge.feed(acls.servers, topic, [b"1"])
        assert became(lambda: any("group" in reason for reason in server.health().reasons), WITHIN_S)
        assert all("not allowed" in reason for reason in server.health().reasons)
        acls.allow_again(ResourceType.GROUP, app.name)
        judge.feed(acls.servers, topic, [b"2"])
        assert became(lambda: server.health().is_healthy, WITHIN_S)
        assert became(lambda: judge.is_at_end(acls.servers, app.name, topic), 60)
        assert set(seen.items) == {b"0", b"1", b"2"}


def test_a_producer_says_what_is_not_allowed(acls: Acls) -> None:
    topic = make_topic(acls)
    acls.deny(ResourceType.TOPIC, topic)
    with awoke.Producer(acls.servers) as producer, pytest.raises(awoke.DeliveryFailed) as failed:
        producer.produce(topic, b"value").wait(30)
    assert failed.value.code_name == "TOPIC_AUTHORIZATION_FAILED"
